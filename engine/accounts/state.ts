/**
 * The state of one account while its actor lives: the account as last claimed, its folders with their cursors, and the
 * hints of our own commands. All batches are written here, one at a time, so that cursors and sequence numbers have one
 * owner.
 */
import type { Budget } from '../budget.ts'
import type { Config } from '../config.ts'
import { folderNamer } from '../messages/names.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { Store, SyncBatch } from '../store/port.ts'
import type { AccountRecord, FolderCursor, FolderRecord, MessageRecord, OutboxRecord } from '../store/records.ts'
import { createExclusive, withinTime } from '../scheduling.ts'
import { createMoved } from './dirty-folders.ts'
import { createAbsent, goneMeanwhile } from './absent.ts'
import { createHints } from './hints.ts'
import type { Lane } from './link.ts'
import type { PlannedChange } from './plan.ts'
import { createPace } from './progress.ts'
import type { ChangeListener } from './types.ts'

export interface SyncDeps {
  readonly config: Config
  readonly store: Store
  readonly listener: ChangeListener
  readonly log: Logger
  readonly metrics: Metrics
  /** Absent in tests. */
  readonly tracing?: Pick<Tracing, 'message'>
  readonly budget: Pick<Budget, 'take'>
  readonly now: () => number
  /** Bounds the batches of all accounts that are in memory, with their callback rows, at a time. */
  readonly writing: Pick<Lane, 'run' | 'depth'>
}

/** The parts of a batch that differ; absent = empty. */
export interface BatchParts extends Partial<
  Pick<SyncBatch, 'added' | 'flagUpdates' | 'vanished' | 'reported' | 'contacts'>
> {
  readonly cursor: FolderCursor
  readonly changes?: readonly PlannedChange[]
  /** Messages that are added without a change: see ChangeListener.planOld. */
  readonly old?: readonly MessageRecord[]
}

/** Builds one batch from the folder with its newest cursor; null = there is nothing to write. */
type Build = (folder: FolderRecord) => Promise<BatchParts | null> | BatchParts | null

/** The watching session, for the others. */
interface Watcher {
  /** A folder differs from the index: all folders are polled soon. */
  readonly look: () => void
  /** Mail has come, or an API call: the account is polled more often. */
  readonly stir: () => void
  /** When all folders are polled next, in ms since 1970. */
  readonly nextLookAt: () => number
}

interface Inner {
  readonly deps: SyncDeps
  readonly folders: Map<string, FolderRecord>
  readonly account: AccountRecord
  /** Change times never run backwards within an account, whatever the clock does: they order the deliveries. */
  stampedAt: number
  progressed: () => void
  /** The connections are closed. */
  ended: Error | null
}

export type AccountState = ReturnType<typeof createAccountState>

