/** A webhooks wing on a real SQLite store, with users, accounts and messages that arrive as the sync stores them. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../../engine/config.ts'
import { AppError } from '../../../engine/errors.ts'
import { createMetrics } from '../../../engine/observe/metrics.ts'
import { createLogger, silentLogger } from '../../../engine/observe/log.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import { changeId, folderId, messageId, newId, threadId } from '../../../engine/store/ids.ts'
import type { ChangeDraft, Store } from '../../../engine/store/port.ts'
import type {
  AccountRecord,
  ChangeKind,
  MessageFacts,
  MessageRecord,
  OutboxRecord,
  Placement,
  UserRecord,
} from '../../../engine/store/records.ts'
import { freshCursor, freshResume } from '../../../engine/store/rows.ts'
import { createSqliteStore } from '../../../engine/store/sqlite/index.ts'
import { createWebhooks } from '../../../engine/webhooks/index.ts'
import type { Mail } from '../../../engine/webhooks/contents.ts'
import type { Webhooks } from '../../../engine/webhooks/types.ts'

export const apiSecret = 'developer-secret-0123456789'
export const developerId = newId()

/** Fast retries, no jitter, loopback allowed. */
export const quick: Record<string, string> = {
  MAILROOM_ALLOW_PRIVATE: '1',
  MAILROOM_WEBHOOK_SCHEDULE: '40ms,60ms,80ms,100ms,120ms',
  MAILROOM_WEBHOOK_JITTER: '0',
  MAILROOM_WEBHOOK_TIMEOUT: '400ms',
  MAILROOM_WEBHOOK_PROBE: '200ms',
  MAILROOM_HISTORICAL_PAUSE: '1ms',
  MAILROOM_SHUTDOWN_TIMEOUT: '2s',
}

/** Mail of tests: section → text, per message id; what is not there is not found. */
export interface TestMail extends Mail {
  readonly bodies: Map<string, Readonly<Record<string, string>>>
  /** While set, every call rejects with it. */
  broken: AppError | null
  calls: number
}

export function createTestMail(): TestMail {
  const mail: TestMail = {
    bodies: new Map(),
    broken: null,
    calls: 0,
    fetchParts(_accountId, message, sections) {
      mail.calls += 1
      if (mail.broken !== null) return Promise.reject(mail.broken)
      const texts = mail.bodies.get(message.id)
      if (texts === undefined) return Promise.reject(new AppError('not_found', 'the message is gone'))
      return Promise.resolve(
        new Map(sections.flatMap((one) => (texts[one] === undefined ? [] : [[one, Buffer.from(texts[one])]]))),
      )
    },
    fetchHeaders() {
      if (mail.broken !== null) return Promise.reject(mail.broken)
      return Promise.resolve(Buffer.from('Subject: Hello\r\nX-Note: one\r\nX-Note: two\r\n\r\n'))
    },
  }
  return mail
}

export interface House {
  readonly store: Store
  readonly path: string
  /** Starts another wing on the same store; `crash` drops one without a goodbye. */
  wing(env?: Record<string, string>): Promise<Wing>
  readonly mail: TestMail
  user(): Promise<UserRecord>
  account(user: UserRecord, label?: string): Promise<AccountRecord>
  close(): Promise<void>
}

export interface Wing {
  readonly webhooks: Webhooks
  readonly metrics: ReturnType<typeof createMetrics>
  stop(): Promise<void>
}

const sealer = createSealer(randomBytes(32))

