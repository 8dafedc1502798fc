/**
 * What the tests of the sync stand on: a real store, a scripted mail server, real sessions, and everything that was
 * told kept. `work()` is what an actor does when it starts: it claims the account and catches up; each call is a new
 * owner, with nothing in memory of the one before.
 */
import type { TestContext } from 'node:test'
import { backfillOpened, nextToBackfill } from '../../../engine/accounts/background.ts'
import { createFolderPoll } from '../../../engine/accounts/folders.ts'
import { createLane } from '../../../engine/accounts/link.ts'
import { createAccountState, type AccountState, type SyncDeps } from '../../../engine/accounts/state.ts'
import { catchUp } from '../../../engine/accounts/sync.ts'
import type { ChangeListener } from '../../../engine/accounts/types.ts'
import type { SyncContext } from '../../../engine/accounts/write.ts'
import { createBudget } from '../../../engine/budget.ts'
import { readConfig, type Config } from '../../../engine/config.ts'
import { silentLogger, type Logger } from '../../../engine/observe/log.ts'
import { createMetrics } from '../../../engine/observe/metrics.ts'
import { sealCredential } from '../../../engine/secrets/seal.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import { folderId } from '../../../engine/store/ids.ts'
import type { Store, SyncBatch } from '../../../engine/store/port.ts'
import type { AccountRecord, ChangeRecord, FolderRecord, MessageRecord } from '../../../engine/store/records.ts'
import { mail } from '../../support/mail.ts'
import {
  createImapServer,
  fullCapabilities,
  type Hooks,
  type ImapServer,
  type UserOptions,
} from '../../support/imap-server/index.ts'
import { accountRecord, userRecord } from '../../support/records.ts'
import { openTestStore } from '../../support/test-store.ts'
import { openTest, type Target, type TestSession } from '../../support/imap-server/session.ts'

export const accountId = 'a'.repeat(24)
export const userId = 'b'.repeat(24)
const ann = userRecord('c'.repeat(24), { id: userId, emailAddresses: ['ann@mail.example'] })

export const sealer = createSealer(Buffer.alloc(32, 'test'))

/** Short enough for tests; each test replaces what it is about. */
const shortSettings = {
  MAILROOM_ALLOW_PRIVATE: '1',
  MAILROOM_FOLDER_POLL: '100ms',
  MAILROOM_FOLDER_POLL_COLD: '100ms',
  MAILROOM_FOLDER_LIST: '300ms',
  MAILROOM_GONE_HOLD: '300ms',
  MAILROOM_COMMAND_TIMEOUT: '20s',
  MAILROOM_COMMAND_IDLE_CLOSE: '5s',
  MAILROOM_BACKOFF_FIRST: '50ms',
  MAILROOM_BACKOFF_MAX: '200ms',
  MAILROOM_BACKOFF_AUTH: '50ms',
  MAILROOM_LOGINS_PER_MINUTE: '0',
  MAILROOM_DISABLED_PROBE: '1h',
}

export interface StageOptions {
  readonly capabilities?: readonly string[]
  readonly hooks?: Hooks
  readonly settings?: Readonly<Record<string, string>>
  readonly user?: UserOptions
  readonly delimiter?: string
  /** Between the workers and the store. */
  readonly wrap?: (store: Store) => Store
  /** A mail server that is there already. */
  readonly target?: Target & { readonly password: string }
  readonly password?: string
  /** The clock; the real one otherwise. */
  readonly now?: () => number
}

export interface Worker {
  readonly state: AccountState
  readonly session: TestSession
  readonly context: SyncContext
  readonly catchUp: (path: string) => Promise<void>
  /** Opens every folder and reads it to its end. */
  readonly readAll: () => Promise<void>
}

