/**
 * Connect tokens go 30 days after they expire: the embedded store takes them at the next creation, MongoDB by its own
 * timer.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { newId } from '../../engine/store/ids.ts'
import { tokensKeptMs } from '../../engine/store/keyed.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { needs } from '../support/require.ts'
import { epochStart, tokenRecord } from './contract/records.ts'
import { testDatabase } from './mongo-server.ts'

const now = epochStart + 10 * tokensKeptMs

describe('old connect tokens', () => {
  test('go at the next creation', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'mailroom-tokens-'))
    t.after(() => rmSync(directory, { recursive: true, force: true }))
    const store = await createSqliteStore({ path: join(directory, 'store.sqlite'), sync: 'off', now: () => now })
    const kept = { ...tokenRecord(newId()), expiresAt: now - tokensKeptMs + 1 }
    const old = { ...tokenRecord(kept.developerId), expiresAt: now - tokensKeptMs - 1, usedAt: epochStart }
    await store.tokens.create(old)
    await store.tokens.create(kept)
    await store.tokens.create(tokenRecord(newId()))
    assert.equal(await store.tokens.find(old.token), null)
    assert.deepEqual(await store.tokens.find(kept.token), kept)
    await store.close()
  })

  // The timer itself runs once a minute: what is asked is what it goes by.
  test('have their time in the row, and the server an index that takes them by it', needs('mongodb'), async () => {
    const database = testDatabase()
    const client = new MongoClient(database.uri)
    try {
      const store = await database.open()
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      const tokens = client.db().collection<{ _id: string; goesAt: Date }>('tokens')
      assert.deepEqual((await tokens.findOne({ _id: token.token }))?.goesAt, new Date(token.expiresAt + tokensKeptMs))
      const timed = (await tokens.indexes()).filter(({ expireAfterSeconds }) => expireAfterSeconds !== undefined)
      assert.deepEqual(
        timed.map(({ key, expireAfterSeconds }) => ({ key, expireAfterSeconds })),
        [{ key: { goesAt: 1 }, expireAfterSeconds: 0 }],
      )
    } finally {
      await client.close()
      await database.remove()
    }
  })
})
