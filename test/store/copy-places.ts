/** Stores for the tests of the copy: made, filled with something of everything, opened from both sides. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { silentLogger } from '../../engine/observe/log.ts'
import { newId } from '../../engine/store/ids.ts'
import type { Store } from '../../engine/store/port.ts'
import type { StoreTransfer } from '../../engine/store/transfer.ts'
import { openDatabase } from '../../engine/store/sqlite/database.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { openSqliteTransfer } from '../../engine/store/sqlite/transfer.ts'
import { createMailbox, moved, type Mailbox } from './contract/mailbox.ts'
import { attachmentRecord, epochStart, outboxRecord, tokenRecord, webhookRecord } from './contract/records.ts'
import { testDatabase, work } from './mongo-server.ts'

/** One place for a store: opened as a store to fill and to compare, and as a transfer to copy. */
export interface Place {
  /** As the command line names it. */
  readonly address: string
  store(): Promise<Store>
  /** As a service does, alone. */
  serve(): Promise<Store>
  transfer(role: 'source' | 'target'): Promise<StoreTransfer>
  /** Leaves the account's removal begun, as a process does that dies at it. No store may be open. */
  cutRemoval(accountId: string): Promise<void>
  remove(): Promise<void>
}

export async function sqlitePlace(): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), 'mailroom-copy-'))
  const path = join(directory, 'mailroom.sqlite')
  const store = (): Promise<Store> => createSqliteStore({ path, sync: 'off' })
  return {
    address: directory,
    store,
    serve: store,
    transfer: (role) => openSqliteTransfer(path, role),
    cutRemoval: async (accountId) => {
      const database = openDatabase(path, 'off', 2000)
      database.script(`CREATE TRIGGER cut BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'cut short'); END`)
      const opened = await store()
      await assert.rejects(opened.accounts.remove(accountId), { code: 'internal' })
      await opened.close()
      database.script('DROP TRIGGER cut')
      await database.close()
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

export async function mongoPlace(): Promise<Place> {
  const { openMongoTransfer } = await import('../../engine/store/mongo/transfer.ts')
  const database = testDatabase()
  return {
    address: database.uri,
    store: () => database.open(),
    async serve() {
      const store = await database.open({ lost: () => undefined })
      await store.nodes.start(work(), null)
      return store
    },
    transfer: (role) => openMongoTransfer({ uri: database.uri, role, timeoutMs: 10_000, log: silentLogger }),
    cutRemoval: async (of) => {
      const client = await MongoClient.connect(database.uri)
      const note = { _id: `account ${of}`, what: 'account', of, at: Date.now() - 120_000, done: false }
      await client.db().collection<typeof note>('removals').insertOne(note)
      await client.close()
    },
    remove: () => database.remove(),
  }
}

export const messages = 30

/** Something in every collection. */
export async function fill(store: Store): Promise<Mailbox> {
  const mailbox = await createMailbox(store)
  const { developer, user, account } = mailbox
  const added = Array.from({ length: messages }, (_, index) =>
    mailbox.added('INBOX', index + 1, index % 3 === 0 ? { attachments: [attachmentRecord(0)] } : {}, {
      flags: ['\\Seen'],
    }),
  )
  const events = added.map((one) => mailbox.event(one))
  const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
  const batch = await mailbox.batch('INBOX')
  await store.sync.apply({
    ...batch,
    added,
    changes: events.flatMap((event) => event.changes),
    outbox: events.flatMap((event) => event.outbox),
    contacts: added.map(({ id }) => ({
      userId: user.id,
      email: 'ada@example.com',
      name: 'Ada',
      key: `${id}:r`,
      ...counts,
    })),
    cursorAfter: moved(batch.cursorBefore, { uidNext: messages + 1, exists: messages }),
  })
  await mailbox.apply('INBOX', { vanished: [1], vanishedAt: epochStart })
  const webhook = webhookRecord(developer.id, { userId: user.id })
  await store.webhooks.create(webhook)
  const attempt = { at: epochStart, durationMs: 3, status: 500, error: 'HTTP 500', response: 'no' }
  const failed = outboxRecord(webhook, {
    state: 'failed',
    finishedAt: epochStart,
    attempts: [attempt],
    attemptCount: 1,
  })
  await store.webhooks.saveScan({ webhookId: webhook.id, accountId: account.id, after: null, done: true }, [failed])
  await store.tokens.create(tokenRecord(developer.id, { userId: user.id }))
  const shownSecret = 'abc[...]xyz'
  const provider = { developerId: developer.id, consumerKey: 'k', sealedSecret: 's', shownSecret, type: 'GMAIL_OAUTH2' }
  await store.providers.put({ ...provider, createdAt: epochStart })
  const token = { id: newId(), name: 'looks', hash: 'sha256:0', scopes: ['read'] as const }
  await store.operators.put({ ...token, createdAt: epochStart, revokedAt: null })
  await store.settings.put({ id: 'pace:imap.example.com', value: 3, setAt: epochStart })
  await store.nonces.remember(developer.apiKey, 'nonce', 1, Date.now() + 600_000)
  await store.nonces.remember(developer.apiKey, 'another nonce', 1, Date.now() + 600_000)
  await store.nonces.remember(developer.apiKey, 'expired nonce', 1, Date.now() - 1)
  const call = {
    id: newId(),
    developerId: developer.id,
    userId: user.id,
    at: epochStart,
    method: 'GET',
    path: '/lite/users',
  }
  const actor = { by: 'token', actorId: newId(), actorName: 'ops', address: '192.0.2.7' } as const
  const done = { action: 'accounts pause', target: account.id, details: {}, status: 200 }
  await store.audit.append({ id: newId(), at: epochStart, ...actor, ...done })
  await store.calls.append([{ ...call, status: 200, durationMs: 2 }])
  return mailbox
}
