/**
 * The OpenAPI document of all routes: what is said of one parameter is said of it alone, all is described, examples
 * fit.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { z } from 'zod'
import { resourceRoutes } from '../../../api/app.ts'
import { answerOf, buildOpenApi, createSchemaPrinter, type Operation, propertiesOf } from '../../../api/openapi.ts'
import { systemRoutes } from '../../../api/system.ts'
import { documented, text } from '../../../api/values.ts'
import type { Json } from '../../../api/examples.ts'
import { validate } from '../../support/json-schema.ts'

const document = buildOpenApi([...resourceRoutes, ...systemRoutes(resourceRoutes)])
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, path, operation })),
)

interface Named {
  /** 'POST /lite/users password' */
  readonly at: string
  readonly name: string
  readonly schema: Json
  readonly description: unknown
}

function bodyOf(operation: Operation): Json {
  return operation.requestBody?.content['application/json']?.schema ?? {}
}

const parameters: readonly Named[] = operations.flatMap(({ name: of, operation }) => [
  ...operation.parameters.map(({ name, schema, description }) => ({ at: `${of} ${name}`, name, schema, description })),
  ...Object.entries(propertiesOf(bodyOf(operation)).properties).map(([name, schema]) => ({
    at: `${of} ${name}`,
    name,
    schema,
    description: schema.description,
  })),
])

/** Every schema below, with where it is. */
function schemasIn(value: unknown, at: string): { readonly at: string; readonly schema: Json }[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.entries(value).flatMap(([key, one]) =>
    ['examples', 'example'].includes(key) ? [] : schemasIn(one, `${at}/${key}`),
  )
  return Array.isArray(value) ? inner : [{ at, schema: value as Json }, ...inner]
}

suite('parameters', () => {
  test('documenting a schema leaves the one that is shared as it was', () => {
    const print = (schema: z.ZodType): Json => createSchemaPrinter().print(schema)
    const before = print(z.object({ text }))
    const special = documented(text, { type: 'string', examples: ['special'] })
    const described = documented(text.optional(), { type: 'string', description: 'special' })
    assert.deepEqual(print(z.object({ text })), before)
    assert.deepEqual(print(special).examples, ['special'])
    assert.equal(print(described).description, 'special')
    assert.equal(special.parse(5), '5')
  })

  test('examples belong to the parameter', () => {
    const mimeTypes = parameters.filter(({ schema }) => JSON.stringify(schema.examples ?? '').includes('text/'))
    assert.deepEqual(new Set(mimeTypes.map(({ name }) => name)), new Set(['body_type', 'type']))
    const names = new Map<string, Set<string>>()
    for (const { name, schema } of parameters) {
      const key = JSON.stringify(schema.examples ?? null)
      if (key !== 'null') names.set(key, (names.get(key) ?? new Set()).add(name))
    }
    // The same by chance: an address that is the login name too, names of one key.
    const shared = [...names.values()].filter((one) => one.size > 1).map((one) => [...one].sort().join(' '))
    assert.deepEqual(shared.sort(), [
      'body_type type',
      'callback_url source_callback_url',
      'dst_folder new_folder_id',
      'dst_source source',
      'email username',
      'migrate_account_id user_id',
      'source_sync_folders sync_folders',
    ])
  })

  test('every one has a description', () => {
    assert.ok(parameters.length > 400)
    const bare = parameters.filter(({ description }) => typeof description !== 'string' || description === '')
    assert.deepEqual(
      bare.map(({ at }) => at),
      [],
    )
  })

  test('every example is what the schema asks for', () => {
    const examples = schemasIn(document, '#').flatMap(({ at, schema }) => {
      const given: unknown[] = Array.isArray(schema.examples) ? schema.examples : []
      return given.map((example) => ({ at, problem: validate(schema, example, document as unknown as Json) }))
    })
    assert.ok(examples.length > 100)
    assert.deepEqual(
      examples.filter(({ problem }) => problem !== null),
      [],
    )
    for (const { operation } of operations)
      for (const { schema, example } of operation.parameters)
        if (example !== undefined && schema.type === 'string')
          assert.equal(validate(schema, example, document as unknown as Json), null)
  })

  test('bounds are those of the API: no safe integers, ports from 1 to 65535, status of an edit 1 alone', () => {
    const unsafe = schemasIn(document, '#').filter(({ schema }) =>
      [schema.minimum, schema.maximum].some((bound) => Math.abs(Number(bound ?? 0)) >= Number.MAX_SAFE_INTEGER),
    )
    assert.deepEqual(unsafe, [])
    const ports = schemasIn(document, '#').flatMap(({ schema }) => {
      const { port } = propertiesOf(schema).properties
      return port === undefined || typeof port !== 'object' ? [] : [port]
    })
    assert.ok(ports.length > 4)
    for (const { minimum, maximum } of ports) assert.deepEqual([minimum, maximum], [1, 65_535])
    const edit = document.paths['/lite/users/{id}/email_accounts/{label}']?.post
    assert.ok(edit)
    assert.deepEqual(propertiesOf(bodyOf(edit)).properties['status']?.enum, [1])
  })
})

