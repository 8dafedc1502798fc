/** What an operator does to the real service from outside: the command line, backups, an orderly end. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { newId, silentLogger } from '../../engine/index.ts'
import { readConfig } from '../../engine/config.ts'
import { openStore } from '../../engine/sealed-store.ts'
import { startService, type Service } from '../support/service.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')

interface Ended {
  readonly status: number
  readonly out: string
  readonly error: string
}

/** Runs `mailroom <words>`, as its bin does. */
function mailroom(env: Readonly<Record<string, string>>, ...words: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { PATH: process.env['PATH'] ?? '', ...env }, timeout: 30_000 }
    execFile(join(root, 'main.ts'), words, options, (error, out, errors) => {
      resolve({ status: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, error: errors })
    })
  })
}

suite('a service and its operator', () => {
  let service: Service
  let env: Record<string, string> = {}
  before(async () => {
    service = await startService()
  })
  after(() => service.remove())

  test('its bin shows what there is', async () => {
    const { status, out, error } = await mailroom({}, '--help')
    assert.deepEqual([status, error], [0, ''])
    assert.match(out, /^usage: mailroom \[command\]/)
  })

  const backups = (): string[] => readdirSync(join(service.dataDir, 'backups'))

  test('the first token is made beside the running service, and is good at once', async () => {
    const local = { MAILROOM_DATA_DIR: service.dataDir }
    const made = await mailroom(
      local,
      'tokens',
      'create',
      '--name',
      'me',
      '--scopes',
      'read,act,keys',
      '--local',
      '--json',
    )
    assert.equal(made.status, 0, made.error)
    const { token, scopes } = JSON.parse(made.out) as { token: string; scopes: string[] }
    assert.match(token, /^mra_/)
    assert.deepEqual(scopes, ['read', 'act', 'keys'])
    env = { MAILROOM_URL: service.url, MAILROOM_ADMIN_TOKEN: token }
    const wrong = await mailroom({ ...env, MAILROOM_ADMIN_TOKEN: `${token}x` }, 'backup')
    assert.equal(wrong.status, 1)
    assert.match(wrong.error, /Authorization: the token is unknown or revoked \(401\)/)
    const least = await mailroom(local, 'tokens', 'create', '--name', 'looks', '--local')
    const readOnly = /^token: (mra_\S+)$/m.exec(least.out)?.[1] ?? ''
    const refused = await mailroom({ ...env, MAILROOM_ADMIN_TOKEN: readOnly }, 'backup')
    assert.match(refused.error, /lacks the scope act \(403\)/)
  })

  test('a backup is made while it runs, and put back while it does not', async () => {
    const made = await mailroom(env, 'backup', '--json')
    assert.equal(made.status, 0, made.error)
    const { name, bytes } = JSON.parse(made.out) as { name: string; bytes: number }
    assert(bytes > 10_000)
    assert.deepEqual(backups(), [name])
    const file = join(service.dataDir, 'backups', name)
    const own = { MAILROOM_DATA_DIR: service.dataDir }
    const running = await mailroom(own, 'restore', file)
    assert.equal(running.status, 1)
    assert.match(running.error, /in use by another process/)
    await service.stop()
    const restored = await mailroom(own, 'restore', file)
    assert.equal(restored.status, 0, restored.error)
    assert.match(restored.out, /the store that was there is .*mailroom\.sqlite\.before-/)
    await service.start()
    assert.equal((await service.api('GET', '/lite/users')).status, 200)
    env = { ...env, MAILROOM_URL: service.url }
  })

  test('killed in the middle of a backup, it leaves none under the name of one', async () => {
    await service.stop()
    const config = readConfig({ MAILROOM_DATA_DIR: service.dataDir, MAILROOM_SQLITE_SYNC: 'off' })
    const store = await openStore(config, silentLogger)
    const call = { developerId: 'd', userId: null, at: Date.now(), method: 'GET', status: 200, durationMs: 1 }
    for (let n = 0; n < 40; n += 1)
      await store.calls.append(Array.from({ length: 500 }, () => ({ ...call, id: newId(), path: '/x'.repeat(2000) })))
    await store.close()
    await service.start()
    const before = backups()
    void fetch(`${service.url}/admin/backup`, {
      method: 'POST',
      headers: { authorization: `Bearer ${String(env['MAILROOM_ADMIN_TOKEN'])}` },
    }).catch(() => undefined)
    while (!backups().some((name) => name.endsWith('.part'))) await turn()
    await service.kill9()
    const left = backups().filter((name) => !before.includes(name))
    assert(left.length > 0 && left.every((name) => name.includes('.part')), left.join())
    await service.start()
    const made = await mailroom({ ...env, MAILROOM_URL: service.url }, 'backup', '--json')
    assert.equal(made.status, 0, made.error)
    assert.deepEqual(backups().sort(), [...before, (JSON.parse(made.out) as { name: string }).name].sort())
  })

  test('at its end it is not ready first, while it still takes calls', async () => {
    await service.stop()
    await service.start({ MAILROOM_DRAIN_WAIT: '15s' })
    const status = async (path: string): Promise<number> => (await fetch(service.url + path)).status
    assert.equal(await status('/readyz'), 200)
    const stopping = service.stop()
    await until('not ready', async () => (await status('/readyz')) === 503, { withinMs: 12_000 })
    assert.equal(await status('/healthz'), 200)
    assert.equal((await service.api('GET', '/lite/users')).status, 200)
    assert.equal(await stopping, 0)
    await assert.rejects(fetch(`${service.url}/healthz`))
    assert(!existsSync(join(service.dataDir, 'held')))
  })
})
