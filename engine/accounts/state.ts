/**
 * What one account's workers share while its actor lives: the account as last claimed, its folders with their cursors,
 * hints of our own commands, and the one place where batches are written. Writers queue up here, so that cursors and
 * sequence numbers have one owner.
 */
import type { Budget } from '../budget.ts'
import type { Config } from '../config.ts'
import { folderNamer } from '../messages/names.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { AddedMessage, FlagUpdate, Store, SyncBatch } from '../store/port.ts'
import type { AccountRecord, ContactDelta, FolderCursor, FolderRecord, MessageRecord } from '../store/records.ts'
import { createExclusive, withinTime } from '../waits.ts'
import { createMoved } from './dirty-folders.ts'
import { createAbsent, goneMeanwhile } from './absent.ts'
import { createHints } from './hints.ts'
import type { Lane } from './link.ts'
import type { PlannedChange } from './plan.ts'
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
  /** The turns of all accounts' batches: a batch with its callback rows is in memory only while it is written. */
  readonly writing: Pick<Lane, 'run' | 'depth'>
}

/** A batch before the cursor's neighbours are filled in; what is absent is empty. */
export interface BatchParts {
  readonly cursor: FolderCursor
  readonly added?: readonly AddedMessage[]
  readonly flagUpdates?: readonly FlagUpdate[]
  readonly vanished?: readonly number[]
  readonly reported?: SyncBatch['reported']
  readonly changes?: readonly PlannedChange[]
  /** Added without a change: see ChangeListener.planOld. */
  readonly old?: readonly MessageRecord[]
  readonly contacts?: readonly ContactDelta[]
}

/** Builds one batch from the folder with its newest cursor; null = there is nothing to write. */
type Build = (folder: FolderRecord) => Promise<BatchParts | null> | BatchParts | null

/** What the session that watches is asked by the others. */
interface Watcher {
  /** A folder is not as the index has it: all are looked at soon. */
  readonly look: () => void
  /** Something happens in the account (mail, an API call): it is polled more often. */
  readonly stir: () => void
  /** When all folders are polled next, in ms since 1970. */
  readonly nextLookAt: () => number
}

interface Inner {
  readonly deps: SyncDeps
  readonly folders: Map<string, FolderRecord>
  readonly account: AccountRecord
  /** Change times never run backwards within an account, whatever the clock does: deliveries are ordered by them. */
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
    /** Nobody reads flags between two steps of a command: they may be half of what it does. */
    flagsTurn: createExclusive(),
    absent: createAbsent(deps.now),
    /** Some message had left its folder and was not told when departures were looked at last (departures.ts). */
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
    /** What was stored of one folder alone: its counts, or that it is parked. */
    change(folderId: string, stored: Partial<FolderRecord>): void {
      const folder = folders.get(folderId)
      if (folder !== undefined) folders.set(folderId, { ...folder, ...stored })
    },
    /**
     * Writes one batch, one at a time per account, and tells the listener, after the work of `before`, which holds up
     * no other batch. Rejects with `lease_lost` when another owner has taken the account over.
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
    /**
     * The listener is called for every batch written, and when a part of a long work has stored nothing: the sign that
     * it goes on. One listener, the newest.
     */
    onProgress: (listener: () => void): void => void (inner.progressed = listener),
    /** One watcher, the newest. */
    watchedBy: (by: Watcher): void => void (watcher = by),
    askLook: (): void => watcher?.look(),
    stir: (): void => watcher?.stir(),
    nextLookAt: (): number => watcher?.nextLookAt() ?? Number.POSITIVE_INFINITY,
    moved,
    /** Begins no more batches. Resolves when the last one is written, within the time of the store. */
    async end(error: Error): Promise<void> {
      inner.ended = error
      moved.end(error)
      await withinTime(
        deps.config.MAILROOM_STORE_TIMEOUT,
        exclusive(() => Promise.resolve()),
      )
    },
    hasEnded: (): boolean => inner.ended !== null,
    /** In ms since 1970. */
    beganAt: deps.now(),
    /** The server has answered a part of a long work, perhaps without anything to store. */
    heard: (): void => inner.progressed(),
    /** Runs between two batches. */
    exclusive,
  }
}

type Applied = Awaited<ReturnType<Store['sync']['apply']>>

async function write(inner: Inner, folderId: string, build: Build): Promise<Applied | null> {
  const { deps, folders } = inner
  if (inner.ended !== null) throw inner.ended
  const folder = folders.get(folderId)
  if (folder === undefined) throw goneMeanwhile()
  const parts = await build(folder)
  if (parts === null) return null
  inner.stampedAt = Math.max(inner.stampedAt, deps.now())
  const batch = await batchOf(inner, folder, parts)
  const applied = await deps.store.sync.apply(batch)
  folders.set(folderId, { ...folder, ...applied.folder })
  inner.progressed()
  return applied
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
