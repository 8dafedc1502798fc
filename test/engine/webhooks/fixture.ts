/** Webhooks that run on a real store, with users, accounts and messages that arrive as the sync stores them. */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { createBudget } from '../../../engine/budget.ts'
import { readConfig } from '../../../engine/config.ts'
import { createDevelopers } from '../../../engine/developers.ts'
import { AppError } from '../../../engine/errors.ts'
import { createMetrics } from '../../../engine/observe/metrics.ts'
import { createLogger, silentLogger } from '../../../engine/observe/log.ts'
import { decodeTransfer } from '../../../engine/messages/transfer-encoding.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import { changeId, newId } from '../../../engine/store/ids.ts'
import { createUndo } from '../../../engine/creation-undo.ts'
import type { Store } from '../../../engine/store/port.ts'
import type {
  AccountRecord,
  MessageRecord,
  OutboxRecord,
  Placement,
  UserRecord,
} from '../../../engine/store/records.ts'
import { freshCursor } from '../../../engine/store/rows.ts'
import { allSlots } from '../../../engine/store/slots.ts'
import { createWebhooks, type Webhooks } from '../../../engine/webhooks/index.ts'
import type { Asking } from '../../../engine/webhooks/explain.ts'
import type { Mail } from '../../../engine/webhooks/parts.ts'
import { accountRecord, userRecord } from '../../support/records.ts'
import { openTestStore } from '../../support/test-store.ts'
import { type Arrival, changeOf, messageOf } from './arrival.ts'

export { changeOf, facts, messageOf, type Arrival } from './arrival.ts'

export const apiSecret = 'developer-secret-0123456789'
export const developerId = newId()

/** A question that nobody gives up, and that may read what it likes. */
export const freely: Asking = { signal: new AbortController().signal, reads: () => undefined }

/** Fast retries, no jitter, loopback allowed. */
export const quick: Record<string, string> = {
  MAILROOM_ALLOW_PRIVATE: '1',
  MAILROOM_WEBHOOK_SCHEDULE: '40ms,60ms,80ms,100ms,120ms',
  MAILROOM_WEBHOOK_JITTER: '0',
  MAILROOM_WEBHOOK_TIMEOUT: '5s',
  MAILROOM_WEBHOOK_PROBE: '200ms',
  MAILROOM_HISTORICAL_PAUSE: '1ms',
  MAILROOM_SHUTDOWN_TIMEOUT: '2s',
}

/** Mail of tests; what is not there is not found. */
export interface TestMail extends Mail {
  /** Section → text, by message id, or by Message-ID for mail that is still to arrive. */
  readonly bodies: Map<string, Readonly<Record<string, string>>>
  /** Of every message. */
  header: string
  /** While set, every call rejects with it. */
  broken: AppError | null
  calls: number
}

export function createTestMail(): TestMail {
  const mail: TestMail = {
    bodies: new Map(),
    header:
      'Subject: Hello\r\nX-Note: one\r\nx-note: two\r\nMessage-Id: <1@x>\r\nMime-version: 1.0\r\nDKIM-SIGNATURE: v=1\r\n\r\n',
    broken: null,
    calls: 0,
    fetchParts(message, sections) {
      mail.calls += 1
      if (mail.broken !== null) return Promise.reject(mail.broken)
      const parts = partsOf(mail, message, sections)
      return parts === null ? Promise.reject(new AppError('not_found', 'the message is gone')) : Promise.resolve(parts)
    },
    fetchMany(_, wanted) {
      mail.calls += 1
      if (mail.broken !== null) return Promise.reject(mail.broken)
      const found = wanted.map(({ message, sections }) => [message.id, partsOf(mail, message, sections)] as const)
      return Promise.resolve(new Map(found.flatMap(([id, parts]) => (parts?.size ? [[id, parts]] : []))))
    },
    streamPart(message, section, encoding) {
      const texts = mail.fetchParts(message, [section], Number.MAX_SAFE_INTEGER)
      return texts.then((found) => {
        const bytes = found.get(section)
        if (bytes === undefined) throw new AppError('not_found', `section ${section} is not there`)
        return Readable.from(piecesOf(decodeTransfer(bytes, encoding)))
      })
    },
    fetchHeaders() {
      if (mail.broken !== null) return Promise.reject(mail.broken)
      return Promise.resolve(Buffer.from(mail.header))
    },
  }
  return mail
}

function partsOf(mail: TestMail, message: MessageRecord, sections: readonly string[]): Map<string, Buffer> | null {
  const texts = mail.bodies.get(message.id) ?? mail.bodies.get(message.emailMessageId ?? '')
  if (texts === undefined) return null
  return new Map(sections.flatMap((one) => (texts[one] === undefined ? [] : [[one, Buffer.from(texts[one])]])))
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
}