export interface Stage {
  /** What is taken away when the test ends, the last first. */
  readonly parts: AsyncDisposableStack
  readonly server: ImapServer
  readonly store: Store
  readonly config: Config
  readonly deps: SyncDeps
  readonly listener: RecordingListener
  /** Everything that was logged as a warning or worse. */
  readonly warnings: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[]
  readonly account: AccountRecord
  /** A new owner: claims, logs in, lists the folders. */
  work(): Promise<Worker>
  /** The change log, oldest first. What it tells has been written. */
  told(): Promise<ChangeRecord[]>
  /** 'received m1 INBOX', in the order told. */
  story(): Promise<string[]>
  folder(path: string): Promise<FolderRecord>
  /** Live messages of a folder by subject. */
  subjects(path: string): Promise<string[]>
  message(subject: string): Promise<MessageRecord>
}

export interface RecordingListener extends ChangeListener {
  readonly changes: { readonly seq: number }[]
  /** Of the folders of the changes, as webhooks compare them. */
  readonly names: string[]
  readonly statuses: string[]
  initialSyncs: number
}

function recordingListener(): RecordingListener {
  const changes: { readonly seq: number }[] = []
  const names: string[] = []
  const statuses: string[] = []
  return {
    changes,
    names,
    statuses,
    initialSyncs: 0,
    plan(_account, planned, folderName) {
      names.push(...planned.map(({ change }) => folderName(change.path)))
      return Promise.resolve([])
    },
    planOld: () => Promise.resolve([]),
    readAhead: () => Promise.resolve(),
    stored: (_account, _outbox, told) => void changes.push(...told),
    planStatus(_account, { status }) {
      statuses.push(status)
      return Promise.resolve([])
    },
    statusStored: () => undefined,
    initialSyncDone() {
      this.initialSyncs += 1
      return Promise.resolve()
    },
  }
}

/** For `wrap`: every write goes through `around`. */
export function writing(
  around: (batch: SyncBatch, write: () => ReturnType<Store['sync']['apply']>) => ReturnType<Store['sync']['apply']>,
) {
  return (store: Store): Store => ({
    ...store,
    sync: { ...store.sync, apply: (batch) => around(batch, () => store.sync.apply(batch)) },
  })
}

/**
 * The same store, and a wait for the end of what is being written. A batch has several steps on MongoDB, and its
 * changes are there before the last of them.
 */
function counted(raw: Store): { readonly store: Store; readonly written: () => Promise<unknown> } {
  const underWay = new Set<Promise<unknown>>()
  const wrap = writing((_batch, write) => {
    const work = write()
    underWay.add(work)
    return work.finally(() => underWay.delete(work))
  })
  return { store: wrap(raw), written: () => Promise.allSettled(underWay) }
}

export async function openStage(t: TestContext, options: StageOptions = {}): Promise<Stage> {
  const parts = new AsyncDisposableStack()
  t.after(() => parts.disposeAsync())
  const { capabilities = fullCapabilities, hooks = {}, user = {}, delimiter = '/' } = options
  const server = await createImapServer({ users: { ann: user }, capabilities, hooks, delimiter })
  parts.defer(() => server.close())
  const { store: raw, remove } = await openTestStore()
  parts.defer(remove)
  const { store: whole, written } = counted(raw)
  const store = options.wrap?.(whole) ?? whole
  const config = readConfig({ ...shortSettings, ...options.settings })
  const target = options.target ?? { ...server, host: server.host, port: server.port, password: 'secret' }
  const account = accountOn(target, options.password ?? target.password)
  await raw.users.create(ann)
  await raw.accounts.create(account)
  const listener = recordingListener()
  const warnings: Stage['warnings'] = []
  const deps: SyncDeps = {
    config,
    store,
    listener,
    log: keeping(warnings),
    metrics: createMetrics(),
    now: options.now ?? Date.now,
    budget: createBudget(config.MAILROOM_BUFFER_MAX),
    writing: createLane(),
  }
  return {
    parts,
    server,
    store: raw,
    config,
    deps,
    listener,
    warnings,
    account,
    work: () => openWorker(t, deps, target),
    ...questions(raw, written),
  }
}

