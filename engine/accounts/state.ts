/**
 * What one account's workers share while its actor lives: the account as last claimed, its folders with their cursors, our own
 * writes, and the one place where batches are written. Writers queue up here, so that cursors and sequence numbers have one owner.
 */
import type { Budget } from '../budget.ts'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { folderNamer } from '../messages/folder-names.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { AddedMessage, FlagUpdate, Store, SyncBatch } from '../store/port.ts'
import type { AccountRecord, ContactDelta, FolderCursor, FolderRecord } from '../store/records.ts'
import { createAbsent, type Absent } from './absent.ts'
import type { Lane, Priority } from './lanes.ts'
import { createOwnCounts, type OwnCounts } from './own-counts.ts'
import { createOwnWrites, type OwnWrites } from './own-writes.ts'
import type { PlannedChange } from './plan.ts'
import type { MailboxStatus } from './session-types.ts'
import type { ChangeListener } from './types.ts'

export interface SyncDeps {
  readonly config: Config
  readonly store: Store
  readonly listener: ChangeListener
  readonly log: Logger
  readonly metrics: Metrics
  readonly budget: Pick<Budget, 'take'>
  readonly now: () => number
  /** The turns of all accounts' batches: a batch with its callback rows is in memory only while it is written. */
  readonly writing: Pick<Lane, 'run'>
}

/** A batch before the cursor's neighbours are filled in; what is absent is empty. */
export interface BatchParts {
  readonly cursor: FolderCursor
  readonly added?: readonly AddedMessage[]
  readonly flagUpdates?: readonly FlagUpdate[]
  readonly vanished?: readonly number[]
  readonly told?: SyncBatch['told']
  readonly changes?: readonly PlannedChange[]
  readonly contacts?: readonly ContactDelta[]
  readonly counts?: SyncBatch['counts']
}

export interface AccountState {
  readonly account: AccountRecord
  readonly own: OwnWrites
  readonly ownCounts: OwnCounts
  readonly absent: Absent
  /** By folder id: the counts that the server told last, as far as they were taken over. */
  readonly toldCounts: Map<string, MailboxStatus>
  /** By folder id. */
  readonly folders: ReadonlyMap<string, FolderRecord>
  folderByPath(path: string): FolderRecord | null
  /** After a LIST: replaces the records, keeping cursors that a batch has written meanwhile. */
  setFolders(folders: readonly FolderRecord[]): void
  /** After a STATUS: what was stored of one folder. */
  setCounts(folderId: string, counts: Pick<FolderRecord, 'messages' | 'unseen'>): void
  /**
   * Writes one batch. `build` sees the folder's newest cursor and answers null when there is nothing to write. One at a time
   * per account; what an API call waits for goes before the batches of other accounts. Rejects with `lease_lost` when another owner
   * has taken the account over.
   */
  commit(
    folderId: string,
    build: (folder: FolderRecord) => Promise<BatchParts | null> | BatchParts | null,
    priority?: Priority,
  ): Promise<void>
  /** Hears of every batch written: the sign that work goes on. One listener, the newest. */
  onWrite(listener: () => void): void
  /** The folder is not as the index has it: whoever watches looks at all folders soon. */
  askLook(path: string): void
  /** Hears of that. One listener, the newest. */
  onLook(listener: (path: string) => void): void
  /** Runs between two batches. */
  exclusive<T>(work: () => Promise<T>): Promise<T>
  /** Put after a change of callback settings or resume record; never older than the claim. */
  setAccount(account: AccountRecord): void
}

type Build = Parameters<AccountState['commit']>[1]

/** What of the state changes, for the functions below. */
interface Inner {
  readonly deps: SyncDeps
  readonly folders: Map<string, FolderRecord>
  readonly stamp: () => number
  account: AccountRecord
  written: () => void
  look: (path: string) => void
}

