/**
 * The management listener: what operators need is served there alone, on loopback unless MAILROOM_ADMIN_HOST says
 * otherwise, and also while the API's port is at its limit.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { openStage } from '../e2e/stage.ts'
import { until } from '../support/until.ts'
import { addressOf, destroyAll, hold } from './sockets.ts'
import { say } from './stranger.ts'

const run = (command: string, args: readonly string[], env: Record<string, string>) =>
  promisify(execFile)(command, args, { env: { PATH: process.env['PATH'], ...env } })

suite('the management listener', () => {
  test('serves health, metrics, console and admin API alone, and refuses no health check for the API', async () => {
    await using parts = new AsyncDisposableStack()
    const env = {
      MAILROOM_ADMIN_PORT: '0',
      MAILROOM_HOST: '0.0.0.0',
      MAILROOM_PUBLIC_URL: 'https://mail.example',
      MAILROOM_CONNECTIONS_MAX: '10',
    }
    const stage = await openStage({ env })
    parts.defer(() => stage.remove())
    const { service } = stage
    const [, own = ''] = /"management":"([^"]+)"/.exec(service.log()) ?? []
    // All of 127.0.0.0/8 is this machine. The API listens at every address, the management listener at one.
    const elsewhere = (base: string): string => base.replace('//127.0.0.1:', '//127.0.0.2:')
    assert.equal((await say(`${elsewhere(service.url)}/healthz`)).status, 200)
    await assert.rejects(say(`${elsewhere(own)}/healthz`), { code: 'ECONNREFUSED' })
    const status = async (base: string, path: string): Promise<number> => (await say(base + path)).status
    const paths = ['/healthz', '/readyz', '/metrics', '/console/login', '/admin/overview', '/lite/users', '/docs']
    assert.deepEqual(await Promise.all(paths.map((path) => status(own, path))), [200, 200, 200, 200, 401, 404, 404])
    const found = []
    for (const path of paths) found.push(await status(service.url, path))
    assert.deepEqual(found, [200, 200, 404, 404, 404, 401, 200])
    assert.equal((await say(`${service.url}/healthz`)).body, '{"status":"ok"}')
    const login = { method: 'POST', headers: { origin: own, 'content-type': 'application/x-www-form-urlencoded' } }
    const [, password = ''] = /"console":"[^"]+","shownOnce":"([^"]+)"/.exec(service.log()) ?? []
    assert.equal((await say(`${own}/console/login`, { ...login, body: `password=${password}` })).status, 303)

    const foreign = await say(`${own}/console/login`, { headers: { host: 'evil.example' } })
    assert.equal(foreign.status, 400)
    assert.match(foreign.body, /Host: not a name of this service/)

    // What the image asks of itself.
    const check = /^HEALTHCHECK .*\\\n +CMD (\[.*\])$/m.exec(readFileSync('Dockerfile', 'utf8'))?.[1] ?? assert.fail()
    const [command = '', ...args] = JSON.parse(check) as string[]
    const portOf = (base: string): string => new URL(base).port
    const ports = [{ MAILROOM_ADMIN_PORT: portOf(own), MAILROOM_PORT: '1' }, { MAILROOM_PORT: portOf(service.url) }]
    for (const env of ports) assert.equal((await run(command, args, env)).stderr, '')
    await assert.rejects(run(command, args, { MAILROOM_PORT: '1' }))

    const held = []
    for (let n = 0; n < 60; n += 1) held.push(await hold(service.url, addressOf(n), []))
    await until('the API refuses', async () => (await say(`${service.url}/docs`).catch(() => null))?.status !== 200)
    for (let n = 0; n < 20; n += 1) assert.equal(await status(own, '/healthz'), 200)
    destroyAll(held)
  })
})