function accountOn(target: Target, password: string): AccountRecord {
  return accountRecord(ann, {
    id: accountId,
    label: 'ann::mail',
    email: 'ann@mail.example',
    server: target.host,
    port: target.port,
    useSsl: false,
    username: 'ann',
    sealedCredential: sealCredential(sealer, accountId, { kind: 'password', password }),
    createdAt: Date.now(),
  })
}

function keeping(warnings: Stage['warnings']): Logger {
  const keep = (fields: unknown, message?: string): void =>
    void warnings.push({ message: message ?? '', fields: fields as Readonly<Record<string, unknown>> })
  const log: Logger = { ...silentLogger, warn: keep, error: keep, fatal: keep }
  return log
}

async function openWorker(
  t: TestContext,
  deps: SyncDeps,
  target: Target & { readonly password: string },
): Promise<Worker> {
  const account = await deps.store.accounts.claim(accountId)
  if (account === null) throw new Error('the account is gone')
  const folders = await deps.store.folders.list(accountId)
  const state = createAccountState(deps, account, folders)
  // What a test has read is all that there is.
  state.moved.found([], Number.POSITIVE_INFINITY)
  const session = await openTest(t, target, { auth: { password: target.password }, commandTimeoutMs: 20_000 })
  const context: SyncContext = { deps, state, session }
  await createFolderPoll(context).list()
  return {
    state,
    session,
    context,
    catchUp: (path) => catchUp(context, path),
    async readAll() {
      const selectable = [...state.folders.values()].filter((folder) => folder.selectable)
      for (const { path } of selectable) await catchUp(context, path)
      for (let next = nextToBackfill(state, deps.now()); next !== null; next = nextToBackfill(state, deps.now()))
        await backfillOpened({ ...context, folderId: next.id }, deps.config.MAILROOM_SYNC_BATCH)
    },
  }
}

function questions(
  store: Store,
  written: () => Promise<unknown>,
): Pick<Stage, 'told' | 'story' | 'folder' | 'subjects' | 'message'> {
  const told = async () => {
    const changes = await store.changes.since(accountId, 0, 20_000)
    await written()
    return changes
  }
  const all = () => store.messages.older(accountId, null, 20_000)
  return {
    told,
    async story() {
      const changes = await told()
      const rows = await store.messages.byIds(accountId, [...new Set(changes.map((change) => change.messageId))])
      const subjects = new Map(rows.map((row) => [row.id, row.subject]))
      return changes.map(({ kind, messageId, path }) => `${kind} ${subjects.get(messageId) ?? '?'} ${path}`)
    },
    async folder(path) {
      const folder = await store.folders.byPath(accountId, path)
      if (folder === null) throw new Error(`no folder ${path}`)
      return folder
    },
    async subjects(path) {
      const id = folderId(accountId, path)
      const rows = await store.messages.list(accountId, { folderId: id }, { limit: 10_000, offset: 0 })
      return rows.map((row) => row.subject).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    },
    async message(subject) {
      const found = (await all()).find((row) => row.subject === subject)
      if (found === undefined) throw new Error(`no message ${subject}`)
      return found
    },
  }
}

/** Mail to ann. */
export function letter(subject: string, headers: readonly string[] = [], from?: string): string {
  return mail({ to: 'ann@mail.example', subject, headers, ...(from === undefined ? {} : { from }) })
}

/** m1, m2 … in a folder, an hour old. */
export function fill(server: ImapServer, folder: string, count: number, prefix = 'm'): void {
  const at = new Date(Date.now() - 3_600_000)
  for (let n = 1; n <= count; n += 1) server.append('ann', folder, letter(`${prefix}${n}`), [], at)
}

/** What a client does that moves a message: the copy there, then gone here. Answers the new UID. */
export function moveOnServer(server: ImapServer, uid: number, from: string, to: string): number {
  const moved = server.copy('ann', from, uid, to)
  server.expunge('ann', from, uid)
  return moved
}