export function createAccountState(
  deps: SyncDeps,
  claimed: AccountRecord,
  folders: readonly FolderRecord[],
): AccountState {
  const { byId, ...shelf } = createFolderShelf(folders)
  const inner: Inner = {
    deps,
    folders: byId,
    stamp: createStamp(deps.now),
    account: claimed,
    written: () => undefined,
    look: () => undefined,
  }
  const exclusive = createQueue()
  return {
    get account() {
      return inner.account
    },
    own: createOwnWrites(deps.now),
    ownCounts: createOwnCounts(),
    absent: createAbsent(deps.now),
    toldCounts: new Map(),
    folders: byId,
    ...shelf,
    commit: (folderId, build, priority = 'live') =>
      exclusive(() => deps.writing.run(priority, () => write(inner, folderId, build))),
    onWrite: (listener) => void (inner.written = listener),
    askLook: (path) => inner.look(path),
    onLook: (listener) => void (inner.look = listener),
    exclusive,
    setAccount(newer) {
      inner.account = { ...newer, epoch: inner.account.epoch }
    },
  }
}

/** One piece of work at a time, in the order of asking; one that fails does not stop the next. */
function createQueue(): AccountState['exclusive'] {
  let tail: Promise<unknown> = Promise.resolve()
  return (work) => {
    const run = tail.then(work, work)
    tail = run.catch(() => undefined)
    return run
  }
}

/** Change times never run backwards within an account, whatever the clock does: deliveries are ordered by them. */
function createStamp(now: () => number): () => number {
  let last = 0
  return () => (last = Math.max(last, now()))
}

type Shelf = Pick<AccountState, 'folderByPath' | 'setFolders' | 'setCounts'>

function createFolderShelf(first: readonly FolderRecord[]): Shelf & { readonly byId: Map<string, FolderRecord> } {
  const byId = new Map(first.map((folder) => [folder.id, folder]))
  let ids = new Map(first.map(({ path, id }) => [path, id]))
  return {
    byId,
    folderByPath: (path) => byId.get(ids.get(path) ?? '') ?? null,
    setFolders(listed) {
      const known = new Map(byId)
      byId.clear()
      for (const folder of listed) {
        byId.set(folder.id, { ...folder, cursor: known.get(folder.id)?.cursor ?? folder.cursor })
      }
      ids = new Map(listed.map(({ path, id }) => [path, id]))
    },
    setCounts(folderId, counts) {
      const folder = byId.get(folderId)
      if (folder !== undefined) byId.set(folderId, { ...folder, ...counts })
    },
  }
}

async function write(inner: Inner, folderId: string, build: Build): Promise<void> {
  const { deps, folders } = inner
  const folder = folders.get(folderId)
  if (folder === undefined) throw new AppError('not_found', `folder ${folderId} is gone`)
  const parts = await build(folder)
  if (parts === null) return
  const { account } = inner
  const batch = await batchOf(inner, folder, parts, inner.stamp())
  const applied = await deps.store.sync.apply(batch)
  folders.set(folderId, { ...folder, ...(parts.counts ?? {}), cursor: parts.cursor })
  inner.written()
  for (const change of applied.changes) deps.metrics.changes.inc({ kind: change.kind })
  if (applied.changes.length > 0 || applied.outbox.length > 0)
    deps.listener.stored(account.id, applied.outbox, applied.changes)
}

async function batchOf(
  { deps, account, folders }: Inner,
  folder: FolderRecord,
  parts: BatchParts,
  at: number,
): Promise<SyncBatch> {
  const changes = (parts.changes ?? []).map(({ change, message }) => ({ change: { ...change, at }, message }))
  return {
    accountId: account.id,
    epoch: account.epoch,
    folderId: folder.id,
    cursorBefore: folder.cursor,
    cursorAfter: parts.cursor,
    added: parts.added ?? [],
    flagUpdates: parts.flagUpdates ?? [],
    vanished: parts.vanished ?? [],
    vanishedAt: at,
    told: parts.told ?? [],
    changes: changes.map(({ change }) => change),
    outbox: changes.length === 0 ? [] : await deps.listener.plan(account, changes, folderNamer([...folders.values()])),
    contacts: parts.contacts ?? [],
    counts: parts.counts ?? null,
  }
}
