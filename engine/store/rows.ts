/**
 * What both adapters share, pure: index keys of messages and queries, how a step changes a record, and the values that
 * records start with. A function that changes nothing answers the very object it was given.
 *
 * Keys of a live message: `f:<folderId>` for each folder that holds it, `d` when it is flagged \Deleted anywhere,
 * `t:<threadId>`, `a` when it has attachments, and for each of from, to, cc and bcc `<field>:<address>`,
 * `<field>:@<domain>` and `<field>:@<parent domain>`, lower-cased. A query over them is a conjunction of disjunctions;
 * subject, dates and ids are compared beside them.
 */
import { AppError } from '../errors.ts'
import { domainSpellings } from '../messages/addresses.ts'
import type { AddedMessage, FlagUpdate, MessageQuery, SyncBatch, WebhookLimits } from './port-types.ts'
import type { Address, FolderCursor, FolderRecord, GonePlacement, MessageFacts, MessageRecord } from './mail.ts'
import type { Place, Placement } from './mail.ts'

export * from './steps.ts'

/** ASCII, nearly all that is compared, is composed as it is. */
const isPlain = /^[\x20-\x7e]*$/

/** What is compared without case, on both sides: composed and lower-cased. */
export function foldCase(text: string): string {
  return (isPlain.test(text) ? text : text.normalize('NFC')).toLowerCase()
}

/** Parent domains kept per address; real mail has fewer labels; more would only fill the index. */
const maxDomains = 8

/** The domain and its parents: 'a.b.c' → ['a.b.c', 'b.c', 'c']. An address literal has no parents. */
function domainsOf(domain: string): string[] {
  if (domain.startsWith('[')) return [domain]
  const labels = domain.split('.').filter((label) => label !== '')
  const all = labels.map((_, index) => labels.slice(index).join('.'))
  return all.length > maxDomains ? [...all.slice(0, 1), ...all.slice(1 - maxDomains)] : all
}

function addressKeys(field: AddressField, { email }: Address): string[] {
  const address = foldCase(email.trim())
  if (address === '') return []
  const at = address.lastIndexOf('@')
  const domains = at < 0 ? [address] : domainsOf(address.slice(at + 1))
  const keys = domains.map((domain) => `${field}:@${domain}`)
  return at < 0 ? keys : [`${field}:${address}`, ...keys]
}

const addressFields = ['from', 'to', 'cc', 'bcc'] as const
type AddressField = (typeof addressFields)[number]

const attachmentKey = 'a'
const deletedKey = 'd'

function folderKey(folderId: string): string {
  return `f:${folderId}`
}

function threadKey(threadId: string): string {
  return `t:${threadId}`
}

/** Keys of one message's addresses: senders first, then To, Cc, Bcc. A filter finds the message by no others. */
const mostAddressKeys = 2000

/** The facts that keys are made of. */
export type KeyFacts = Pick<MessageFacts, 'threadId' | 'attachments' | 'addresses'>

/** The keys that facts alone give: they never change. */
function factKeys({ threadId, attachments, addresses }: KeyFacts, most: number): string[] {
  const keys = new Set<string>()
  for (const field of addressFields) {
    for (const one of addresses[field]) {
      for (const key of addressKeys(field, one)) if (keys.size < most) keys.add(key)
      if (keys.size === most) break
    }
  }
  return [threadKey(threadId), ...(attachments.length > 0 ? [attachmentKey] : []), ...keys]
}

/** The fields of a row that a step reads and changes: few bytes, whatever mail says. */
export type Placed = Pick<MessageRecord, 'id' | 'placements' | 'gone'>

/** A message lies somewhere; else the row is a tombstone. */
export function isLive(record: Pick<Placed, 'placements'>): boolean {
  return record.placements.length > 0
}

const views = new Set(['\\All', '\\Flagged', '\\Important'])

/** It shows what lies in other folders: a mail that leaves it may leave those too. */
export function isView({ specialUse }: Pick<FolderRecord, 'specialUse'>): boolean {
  return views.has(specialUse ?? '')
}

/** Marked for removal: it may be gone at any moment. */
export function isMarked({ flags }: Pick<Placement, 'flags'>): boolean {
  return flags.includes('\\Deleted')
}

/** The keys that come and go with the placements and their flags. */
export function placeKeys(record: Pick<Placed, 'placements'>): string[] {
  const folders = new Set(record.placements.map((placement) => folderKey(placement.folderId)))
  return record.placements.some(isMarked) ? [...folders, deletedKey] : [...folders]
}

/** Every key of the message, without repeats; none for a tombstone. `most` = of its addresses. */
export function messageKeys(record: KeyFacts & Pick<Placed, 'placements'>, most = mostAddressKeys): string[] {
  return isLive(record) ? [...placeKeys(record), ...factKeys(record, most)] : []
}