export async function createHouse(): Promise<House> {
  const directory = mkdtempSync(join(tmpdir(), 'mailroom-webhooks-'))
  const path = join(directory, 'mailroom.db')
  const store = await createSqliteStore({ path, sync: 'off' })
  const mail = createTestMail()
  const wings: Wing[] = []
  await store.developers.create({
    id: developerId,
    apiKey: 'key',
    sealedSecret: sealer.seal(apiSecret, developerId),
    statusCallbackUrl: null,
    createdAt: Date.now(),
  })
  return {
    store,
    path,
    mail,
    async wing(env = {}) {
      const config = readConfig({ ...quick, ...env })
      const metrics = createMetrics()
      const webhooks = createWebhooks({
        config,
        log: process.env['TEST_LOG'] === undefined ? silentLogger : createLogger({ MAILROOM_LOG_LEVEL: 'debug' }),
        metrics,
        store,
        sealer,
        mail,
        baseUrl: () => 'https://mail.example',
      })
      await webhooks.startAll()
      const wing = { webhooks, metrics, stop: () => webhooks.stopAll() }
      wings.push(wing)
      return wing
    },
    user: () => createUser(store),
    account: (user, label) => createAccount(store, user, label),
    async close() {
      await Promise.all(wings.map((wing) => wing.stop()))
      await store.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function createUser(store: Store): Promise<UserRecord> {
  const user = {
    id: newId(),
    developerId,
    firstName: '',
    lastName: '',
    emailAddresses: ['me@example.com'],
    createdAt: Date.now(),
  }
  await store.users.create(user)
  return user
}

async function createAccount(
  store: Store,
  user: UserRecord,
  label = `me::${newId().slice(-6)}`,
): Promise<AccountRecord> {
  const id = newId()
  const account: AccountRecord = {
    id,
    developerId: user.developerId,
    userId: user.id,
    label,
    email: 'me@example.com',
    server: 'imap.example.com',
    port: 993,
    useSsl: true,
    username: 'me',
    authType: 'password',
    sealedCredential: '',
    providerKey: null,
    statusCallbackUrl: null,
    options: {
      syncFlags: true,
      syncAllFolders: false,
      expungeOnDeletedFlag: false,
      rawFileList: false,
      callbackUrl: null,
    },
    status: 'OK',
    statusMessage: null,
    statusVersion: 0,
    paused: false,
    resume: freshResume,
    epoch: 0,
    createdAt: Date.now(),
  }
  await store.accounts.create(account)
  const claimed = await store.accounts.claim(id)
  if (claimed === null) throw new Error('account not claimed')
  return claimed
}

const nobody = { from: [], sender: [], replyTo: [], to: [], cc: [], bcc: [], returnPath: [] }

/** Facts of a plain message; `name` makes its Message-ID and subject. */
export function facts(name: string, more: Partial<MessageFacts> = {}): MessageFacts {
  const emailMessageId = `${name}@example.com`
  return {
    emailMessageId,
    hostedMessageId: null,
    hostedThreadId: null,
    threadId: threadId('thread', emailMessageId),
    sentAt: 1_700_000_000_000,
    receivedAt: 1_700_000_001_000,
    size: 1000,
    subject: `Subject of ${name}`,
    addresses: {
      ...nobody,
      from: [{ name: 'Ada', email: 'ada@mail.example.org' }],
      to: [{ name: '', email: 'me@example.com' }],
    },
    inReplyTo: null,
    references: [],
    listHeaders: {},
    receivedHeaders: [],
    bodies: [
      { section: '1', type: 'text/plain', charset: 'utf-8', encoding: '8bit', size: 20, flowed: false, delSp: false },
    ],
    attachments: [],
    ...more,
  }
}

export interface Arrival {
  readonly facts: MessageFacts
  readonly kind?: ChangeKind
  readonly first?: boolean
  readonly path?: string
  readonly flags?: readonly string[]
}

export function messageOf(
  account: AccountRecord,
  arrival: Arrival,
  uid: number,
  changeIdOf: string | null,
): MessageRecord {
  const { path = 'INBOX', flags = [] } = arrival
  const identity = `mid:${arrival.facts.emailMessageId ?? uid}`
  const placement: Placement = {
    folderId: folderId(account.id, path),
    path,
    uidValidity: '1',
    uid,
    flags,
    modseq: '0',
    rev: 0,
    quiet: false,
  }
  return {
    ...arrival.facts,
    id: messageId(account.id, identity),
    accountId: account.id,
    identity,
    firstChangeId: changeIdOf,
    indexedAt: Date.now(),
    placements: [placement],
    gone: [],
  }
}

export function changeOf(account: AccountRecord, message: MessageRecord, arrival: Arrival, id: string): ChangeDraft {
  const [place] = message.placements
  if (place === undefined) throw new Error('a message without a place')
  return {
    id,
    accountId: account.id,
    userId: account.userId,
    kind: arrival.kind ?? 'received',
    first: arrival.first ?? true,
    messageId: message.id,
    folderId: place.folderId,
    path: place.path,
    uid: place.uid,
    uidValidity: place.uidValidity,
    flags: place.flags,
    folders: message.placements.map((one) => one.path),
    at: Date.now(),
  }
}

/** Stores messages as one sync batch of a folder, planned by the wing and told to it; null = planned by nobody (back-fill). */
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
    told: [],
    changes: webhooks === null ? [] : planned.map(({ change }) => change),
    outbox: webhooks?.plan(account, planned) ?? [],
    contacts: [],
    counts: null,
  })
  webhooks?.stored(account.id, applied.outbox, applied.changes)
  return { messages: planned.map(({ message }) => message), rows: applied.outbox }
}

function placementOf(message: MessageRecord): Placement {
  const [place] = message.placements
  if (place === undefined) throw new Error('a message without a place')
  return place
}
