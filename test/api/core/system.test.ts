/** /healthz, /readyz, /metrics, and the documents: made of the routes that are served. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { z } from 'zod'
import { createCallLog } from '../../../api/middleware/request-log.ts'
import { buildOpenApi, type OpenApi } from '../../../api/openapi.ts'
import { defineRoute } from '../../../api/route.ts'
import { createFront, createServer, listen } from '../../../api/server.ts'
import { flag, limit, url } from '../../../api/values.ts'
import { readConfig, silentLogger, type CallLogRecord } from '../../../engine/index.ts'
import manifest from '../../../package.json' with { type: 'json' }
import { until } from '../../support/until.ts'
import { checkedRoute, echoRoutes } from './echo.ts'
import { basic, callRaw, type Answer } from './raw-call.ts'
import { startRig, type Rig } from './rig.ts'

const named = z.object({ id: z.string(), label: z.string().describe('<b>bold & "quoted"</b>') }).meta({ id: 'Thing' })

const documented = defineRoute('POST /lite/users/{id}/things', {
  auth: 'developer',
  summary: 'Adds a <thing>',
  tag: 'things',
  description: 'With a "description".',
  query: z.object({ limit, loud: flag.optional().describe('louder') }),
  body: z.object({ callback_url: url, name: z.string().optional() }),
  response: z.array(named),
  errors: [409, 503],
  handler: () => Promise.resolve([]),
})

const routes = [...echoRoutes, checkedRoute, documented]

suite('system routes', () => {
  let rig: Rig
  let ready = true
  before(async () => {
    rig = await startRig({
      routes,
      ready: () => Promise.resolve(ready),
      env: { MAILROOM_METRICS_TOKEN: 'measure this service' },
    })
  })
  after(() => rig.close())

  const open = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    callRaw(rig.port, 'GET', path, { headers })

  test('/healthz and /readyz need no signature; not ready is 503', async () => {
    assert.deepEqual((await open('/healthz')).json, { status: 'ok' })
    assert.deepEqual((await open('/readyz/')).json, { status: 'ok' })
    ready = false
    const answer = await open('/readyz')
    assert.equal(answer.status, 503)
    assert.ok(answer.headers['retry-after'])
    ready = true
  })

  test('/metrics wants its token, and counts by route, not by path', async () => {
    await rig.call('GET', '/lite/users/abc')
    await rig.call('GET', '/no/such/path')
    assert.equal((await open('/metrics')).status, 401)
    assert.equal((await open('/metrics', { authorization: 'Bearer wrong' })).status, 401)
    assert.equal((await open('/metrics', { authorization: basic })).status, 401)
    const { status, text, headers } = await open('/metrics', { authorization: 'Bearer measure this service' })
    assert.equal(status, 200)
    assert.match(String(headers['content-type']), /^text\/plain/)
    assert.match(text, /mailroom_api_calls_total\{method="GET",route="\/lite\/users\/\{id\}",status="200"\} 1/)
    assert.match(text, /route="\(none\)",status="404"/)
    assert.ok(!text.includes('/no/such/path'))
  })

  test('/ is a page with the links to the rest, or JSON for who asks for JSON; HEAD and a trailing slash work', async () => {
    const view = {
      name: 'Mailroom',
      version: manifest.version,
      docs: `${rig.url}/docs`,
      openapi: `${rig.url}/openapi.json`,
      health: `${rig.url}/healthz`,
    }
    for (const accept of [undefined, '*/*', 'text/html,application/xhtml+xml,*/*;q=0.8', 'image/png']) {
      const { status, headers, text } = await open('/', accept === undefined ? {} : { accept })
      assert.deepEqual([status, headers['content-type'], headers['vary']], [200, 'text/html; charset=utf-8', 'Accept'])
      for (const link of [view.docs, view.openapi, view.health, `${rig.url}/console`])
        assert.ok(text.includes(`href="${link}"`), link)
      assert.match(text, new RegExp(`<h1>Mailroom</h1>[^]*${manifest.version.replaceAll('.', '\\.')}`))
      const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? ''
      const hash = createHash('sha256').update(style).digest('base64')
      const policy = String(headers['content-security-policy'])
      assert.ok(policy.includes(`style-src 'sha256-${hash}'`) && !policy.includes('script-src'), policy)
      assert.ok(!text.includes('<script'))
    }
    for (const accept of [
      'application/json',
      'application/json, text/plain, */*',
      'text/html;q=0.1, application/json',
    ]) {
      const answer = await open('/', { accept })
      assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/json'])
      assert.deepEqual(answer.json, view)
      assert.equal(answer.headers['vary'], 'Accept')
    }
    for (const link of [view.docs, view.openapi, view.health])
      assert.equal((await open(new URL(link).pathname)).status, 200)
    const document = (await open('/openapi.json')).json as unknown as OpenApi
    assert.equal(document.info.version, manifest.version)
    const head = await callRaw(rig.port, 'HEAD', '/', { headers: {} })
    assert.deepEqual([head.status, head.text], [200, ''])
    assert.ok(Number(head.headers['content-length']) > 1000)
    assert.equal((await callRaw(rig.port, 'POST', '/', { headers: {} })).status, 405)
  })

  test('/openapi.json describes every route that is served', async () => {
    const answer = await open('/openapi.json')
    assert.equal(answer.headers['content-type'], 'application/json')
    const document = answer.json as unknown as OpenApi
    assert.equal(document.openapi, '3.1.0')
    assert.deepEqual(document.servers, [{ url: rig.url }])
    for (const { method, path } of rig.app.routes) {
      const operation = document.paths[path.replaceAll('+}', '}')]?.[method.toLowerCase()]
      assert.ok(operation, `${method} ${path}`)
      const inPath = operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`)
      assert.deepEqual(inPath, path.replaceAll('+}', '}').match(/\{\w+\}/g) ?? [])
    }
    const ids = Object.values(document.paths).flatMap((operations) =>
      Object.values(operations).map((operation) => operation.operationId),
    )
    assert.equal(new Set(ids).size, ids.length)
  })

  test('an operation says what it takes, answers and refuses', () => {
    const document = buildOpenApi(routes)
    const operation = document.paths['/lite/users/{id}/things']?.post
    assert.ok(operation)
    assert.deepEqual(operation.security, [{ oauth1: [] }, { basic: [] }, { bearer: [] }])
    assert.deepEqual(
      operation.parameters.map(({ name, in: where, required, description, schema }) => ({
        name,
        where,
        required,
        description,
        type: schema.type,
      })),
      [
        {
          name: 'id',
          where: 'path',
          required: true,
          description: 'id of the user (lite) or account (2.0)',
          type: 'string',
        },
        { name: 'limit', where: 'query', required: false, description: 'most entries of one answer', type: 'integer' },
        { name: 'loud', where: 'query', required: false, description: 'louder', type: 'integer' },
      ],
    )
    const types = Object.keys(operation.requestBody?.content ?? {})
    assert.deepEqual(types, ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'])
    assert.deepEqual(operation.requestBody?.content['application/json']?.schema.required, ['callback_url'])
    assert.deepEqual(Object.keys(operation.responses), [
      '200',
      '400',
      '401',
      '404',
      '409',
      '413',
      '429',
      '431',
      '500',
      '503',
      '504',
    ])
    const { schemas = {}, responses = {} } = document.components
    assert.ok('Thing' in schemas && 'Error' in schemas && '503' in responses)
    assert.ok(!JSON.stringify(document).includes('$defs'))
  })

  test('every reference in the document leads somewhere', () => {
    const document = buildOpenApi(routes)
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/([\w-]+)"/g)]
    assert.ok(references.length > 10)
    for (const [, group = '', name = ''] of references)
      assert.ok(name in (document.components[group] ?? {}), `${group}/${name}`)
  })

  test('/docs shows every operation, escapes what it shows, and needs nothing from the network', async () => {
    const { text, headers, status } = await open('/docs')
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
    const pages = new Map<string, string>()
    for (const [, name = ''] of text.matchAll(/href="\/docs\/([^"#]+)"/g)) {
      const page = await open(`/docs/${name}`)
      assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'], name)
      assert.equal(page.headers['content-security-policy'], headers['content-security-policy'])
      pages.set(name, page.text)
    }
    const all = [text, ...pages.values()].join('\n')
    for (const { path, method } of rig.app.routes) {
      const shown = path.replaceAll('+}', '}').replaceAll(/(\{\w+\})/g, '<var>$1</var>')
      assert.ok(all.includes(`>${method}</b><code>${shown}</code>`), `${method} ${path}`)
    }
    assert.equal((await open('/docs/nosuch')).status, 404)
    assert.equal((await open('/docs?search=users')).text, text)
    assert.ok(all.includes('<b title="required">') && all.includes('&lt;b&gt;bold &amp; &quot;quoted&quot;&lt;/b&gt;'))
    assert.ok(all.includes('Adds a &lt;thing&gt;') && !all.includes('<b>bold'))
    assert.doesNotMatch(all, /(?:src|href)="(?:https?:)?\/\//)
    assert.doesNotMatch(all, /@import|url\(/)
    const policy = String(headers['content-security-policy'])
    for (const tag of ['style', 'script']) {
      const content = new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(text)?.[1] ?? ''
      assert.ok(policy.includes(`${tag}-src 'sha256-${createHash('sha256').update(content).digest('base64')}'`), tag)
    }
  })
})

suite('call log', () => {
  const row = (id: string): CallLogRecord => ({
    id,
    developerId: 'd',
    userId: null,
    at: 1,
    method: 'GET',
    path: '/',
    status: 200,
    durationMs: 1,
  })

  test('rows go out in batches, in order, and nobody waits for them', async () => {
    const batches: string[][] = []
    const gate = Promise.withResolvers<undefined>()
    const store = {
      append: async (rows: readonly CallLogRecord[]) => {
        await gate.promise
        batches.push(rows.map(({ id }) => id))
      },
    }
    const log = createCallLog({ store, log: silentLogger, perDay: 0, now: Date.now, batch: 2, everyMs: 5 })
    for (const id of ['1', '2', '3']) log.add(row(id))
    gate.resolve(undefined)
    await until('written', () => batches.length === 2)
    log.add(row('4'))
    await log.close()
    assert.deepEqual(batches, [['1', '2'], ['3'], ['4']])
  })

  test('a full buffer and a store that fails lose rows, never calls', async () => {
    const warnings: unknown[] = []
    const stored: string[] = []
    let fails = true
    const store = {
      append: (rows: readonly CallLogRecord[]) => {
        if (fails) return Promise.reject(new Error('away'))
        stored.push(...rows.map(({ id }) => id))
        return Promise.resolve()
      },
    }
    const logger = { ...silentLogger, warn: (...words: unknown[]) => void warnings.push(words[0]) }
    const log = createCallLog({ store, log: logger, perDay: 0, now: Date.now, capacity: 2, everyMs: 60_000 })
    for (const id of ['1', '2', '3']) log.add(row(id))
    await log.flush()
    fails = false
    log.add(row('4'))
    await log.close()
    assert.deepEqual(stored, ['4'])
    assert.ok(warnings.some((facts) => (facts as { rows: number }).rows === 3))
  })
})

test('/metrics of all processes wants a token, also where that of one is open', async (t) => {
  const rig = await startRig({ routes })
  t.after(() => rig.close())
  assert.equal((await rig.call('GET', '/metrics')).status, 200)
  assert.equal((await rig.call('GET', '/metrics?nodes=all')).status, 401)
})

test('before the store is open /metrics says so, to whoever has its token', async (t) => {
  const config = readConfig({ MAILROOM_PORT: '0', MAILROOM_METRICS_TOKEN: 'measure this service' })
  const server = createServer(createFront(config), config)
  t.after(() => server.close())
  const port = Number(new URL(await listen(server, 'MAILROOM', config.MAILROOM_HOST, config.MAILROOM_PORT)).port)
  const ask = (path: string, authorization = 'Bearer measure this service'): Promise<Answer> =>
    callRaw(port, 'GET', path, { headers: { authorization } })
  const { status, text, headers } = await ask('/metrics')
  assert.deepEqual([status, text], [200, '# TYPE mailroom_ready gauge\nmailroom_ready 0\n'])
  assert.match(String(headers['content-type']), /^text\/plain/)
  assert.equal((await ask('/metrics', 'Bearer wrong')).status, 401)
  assert.equal((await ask('/healthz')).status, 200)
  assert.equal((await ask('/readyz')).status, 503)
})