export function createAccountState(deps: SyncDeps, claimed: AccountRecord, first: readonly FolderRecord[]) {
  const folders = new Map(first.map((folder) => [folder.id, folder]))
  let ids = new Map(first.map(({ path, id }) => [path, id]))
  const inner: Inner = { deps, folders, account: claimed, stampedAt: 0, progressed: () => undefined, ended: null }
  const exclusive = createExclusive()
  const folderByPath = (path: string): FolderRecord | null => folders.get(ids.get(path) ?? '') ?? null
  const moved = createMoved((path, which) => {
    const folder = folderByPath(path)
    return folder !== null && which(folder, deps.now())
  })
  let watcher: Watcher | null = null
  return {
    account: claimed,
    hints: createHints(),
    /** The pace of the backfill. */
    pace: createPace(deps.now),
    /** No flags are read between two steps of a command. */
    flagsTurn: createExclusive(),
    absent: createAbsent(deps.now),
    /** The last look at departures has found one that was not due (departures.ts). */
    isHolding: false,
    /** By folder id: UNSEEN as the server reported it last. */
    reportedUnseen: new Map<string, number>(),
    folders: folders as ReadonlyMap<string, FolderRecord>,
    folderByPath,
    /** After a LIST: replaces the records. */
    setFolders(listed: readonly FolderRecord[]): void {
      folders.clear()
      for (const folder of listed) folders.set(folder.id, folder)
      ids = new Map(listed.map(({ path, id }) => [path, id]))
    },
    /** Takes what was stored of one folder: its counts, or that it is parked. */
    change(folderId: string, stored: Partial<FolderRecord>): void {
      const folder = folders.get(folderId)
      if (folder !== undefined) folders.set(folderId, { ...folder, ...stored })
    },
    /**
     * Writes one batch, one at a time per account, then runs `before`, which holds up no other batch, then tells the
     * listener. Rejects with `lease_lost` when another owner has taken the account over.
     */
    async commit(folderId: string, build: Build, before?: (applied: Applied) => Promise<void>): Promise<void> {
      const applied = await exclusive(() => deps.writing.run(() => write(inner, folderId, build)))
      if (applied === null) return
      try {
        await before?.(applied)
      } finally {
        tell(inner, applied)
      }
    },
    /** Called after every batch, and by `heard`. Only the last registered listener is called. */
    onProgress: (listener: () => void): void => void (inner.progressed = listener),
    /** Replaces the watcher. */
    watchedBy: (by: Watcher): void => void (watcher = by),
    askLook: (): void => watcher?.look(),
    stir: (): void => watcher?.stir(),
    nextLookAt: (): number => watcher?.nextLookAt() ?? Number.POSITIVE_INFINITY,
    moved,
    /** Begins no more batches. Resolves when the last one is written, or after MAILROOM_STORE_TIMEOUT. */
    async end(error: Error): Promise<void> {
      inner.ended = error
      moved.end(error)
      const written = exclusive(() => Promise.resolve())
      await withinTime(deps.config.MAILROOM_STORE_TIMEOUT, written)
    },
    hasEnded: (): boolean => inner.ended !== null,
    /** In ms since 1970. */
    beganAt: deps.now(),
    /** Resets the sync deadline: the server is still answering. */
    heard: (): void => inner.progressed(),
    /** Runs between two batches. */
    exclusive,
  }
}

interface Applied extends Awaited<ReturnType<Store['sync']['apply']>> {
  /** The callbacks of the batch. Some may be stored since an earlier try, and sent by now. */
  readonly outbox: readonly OutboxRecord[]
}

async function write(inner: Inner, folderId: string, build: Build): Promise<Applied | null> {
  const { deps, account, folders } = inner
  if (inner.ended !== null) throw inner.ended
  const folder = folders.get(folderId)
  if (folder === undefined) throw goneMeanwhile()
  const parts = await build(folder)
  if (parts === null) return null
  inner.stampedAt = Math.max(inner.stampedAt, deps.now())
  const batch = await batchOf(inner, folder, parts)
  const applied = await deps.store.sync.apply(batch).catch((error: unknown) => {
    // Some of the callbacks may be stored.
    deps.listener.stored(account.id, batch.outbox, [])
    throw error
  })
  folders.set(folderId, { ...folder, ...applied.folder })
  inner.progressed()
  return { ...applied, outbox: batch.outbox }
}

function tell({ deps, account }: Inner, applied: Applied): void {
  for (const change of applied.changes) deps.metrics.changes.inc({ kind: change.kind })
  if (applied.changes.length > 0 || applied.outbox.length > 0)
    deps.listener.stored(account.id, applied.outbox, applied.changes)
}

async function batchOf(
  { deps: { listener }, account, folders, stampedAt: at }: Inner,
  folder: FolderRecord,
  parts: BatchParts,
): Promise<SyncBatch> {
  const { old = [] } = parts
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
    reported: parts.reported ?? [],
    changes: changes.map(({ change }) => change),
    outbox: [
      ...(changes.length === 0 ? [] : await listener.plan(account, changes, folderNamer([...folders.values()]))),
      ...(old.length === 0 ? [] : await listener.planOld(account, old)),
    ],
    contacts: parts.contacts ?? [],
  }
}