export interface Rig {
  readonly store: Store
  /** Starts other ones on the same store; `crash` drops them without a goodbye. */
  start(env?: Record<string, string>): Promise<Running>
  readonly mail: TestMail
  user(): Promise<UserRecord>
  account(user: UserRecord, label?: string): Promise<AccountRecord>
  close(): Promise<void>
}

export interface Running {
  readonly webhooks: Webhooks
  readonly metrics: ReturnType<typeof createMetrics>
  stop(): Promise<void>
}

const sealer = createSealer(randomBytes(32))

export async function createRig(): Promise<Rig> {
  const { store, remove } = await openTestStore()
  const mail = createTestMail()
  const started: Running[] = []
  await store.developers.create({
    id: developerId,
    apiKey: 'key',
    sealedSecret: sealer.seal(apiSecret, developerId),
    statusCallbackUrl: null,
    createdAt: Date.now(),
  })
  return {
    store,
    mail,
    async start(env = {}) {
      const config = readConfig({ ...quick, ...env })
      const metrics = createMetrics()
      const undo = createUndo(silentLogger, 2 * config.MAILROOM_STORE_TIMEOUT)
      const webhooks = createWebhooks({
        config,
        log: process.env['TEST_LOG'] === undefined ? silentLogger : createLogger({ MAILROOM_LOG_LEVEL: 'debug' }),
        metrics,
        store,
        sealer,
        developers: createDevelopers({ store, sealer, config }),
        budget: createBudget(config.MAILROOM_BUFFER_MAX),
        mail,
        undo,
        baseUrl: () => 'https://mail.example',
      })
      await webhooks.gained(allSlots)
      await webhooks.scan(allSlots)
      const stop = (): Promise<void> => {
        undo.close()
        return webhooks.stopAll()
      }
      const running = { webhooks, metrics, stop }
      started.push(running)
      return running
    },
    user: () => createUser(store),
    account: (user, label) => createAccount(store, user, label),
    async close() {
      await Promise.all(started.map((running) => running.stop()))
      await remove()
    },
  }
}

async function createUser(store: Store): Promise<UserRecord> {
  const user = userRecord(developerId, { emailAddresses: ['me@example.com'] })
  await store.users.create(user)
  return user
}

async function createAccount(
  store: Store,
  user: UserRecord,
  label = `me::${newId().slice(-6)}`,
): Promise<AccountRecord> {
  const account = accountRecord(user, { label, email: 'me@example.com', createdAt: Date.now() })
  await store.accounts.create(account)
  const claimed = await store.accounts.claim(account.id)
  if (claimed === null) throw new Error('account not claimed')
  return claimed
}

/**
 * Stores messages as one sync batch of a folder, planned by these webhooks and reported to them; null = not planned
 * (back-fill).
 */
export async function arrive(
  store: Store,
  webhooks: Webhooks | null,
  account: AccountRecord,
  arrivals: readonly Arrival[],
): Promise<{ messages: MessageRecord[]; rows: readonly OutboxRecord[] }> {
  const path = arrivals[0]?.path ?? 'INBOX'
  await store.folders.reconcile(
    account.id,
    account.epoch,
    [
      {
        path,
        delimiter: '/',
        attributes: [],
        specialUse: path === 'Sent' ? '\\Sent' : null,
        selectable: true,
        messages: null,
        unseen: null,
      },
    ],
    false,
  )
  const folder = await store.folders.byPath(account.id, path)
  if (folder === null) throw new Error('no folder')
  const before = folder.cursor
  const firstUid = before?.uidNext ?? 1
  const planned = arrivals.map((arrival, index) => {
    const uid = firstUid + index
    const id = changeId(account.id, folder.id, '1', uid, 'added', 0)
    const message = messageOf(account, arrival, uid, webhooks === null ? null : id)
    return { change: changeOf(account, message, arrival, id), message }
  })
  const outbox = (await webhooks?.plan(account, planned, (path) => path)) ?? []
  const applied = await store.sync.apply({
    accountId: account.id,
    epoch: account.epoch,
    folderId: folder.id,
    cursorBefore: before,
    cursorAfter: { ...freshCursor('1'), uidNext: firstUid + arrivals.length, exists: firstUid + arrivals.length - 1 },
    added: planned.map(({ message, change }) => ({
      id: message.id,
      identity: message.identity,
      facts: message,
      placement: placementOf(message),
      firstChangeId: webhooks === null ? null : change.id,
    })),
    flagUpdates: [],
    vanished: [],
    vanishedAt: 0,
    reported: [],
    changes: webhooks === null ? [] : planned.map(({ change }) => change),
    outbox,
    contacts: [],
  })
  webhooks?.stored(account.id, outbox, applied.changes)
  return { messages: planned.map(({ message }) => message), rows: outbox }
}

function placementOf(message: MessageRecord): Placement {
  const [place] = message.placements
  if (place === undefined) throw new Error('a message without a place')
  return place
}
