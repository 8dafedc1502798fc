/**
 * How steps change the records other than messages, and what those records start with. Pure; both adapters use it
 * through rows.ts, which re-exports it.
 *
 * A contact counts, and forgets an account: beside the sums a stored contact holds what each account has counted, so
 * that the part of an account that is removed can go.
 */
import { noCounts } from './folder-counts.ts'
import { contactId, folderId } from './ids.ts'
import type { Where } from './keyed.ts'
import type { ListedFolder, OutboxKey, OutboxResult, RequeueQuery } from './port.ts'
import type {
  AccountRecord,
  ChangeRecord,
  Condition,
  ConnectTokenRecord,
  ContactCounts,
  ContactDelta,
  ContactPart,
  ContactRecord,
  FolderCursor,
  FolderRecord,
  OutboxRecord,
  OutboxState,
  ResumeRecord,
  StoredContact,
  WebhookHealth,
} from './records.ts'

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
    cursor: stored?.cursor ?? null,
    completeAt: stored?.completeAt ?? null,
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

export function skipped(row: OutboxRecord, reason: string, now: number): OutboxRecord {
  return { ...row, state: 'skipped', finishedAt: now, reason }
}

/** Connect tokens, used or not, are kept for this long after they have expired. */
export const tokensKeptMs = 30 * 86_400_000

/** It was not used, and has not expired. */
export function isUsable({ usedAt, expiresAt }: ConnectTokenRecord, at: number): boolean {
  return usedAt === null && expiresAt > at
}

/** The contact with one more delta of this account. null = first seen now. */
export function contactMerge(accountId: string): (stored: StoredContact | null, delta: ContactDelta) => StoredContact {
  return (stored, delta) => {
    const parts = stored ? partsOf(stored) : []
    const own = parts.find((part) => part.accountId === accountId)
    const part = { accountId, ...counted(own ?? nothingCounted, delta) }
    const byAccount = own ? parts.map((one) => (one === own ? part : one)) : [...parts, part]
    if (stored) return { ...stored, ...counted(stored, delta), byAccount }
    const { userId, email } = delta
    const id = contactId(userId, email)
    return { id, userId, email: email.toLowerCase(), ...counted(nothingCounted, delta), byAccount }
  }
}

/** What others call the contact is its name only until there is mail from the contact; then the newest. */
function counted(before: ContactCounts, delta: ContactDelta): ContactCounts {
  const newer = delta.receivedAt > 0 && delta.receivedAt >= before.lastReceivedAt
  return {
    name: delta.name !== '' && (newer || before.name === '') ? delta.name : before.name,
    totalCount: before.totalCount + delta.total,
    directCount: before.directCount + delta.direct,
    indirectCount: before.indirectCount + delta.indirect,
    lastReceivedAt: Math.max(before.lastReceivedAt, delta.receivedAt),
  }
}

const nothingCounted: ContactCounts = {
  name: '',
  totalCount: 0,
  directCount: 0,
  indirectCount: 0,
  lastReceivedAt: Number.NEGATIVE_INFINITY,
}

type Sums = Pick<ContactCounts, 'totalCount' | 'directCount' | 'indirectCount'>

function sumsOf(parts: readonly ContactPart[]): Sums {
  const sum = (field: keyof Sums): number => parts.reduce((all, part) => all + part[field], 0)
  return { totalCount: sum('totalCount'), directCount: sum('directCount'), indirectCount: sum('indirectCount') }
}

/** Of each account, and as one more part what the sums have beyond: counted before it was kept by account. */
function partsOf({ byAccount = [], ...contact }: StoredContact): readonly ContactPart[] {
  const known = sumsOf(byAccount)
  const totalCount = contact.totalCount - known.totalCount
  const directCount = contact.directCount - known.directCount
  const indirectCount = contact.indirectCount - known.indirectCount
  if (totalCount === 0 && directCount === 0 && indirectCount === 0) return byAccount
  const { name, lastReceivedAt } = contact
  return [...byAccount, { accountId: null, name, totalCount, directCount, indirectCount, lastReceivedAt }]
}

/** The contact as the other accounts have counted it; null = there is nothing of others in it. */
export function withoutAccount(contact: StoredContact, accountId: string): StoredContact | null {
  const parts = partsOf(contact)
  const byAccount = parts.filter((part) => part.accountId !== accountId)
  if (byAccount.length === parts.length) return contact
  if (byAccount.length === 0) return null
  const newestFirst = byAccount.toSorted((left, right) => right.lastReceivedAt - left.lastReceivedAt)
  return {
    ...contact,
    name: newestFirst.find(({ name }) => name !== '')?.name ?? '',
    ...sumsOf(byAccount),
    lastReceivedAt: Math.max(...byAccount.map((part) => part.lastReceivedAt)),
    byAccount,
  }
}

export function plainContact(contact: StoredContact): ContactRecord {
  const { id, userId, email, name, totalCount, directCount, indirectCount, lastReceivedAt } = contact
  return { id, userId, email, name, totalCount, directCount, indirectCount, lastReceivedAt }
}
