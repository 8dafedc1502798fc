/** Pure functions on records other than messages, and their initial values. Re-exported by rows.ts for both stores. */
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

/** The cursor of an opened folder without a synced message. */
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

/** An account without a recorded condition is down since its creation. */
export function conditionOf({ resume, createdAt }: Pick<AccountRecord, 'resume' | 'createdAt'>): Condition {
  return resume.condition ?? { is: 'down', since: createdAt }
}

/**
 * The patch of an account whose mailbox is read again: a new epoch, no failures, and the time since which unknown mail
 * is reported, which is the earlier one when the former reading has not ended.
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

/** The stored folder (null = new) with the server's facts. Keeps cursor, counts, completeness and failures. */
export function listedFolder(
  accountId: string,
  epoch: number,
  stored: FolderRecord | null,
  listed: ListedFolder,
): FolderRecord {
  const { path, delimiter, attributes, specialUse, selectable, opened } = listed
  return {
    ...{ id: folderId(accountId, path), accountId, path, delimiter, attributes, specialUse, selectable },
    ...reportedCounts(stored, listed),
    counts: stored?.counts ?? noCounts,
    cursor: stored === null ? (opened ?? null) : stored.cursor,
    completeAt: stored === null ? (opened?.syncedAt ?? null) : stored.completeAt,
    epoch,
    failures: stored?.failures ?? 0,
    parkedUntil: stored?.parkedUntil ?? null,
  }
}

/** Sets the seq of an outbox row to that of its change; rows without a change keep theirs. */
export function withSeqOf(changes: readonly ChangeRecord[]): (row: OutboxRecord) => OutboxRecord {
  const seqs = new Map(changes.map((change) => [change.id, change.seq]))
  return (row) => {
    const seq = row.changeId === null ? undefined : seqs.get(row.changeId)
    return seq === undefined || seq === row.seq ? row : { ...row, seq }
  }
}

export const finishedStates = ['delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]
export const allStates = ['pending', ...finishedStates] as const

/** Both stores have a field with the HTTP status of the last attempt. */
type DeliveryWhere = Where<OutboxRecord & { readonly lastStatus: number | null }>

/** The conditions of a query other than the state. */
export function deliveryWhere({ webhookId, developerId, accountId, messageId, kind, ...query }: RequeueQuery) {
  return {
    ...{ id: query.ids, messageId, webhookId, accountId, developerId, kind },
    createdAt: { from: query.createdFrom, until: query.createdUntil },
    finishedAt: { until: query.finishedUntil },
    lastStatus: { from: query.statusFrom, until: query.statusTo },
  } satisfies DeliveryWhere
}

/** Attempts in a row, with responses of 48 kB at most. */
const attemptsKept = 12

/**
 * The row after an attempt. A finished row (skipped when the webhook was paused) stays finished when a running attempt
 * fails: it only gets the attempt.
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

/** Sets a row back to pending, as if never tried. The attempts stay in the log. */
export function setBack(now: number) {
  return { state: 'pending', attemptCount: 0, dueAt: now, finishedAt: null, reason: null } as const
}

/** A present `countsAt` becomes `now`. */
export function requeued(row: OutboxRecord, now: number): OutboxRecord {
  return { ...row, ...setBack(now), ...(row.countsAt === undefined ? {} : { countsAt: now }) }
}

export function nextKey(rows: readonly OutboxKey[], limit: number): OutboxKey | null {
  const last = rows.at(-1)
  return last === undefined || rows.length < limit ? null : { createdAt: last.createdAt, id: last.id }
}

/** The token is unused and has not expired. */
export function isUsable({ usedAt, expiresAt }: ConnectTokenRecord, at: number): boolean {
  return usedAt === null && expiresAt > at
}
