/**
 * How steps change the records other than messages, and what those records start with. Pure; both adapters use it
 * through rows.ts, which re-exports it.
 */
import { noCounts } from './folder-counts.ts'
import { folderId } from './ids.ts'
import type { Where } from './keyed.ts'
import type { ListedFolder, OutboxKey, OutboxResult, RequeueQuery } from './port-types.ts'
import type { FolderCursor, FolderRecord } from './mail.ts'
import type { AccountRecord, ChangeRecord, Condition, ConnectTokenRecord } from './records.ts'
import type { OutboxRecord, OutboxState, ResumeRecord, WebhookHealth } from './records.ts'

export const freshResume: ResumeRecord = Object.freeze({
  attempt: 0,
  strikes: 0,
  retryAt: null,
  lastError: null,
  lastConnectedAt: null,
  initialSyncAt: null,
})

export const freshHealth: WebhookHealth = Object.freeze({
  failure: false,
  consecutiveFailures: 0,
  retryAt: null,
  lastError: null,
  lastSuccessAt: null,
  failingSince: null,
  abandonedAt: null,
  failureVersion: 0,
})

/** Of a folder that was opened and of which nothing was read yet. */
export function freshCursor(uidValidity: string): FolderCursor {
  return {
    uidValidity,
    uidNext: 0,
    backfillBelow: 0,
    highestModseq: '0',
    exists: 0,
    comparedAt: 0,
    quarantined: [],
  }
}

/** As far as it is known. */
export function conditionOf({ resume, createdAt }: Pick<AccountRecord, 'resume' | 'createdAt'>): Condition {
  return resume.condition ?? { is: 'down', since: createdAt }
}

/**
 * The changes of an account that is to be read anew: a new epoch, none of the failures of before, and the time since
 * which unknown mail is reported. A reading that is not over yet keeps its earlier time.
 */
export function readAnew({ epoch, resume, remapSince = Infinity }: AccountRecord, since: number) {
  const { lastConnectedAt, condition, initialSyncAt } = resume
  return {
    epoch: epoch + 1,
    resume: { ...freshResume, lastConnectedAt, ...(condition && { condition }) },
    completeAt: null,
    remapSince: initialSyncAt === null ? Math.min(remapSince, since) : since,
  }
}

export function folderRank(path: string): 0 | 1 {
  return path === 'INBOX' ? 0 : 1
}

function reportedCounts(stored: FolderRecord | null, listed: ListedFolder) {
  const { messages, unseen } = stored === null || stored.completeAt === null ? listed : stored
  return { messages: messages ?? stored?.messages ?? 0, unseen: unseen ?? stored?.unseen ?? 0 }
}

/** What the server lists, over what is stored (null = new): how far it was read and how often it failed stay. */
export function listedFolder(
  accountId: string,
  epoch: number,
  stored: FolderRecord | null,
  listed: ListedFolder,
): FolderRecord {
  return {
    id: folderId(accountId, listed.path),
    accountId,
    path: listed.path,
    delimiter: listed.delimiter,
    attributes: listed.attributes,
    specialUse: listed.specialUse,
    selectable: listed.selectable,
    ...reportedCounts(stored, listed),
    counts: stored?.counts ?? noCounts,
    cursor: stored === null ? (listed.opened ?? null) : stored.cursor,
    completeAt: stored === null ? (listed.opened?.syncedAt ?? null) : stored.completeAt,
    epoch,
    failures: stored?.failures ?? 0,
    parkedUntil: stored?.parkedUntil ?? null,
  }
}

/** An outbox row takes the seq of its change; rows of other events keep their own. */
export function withSeqOf(changes: readonly ChangeRecord[]): (row: OutboxRecord) => OutboxRecord {
  const seqs = new Map(changes.map((change) => [change.id, change.seq]))
  return (row) => {
    const seq = row.changeId === null ? undefined : seqs.get(row.changeId)
    return seq === undefined || seq === row.seq ? row : { ...row, seq }
  }
}

export const finishedStates = ['delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]
export const allStates = ['pending', ...finishedStates] as const

/** Both stores keep the status of the last attempt beside a row. */
type DeliveryWhere = Where<OutboxRecord & { readonly lastStatus: number | null }>

/** All that a query asks of a row but for its state. */
export function deliveryWhere({ webhookId, developerId, accountId, messageId, kind, ...query }: RequeueQuery) {
  return {
    ...{ id: query.ids, messageId, webhookId, accountId, developerId, kind },
    createdAt: { from: query.createdFrom, until: query.createdUntil },
    finishedAt: { until: query.finishedUntil },
    lastStatus: { from: query.statusFrom, until: query.statusTo },
  } satisfies DeliveryWhere
}

/** Attempts kept per row, each with its response: 48 kB of a row at most. */
const attemptsKept = 12

/**
 * The row after an attempt. A row that was finished meanwhile (skipped because the webhook was paused) is not brought
 * back by the failure of an attempt that was under way: it only keeps the attempt.
 */
export function recorded(row: OutboxRecord, result: OutboxResult): OutboxRecord {
  const attemptCount = row.attemptCount + (result.counted === false ? 0 : 1)
  const tried: OutboxRecord = result.attempt
    ? { ...row, attemptCount, attempts: [...row.attempts, result.attempt].slice(-attemptsKept) }
    : row
  if (row.state !== 'pending' && result.state === 'pending') return tried
  const { state, dueAt, countsAt, finishedAt, reason } = result
  return { ...tried, state, dueAt, ...(countsAt === undefined ? {} : { countsAt }), finishedAt, reason }
}

export function lastStatus(row: Pick<OutboxRecord, 'attempts'>): number | null {
  return row.attempts.at(-1)?.status ?? null
}

/** Back to pending, as if never tried; the attempts stay to be seen. A `countsAt` that is there becomes now. */
export function setBack(now: number) {
  return { state: 'pending', attemptCount: 0, dueAt: now, finishedAt: null, reason: null } as const
}

export function requeued(row: OutboxRecord, now: number): OutboxRecord {
  return { ...row, ...setBack(now), ...(row.countsAt === undefined ? {} : { countsAt: now }) }
}

export function nextKey(rows: readonly OutboxKey[], limit: number): OutboxKey | null {
  const last = rows.at(-1)
  return last === undefined || rows.length < limit ? null : { createdAt: last.createdAt, id: last.id }
}

/** It was not used, and has not expired. */
export function isUsable({ usedAt, expiresAt }: ConnectTokenRecord, at: number): boolean {
  return usedAt === null && expiresAt > at
}