/** When the oldest disappearance that was not reported yet was seen; null = there is none. */
export function goneAt(record: Placed): number | null {
  return record.gone.length === 0 ? null : Math.min(...record.gone.map((gone) => gone.at))
}

/**
 * One alternative of an address filter: 'alice@x.com' is an address; 'x.com', '@x.com' and '.com' are domains. An
 * internationalised domain is looked for in both spellings, as a message keeps the one it was sent with.
 */
function termKeys(field: AddressField, term: string): string[] {
  const folded = foldCase(term.trim())
  const bare = folded.lastIndexOf('@') > 0 ? folded : folded.replace(/^[@.]+/, '')
  const at = bare.lastIndexOf('@')
  return domainSpellings(bare.slice(at + 1)).map(
    (domain) => `${field}:${at < 0 ? '@' : bare.slice(0, at + 1)}${domain}`,
  )
}

/**
 * The keys a query means: the message has at least one of every list in `all` (of an empty list no message has one),
 * and none of `none`. The narrowest kinds come first: addresses, thread, attachments, folder.
 */
export function queryKeys(query: MessageQuery) {
  const all: string[][] = []
  for (const field of addressFields) {
    const terms = query[field]
    if (terms) all.push([...new Set(terms.flatMap((term) => termKeys(field, term)))])
  }
  const { email } = query
  if (email) all.push([...new Set(addressFields.flatMap((field) => email.flatMap((term) => termKeys(field, term))))])
  if (query.threadId !== undefined) all.push([threadKey(query.threadId)])
  if (query.threadIds !== undefined) all.push([...new Set(query.threadIds.map(threadKey))])
  if (query.hasAttachments === true) all.push([attachmentKey])
  if (query.folderId !== undefined) all.push([folderKey(query.folderId)])
  return { all, none: query.hasAttachments === false ? [attachmentKey] : [] }
}

/** Keys without one of which a message has no hidden placement; most have none, and are shown. */
export function hidingKeys({ hidden }: MessageQuery): string[] {
  if (hidden === undefined) return []
  return [...hidden.folderIds.map(folderKey), ...(hidden.deleted ? [deletedKey] : [])]
}

/** The folded subject to look for; null = any. */
export function subjectNeedle(query: MessageQuery): string | null {
  return query.subject === undefined || query.subject === '' ? null : foldCase(query.subject)
}

export function liesAt(one: Place, other: Place): boolean {
  return one.uid === other.uid && one.folderId === other.folderId && one.uidValidity === other.uidValidity
}

export function newMessage(accountId: string, added: AddedMessage, now: number): MessageRecord {
  return {
    ...added.facts,
    id: added.id,
    accountId,
    identity: added.identity,
    firstChangeId: added.firstChangeId,
    indexedAt: now,
    placements: [added.placement],
    gone: [],
  }
}

/** A placement that is there stays as it is, perhaps with newer flags. A message that vanished from here is back. */
export function addPlacement<R extends Placed>(record: R, placement: Placement): R {
  if (record.placements.some((there) => liesAt(there, placement))) return record
  return {
    ...record,
    placements: [...record.placements, placement],
    gone: record.gone.filter((gone) => !liesAt(gone, placement)),
  }
}

/** Older flags (a lower rev than stored, because others were written in between) are left out. */
function updateFlags<R extends Placed>(record: R, folder: Omit<Place, 'uid'>, update: FlagUpdate): R {
  const place = { ...folder, uid: update.uid }
  const { flags, modseq, rev } = update
  const there = record.placements.find((placement) => liesAt(placement, place))
  if (!there || rev < there.rev) return record
  if (rev === there.rev && modseq === there.modseq && sameList(flags, there.flags)) return record
  const next = { ...there, flags: [...flags].sort(), modseq, rev }
  return { ...record, placements: record.placements.map((placement) => (placement === there ? next : placement)) }
}

/** Placements that are no longer there become `gone` with this time, to be reported later. */
export function vanishWhere<R extends Placed>(record: R, lost: (placement: Placement) => boolean, at: number): R {
  const away = record.placements.filter(lost)
  if (away.length === 0) return record
  const gone = away.map(({ folderId, path, uidValidity, uid, generation, flags }): GonePlacement => {
    const draft = flags.includes('\\Draft') ? ({ draft: true } as const) : {}
    return { folderId, path, uidValidity, uid, ...(generation === undefined ? {} : { generation }), ...draft, at }
  })
  return { ...record, placements: record.placements.filter((there) => !lost(there)), gone: [...record.gone, ...gone] }
}

/** The message of a mailbox that the account is no more: it lies nowhere, and nothing is reported. */
export function leftBehind<R extends Placed>(record: R): R {
  return record.placements.length === 0 ? record : { ...record, placements: [] }
}

export function vanish<R extends Placed>(record: R, place: Place, at: number): R {
  return vanishWhere(record, (placement) => liesAt(placement, place), at)
}

