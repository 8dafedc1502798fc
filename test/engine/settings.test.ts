/** What operators set is in force at once, and after a restart, until they take it back; a start that is cut short. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { createEngine, readConfig, silentLogger, type Engine } from '../../engine/index.ts'
import { webhookRecord } from '../store/contract/records.ts'
import { chosenStore } from '../support/store-choice.ts'

test('the pace of a host and what is kept for how long outlive a restart', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mailroom-settings-'))
  const store = chosenStore()
  t.after(async () => {
    await store.remove()
    rmSync(folder, { recursive: true })
  })
  const config = readConfig({ MAILROOM_DATA_DIR: folder, MAILROOM_CHANGE_RETENTION: '9d', ...store.env })
  const host = 'imap.example.com'
  async function run(work: (engine: Engine) => Promise<void>): Promise<readonly unknown[]> {
    const engine = await createEngine({ config, log: silentLogger })
    await engine.start()
    const { config: set, accounts, settings } = engine
    const before = [accounts.hosts.pace(host), set.MAILROOM_CHANGE_RETENTION, settings.isSet('changes')]
    await work(engine)
    const after = [accounts.hosts.pace(host), set.MAILROOM_CHANGE_RETENTION, settings.isSet('changes')]
    await engine.stop()
    return [...before, ...after]
  }
  const day = 86_400_000
  const set = await run(async ({ settings }) => {
    await settings.pace(host, 0)
    await settings.keep('changes', day)
  })
  assert.deepEqual(set, [null, 9 * day, false, 0, day, true])
  const freed = await run(async ({ settings }) => {
    await settings.pace(host, null)
    await settings.keep('changes', null)
  })
  assert.deepEqual(freed, [0, day, true, null, 9 * day, false])
  assert.deepEqual(await run(() => Promise.resolve()), [null, 9 * day, false, null, 9 * day, false])
})

test('an engine that is stopped while it starts begins nothing afterwards', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mailroom-stopped-'))
  const store = chosenStore()
  t.after(async () => {
    await store.remove()
    rmSync(folder, { recursive: true })
  })
  const warned: unknown[] = []
  const warn = (_facts: unknown, words?: string): void => void warned.push(words)
  const config = readConfig({ MAILROOM_DATA_DIR: folder, ...store.env })
  const engine = await createEngine({ config, log: { ...silentLogger, warn } })
  await engine.store.webhooks.create(webhookRecord('d'.repeat(24)))
  const starting = engine.start()
  await engine.stop()
  await starting.catch(() => undefined)
  for (let turn = 0; turn < 20; turn += 1) await immediate()
  assert.deepEqual(warned, [])
  assert.deepEqual(engine.webhooks.facts(), [])
  assert.equal(await engine.ready(), false)
})