suite('answers', () => {
  const accountStatus = 'X-Service-Email-Account-Status'
  const headersOf = (response: Json | undefined): string[] => {
    const name = typeof response?.$ref === 'string' ? (response.$ref.split('/').at(-1) ?? '') : ''
    const whole = name === '' ? response : (document.components.responses?.[name] as Json | undefined)
    return Object.keys(whole?.headers ?? {})
  }

  test('each names the headers that it comes with', () => {
    for (const { name, path, operation } of operations) {
      const headers = headersOf(answerOf(operation).answer)
      assert.ok(headers.includes('X-Request-Id'), name)
      assert.equal(
        headers.includes('X-RateLimit-Remaining'),
        operation.security.some((one) => 'basic' in one),
        name,
      )
      if (path.includes('{label}')) assert.ok(headers.includes(accountStatus), name)
      if (path.startsWith('/lite/users/{id}')) assert.ok(headers.includes('X-RateLimit-IMAP-Reset'), name)
      for (const status of ['429', '503', '504'])
        if (status in operation.responses)
          assert.ok(headersOf(operation.responses[status]).includes('Retry-After'), `${name} ${status}`)
    }
    assert.ok(headersOf(document.paths['/lite/users']?.post?.responses['200']).includes(accountStatus))
    assert.ok(!headersOf(document.paths['/lite/users']?.get?.responses['200']).includes(accountStatus))
  })

  test('the status header has the name that it is given', () => {
    const renamed = buildOpenApi(resourceRoutes, 'X-Other-Status')
    const { headers } = renamed.paths['/lite/users/{id}/email_accounts/{label}']?.get?.responses['200'] ?? {}
    assert.deepEqual((headers as Json)['X-Other-Status'], { $ref: `#/components/headers/${accountStatus}` })
    assert.ok(renamed.info.description.includes('`X-Other-Status`'))
    assert.ok(!(accountStatus in (headers as Json)))
  })

  test('a label that is taken is a conflict', () => {
    for (const path of ['/lite/users/{id}/email_accounts', '/lite/users/{id}/email_accounts/{label}'])
      assert.ok('409' in (document.paths[path]?.post?.responses ?? {}), path)
  })

  test('every way that a login can fail has its feedback_code', () => {
    const create = document.paths['/lite/users/{id}/email_accounts']?.post?.responses['200']?.content as Json
    const { schema } = create['application/json'] as { readonly schema: Json }
    const codes = propertiesOf(schema).properties['feedback_code']?.enum as readonly string[]
    assert.ok(['invalid_credentials', 'connection_refused', 'timeout', 'tls'].every((code) => codes.includes(code)))
    assert.ok(!codes.includes('auth_rejected'))
  })
})