/** The disappearance from this place has been reported. */
function markReported<R extends Placed>(record: R, place: Place): R {
  if (!record.gone.some((gone) => liesAt(gone, place))) return record
  return { ...record, gone: record.gone.filter((gone) => !liesAt(gone, place)) }
}

function sameList(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index])
}

function generationsIn({ generation = 0, again = [] }: FolderCursor): number[] {
  return [generation, ...again.flatMap((one) => [one.uid, one.generation])]
}

/** The compare of every compare-and-set on a folder. */
export function sameCursor(left: FolderCursor | null, right: FolderCursor | null): boolean {
  if (left === null || right === null) return left === right
  return (
    left.uidValidity === right.uidValidity &&
    left.uidNext === right.uidNext &&
    left.backfillBelow === right.backfillBelow &&
    left.highestModseq === right.highestModseq &&
    left.exists === right.exists &&
    left.comparedAt === right.comparedAt &&
    sameList(left.quarantined, right.quarantined) &&
    sameList(generationsIn(left), generationsIn(right))
  )
}

export function leaseLost(accountId: string, epoch: number): AppError {
  return new AppError('lease_lost', 'another owner has taken the account over', { details: { accountId, epoch } })
}

export const noWebhookLimits: WebhookLimits = { owner: 0, developer: 0 }

/** Throws `too_many` when there are `most` webhooks or more. `limit` is the name of the limit. */
export function checkRoom(limit: string, most: number, there: number): void {
  if (there < most) return
  throw new AppError('too_many', `there are ${there} webhooks already`, { details: { limit } })
}

/* What a batch does to message rows, the same for both stores: the rows it makes, and the steps of those there. */

/** A pure step; the very same record when there is nothing to do. Repeating it on its outcome must do nothing. */
export type Step = <R extends Placed>(record: R) => R

/** A stored message that has a place of the batch's folder among the UIDs the batch speaks of. */
export interface Holder {
  readonly id: string
  readonly uid: number
  readonly uidValidity: string
}

/** UIDs of the batch's folder that it adds or takes away: as many as it names. */
export function placesOf({ folderId, added, vanished }: SyncBatch): number[] {
  const own = added.filter(({ placement }) => placement.folderId === folderId).map(({ placement }) => placement.uid)
  return [...new Set([...own, ...vanished])]
}

/** The batch's messages as new rows; one that the batch has twice is one row with two places. */
export function newRows({ accountId, added }: SyncBatch, now: number): MessageRecord[] {
  const records = new Map<string, MessageRecord>()
  for (const one of added) {
    const known = records.get(one.id)
    records.set(one.id, known ? addPlacement(known, one.placement) : newMessage(accountId, one, now))
  }
  return [...records.values()]
}

/** In the order to take them. `inserted` = ids of the new rows, `holders` = those at placesOf() before the batch. */
export function stepsOf(
  batch: SyncBatch,
  inserted: ReadonlySet<string>,
  holders: readonly Holder[],
): ReadonlyMap<string, readonly Step[]> {
  const steps = new Map<string, Step[]>()
  const add = (id: string, step: Step): void => {
    const own = steps.get(id) ?? []
    steps.set(id, own)
    own.push(step)
  }
  const byUid = Map.groupBy(holders, ({ uid }) => uid)
  const holding = ({ uid, uidValidity }: Pick<Placement, 'uid' | 'uidValidity'>): string[] =>
    (byUid.get(uid) ?? []).filter((holder) => holder.uidValidity === uidValidity).map(({ id }) => id)
  for (const { id, placement } of batch.added) {
    // a UID is one message: when its identity was read differently before, the older row gives the place up
    const older = placement.folderId === batch.folderId ? holding(placement).filter((other) => other !== id) : []
    for (const other of older) add(other, (row) => giveUp(row, placement))
    if (!inserted.has(id)) add(id, (row) => addPlacement(row, placement))
  }
  const place = { folderId: batch.folderId, uidValidity: batch.cursorAfter.uidValidity }
  for (const update of batch.flagUpdates) add(update.messageId, (row) => updateFlags(row, place, update))
  for (const uid of batch.vanished) {
    const lost = { ...place, uid }
    const added = batch.added.filter(({ placement }) => liesAt(placement, lost)).map(({ id }) => id)
    for (const id of new Set([...holding(lost), ...added])) add(id, (row) => vanish(row, lost, batch.vanishedAt))
  }
  for (const reported of batch.reported) add(reported.messageId, (row) => markReported(row, reported))
  return steps
}

/** The place goes without a report. */
export function giveUp<R extends Placed>(row: R, place: Placement): R {
  const placements = row.placements.filter((there) => !liesAt(there, place))
  return placements.length === row.placements.length ? row : { ...row, placements }
}

export function taken<R extends Placed>(record: R, steps: readonly Step[] = []): R {
  return steps.reduce((row, step) => step(row), record)
}
