/**
 * How steps change the records other than messages, and what those records start with. Pure; both adapters use it
 * through rows.ts, which re-exports it.
 *
 * A contact counts, and forgets an account: beside the sums a stored contact holds what each account has counted, so
 * that the part of an account that is removed can go.
 */
import { contactId, folderId } from './ids.ts'
import type { ListedFolder, OutboxKey, OutboxResult, StatusTransition } from './port.ts'
import type {
  AccountRecord,
  ChangeRecord,
  ConnectTokenRecord,
  ContactCounts,
  ContactDelta,
  ContactPart,
  ContactRecord,
  FolderCursor,
  FolderRecord,
  OutboxRecord,
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

/** The account after the transition. Whether it may be taken (epoch, fromVersion) the adapter has compared. */
export function transitioned(account: AccountRecord, step: StatusTransition): AccountRecord {
  return {
    ...account,
    status: step.status,
    statusMessage: step.statusMessage,
    statusVersion: step.fromVersion + 1,
    resume: step.resume,
  }
}

/**
 * The account as one that is to be read anew: with a new epoch, without the failures of before, and the time since
 * which unknown mail is reported. A reading that is not over yet keeps its earlier time.
 */
export function readAnew(account: AccountRecord, since: number): AccountRecord {
  const { resume, remapSince = since } = account
  const earliest = resume.initialSyncAt === null ? Math.min(remapSince, since) : since
  return {
    ...account,
    epoch: account.epoch + 1,
    resume: { ...freshResume, lastConnectedAt: resume.lastConnectedAt },
    remapSince: earliest,
  }
}

export function folderRank(path: string): 0 | 1 {
  return path === 'INBOX' ? 0 : 1
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
    messages: listed.messages ?? stored?.messages ?? 0,
    unseen: listed.unseen ?? stored?.unseen ?? 0,
    cursor: stored?.cursor ?? null,
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

export function lastStatus(row: OutboxRecord): number | null {
  return row.attempts.at(-1)?.status ?? null
}

/** Back to pending, as if never tried; the attempts stay to be seen. A `countsAt` that is there becomes now. */
export function setBack(now: number) {
  return { state: 'pending', attemptCount: 0, dueAt: now, finishedAt: null, reason: null } as const
}

export function requeued(row: OutboxRecord, now: number): OutboxRecord {
  return { ...row, ...setBack(now), ...(row.countsAt === undefined ? {} : { countsAt: now }) }
}

export function nextKey(rows: readonly Pick<OutboxRecord, 'createdAt' | 'id'>[], limit: number): OutboxKey | null {
  const last = rows.at(-1)
  return last === undefined || rows.length < limit ? null : { createdAt: last.createdAt, id: last.id }
}

export function skipped(row: OutboxRecord, reason: string, now: number): OutboxRecord {
  return { ...row, state: 'skipped', finishedAt: now, reason }
}

/** Connect tokens, used or not, are kept for this long after they have expired, and as many are listed. */
export const tokensKeptMs = 30 * 86_400_000
export const tokensListed = 1000

/** The token after its one use; null when it was used or has expired. */
export function usedToken(
  token: ConnectTokenRecord,
  usedAt: number,
  userId: string,
  accountId: string,
): ConnectTokenRecord | null {
  if (token.usedAt !== null || token.expiresAt <= usedAt) return null
  return { ...token, usedAt, userId, accountId }
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

/** Of each account, and as one more part what the sums have beyond: counted before accounts were told apart. */
function partsOf(contact: StoredContact): readonly ContactPart[] {
  const parts = contact.byAccount ?? []
  const rest = (of: (counts: ContactCounts) => number): number =>
    parts.reduce((left, part) => left - of(part), of(contact))
  const [totalCount, directCount, indirectCount] = [
    rest((counts) => counts.totalCount),
    rest((counts) => counts.directCount),
    rest((counts) => counts.indirectCount),
  ]
  if (totalCount === 0 && directCount === 0 && indirectCount === 0) return parts
  const { name, lastReceivedAt } = contact
  return [...parts, { accountId: null, name, totalCount, directCount, indirectCount, lastReceivedAt }]
}

/** The contact as the other accounts have counted it; null = there is nothing of others in it. */
export function withoutAccount(contact: StoredContact, accountId: string): StoredContact | null {
  const parts = partsOf(contact)
  const byAccount = parts.filter((part) => part.accountId !== accountId)
  if (byAccount.length === parts.length) return contact
  if (byAccount.length === 0) return null
  const newestFirst = byAccount.toSorted((left, right) => right.lastReceivedAt - left.lastReceivedAt)
  const sum = (of: (counts: ContactCounts) => number): number => byAccount.reduce((all, part) => all + of(part), 0)
  return {
    ...contact,
    name: newestFirst.find(({ name }) => name !== '')?.name ?? '',
    totalCount: sum((counts) => counts.totalCount),
    directCount: sum((counts) => counts.directCount),
    indirectCount: sum((counts) => counts.indirectCount),
    lastReceivedAt: Math.max(...byAccount.map((part) => part.lastReceivedAt)),
    byAccount,
  }
}

export function plainContact(contact: StoredContact): ContactRecord {
  const { id, userId, email, name, totalCount, directCount, indirectCount, lastReceivedAt } = contact
  return { id, userId, email, name, totalCount, directCount, indirectCount, lastReceivedAt }
}
