/**
 * Pure functions on messages for both stores: index keys of messages and queries, and the steps that change a message.
 * A step without a change returns the same object.
 *
 * Keys of a live message: `f:<folderId>` for each folder that holds it, `d` when it is flagged \Deleted anywhere,
 * `t:<threadId>`, `a` when it has attachments, and for each of from, to, cc and bcc `<field>:<address>`,
 * `<field>:@<domain>` and `<field>:@<parent domain>`, lower-cased. A message to thousands of people has its
 * further addresses as the lines of few long keys. A query is a conjunction of disjunctions of keys, with conditions
 * on subject, dates and ids.
 */
import { AppError } from '../errors.ts'
import { domainSpellings } from '../messages/addresses.ts'
import type { AddedMessage, FlagUpdate, MessageQuery, SyncBatch } from './port-types.ts'
import type { Address, FolderCursor, FolderRecord, GonePlacement, MessageRecord } from './mail.ts'
import type { Place, Placement } from './mail.ts'

export * from './steps.ts'

/** Printable ASCII, which needs no normalization. */
const isPlain = /^[\x20-\x7e]*$/

/** The form for comparisons without case: composed (NFC) and lower-cased. */
export function foldCase(text: string): string {
  return (isPlain.test(text) ? text : text.normalize('NFC')).toLowerCase()
}

/** The most domain keys of an address. Real domains have fewer labels. */
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

/** From so many address keys of a message on, further addresses are folded: first are senders, then To, Cc, Bcc. */
export const mostAddressKeys = 1000

/** The key of messages with folded addresses of a field. Their folded keys are `+<field>:` with a line for each. */
export function wideKey(field: AddressField): string {
  return `+${field}`
}

/** Whether the keys are of a message with folded addresses. */
export function areWide(keys: readonly string[]): boolean {
  return keys.some((key) => key.startsWith('+'))
}

const foldedLength = 2000

/** The wide key, and keys of some 2,000 characters; none without addresses. */
function foldedKeys(field: AddressField, addresses: readonly Address[]): string[] {
  const folded: string[] = []
  for (const { email } of addresses) {
    const address = foldCase(email.trim())
    if (address === '') continue
    const line = address.includes('@') ? `${address}\n` : `@${address}\n`
    const last = folded.at(-1)
    if (last === undefined || last.length > foldedLength) folded.push(`${wideKey(field)}:\n${line}`)
    else folded[folded.length - 1] = last + line
  }
  return folded.length === 0 ? [] : [wideKey(field), ...folded]
}

/** Texts by field: a folded key that contains a text of its field matches. */
export type FoldedTexts = readonly (readonly [field: AddressField, texts: readonly string[]])[]

/** The texts of the address keys among these alternatives of a query. */
export function foldedTexts(keys: readonly string[]): FoldedTexts {
  return addressFields.flatMap((field) => {
    const own = keys.filter((key) => key.startsWith(`${field}:`)).map((key) => `${key.slice(field.length + 1)}\n`)
    const texts = own.flatMap((term) => (term.startsWith('@') ? [term, `.${term.slice(1)}`] : [`\n${term}`]))
    return texts.length === 0 ? [] : [[field, texts] as const]
  })
}

/** By group of alternatives (`groupName`): the messages that match by folded addresses. */
export type WideMatches = ReadonlyMap<string, readonly string[]>

export function groupName(keys: readonly string[]): string {
  return keys.join('\n')
}

/** `find` is asked for each group of a query that names addresses. */
export async function wideMatches(
  query: MessageQuery,
  find: (texts: FoldedTexts) => Promise<readonly string[]>,
): Promise<WideMatches> {
  const matches = new Map<string, readonly string[]>()
  for (const keys of queryKeys(query).all) {
    const texts = foldedTexts(keys)
    const ids = texts.length === 0 ? [] : await find(texts)
    if (ids.length > 0) matches.set(groupName(keys), ids)
  }
  return matches
}

export type KeyFacts = Pick<MessageRecord, 'threadId' | 'attachments' | 'addresses'>

/** The keys of the facts, which never change. `most`: the number of address keys from which addresses are folded. */
function factKeys({ threadId, attachments, addresses }: KeyFacts, most: number): string[] {
  const keys = new Set<string>()
  const folded = addressFields.flatMap((field) => {
    const rest = addresses[field].findIndex((one) => {
      for (const key of addressKeys(field, one)) keys.add(key)
      return keys.size >= most
    })
    return rest < 0 ? [] : foldedKeys(field, addresses[field].slice(rest + 1))
  })
  return [threadKey(threadId), ...(attachments.length > 0 ? [attachmentKey] : []), ...keys, ...folded]
}

/** The fields that a step reads and changes. They are small, however large the message is. */
export type Placed = Pick<MessageRecord, 'id' | 'placements' | 'gone'>

/** false = the message is a tombstone. */
export function isLive(record: Pick<Placed, 'placements'>): boolean {
  return record.placements.length > 0
}

const views = new Set(['\\All', '\\Flagged', '\\Important'])

/** Whether the folder shows messages of other folders: a message that leaves it may leave those, too. */
export function isView({ specialUse }: Pick<FolderRecord, 'specialUse'>): boolean {
  return views.has(specialUse ?? '')
}

/** Whether the placement has the flag \Deleted, so that the server may expunge it. */
export function isMarked({ flags }: Pick<Placement, 'flags'>): boolean {
  return flags.includes('\\Deleted')
}

/** The keys of the placements and their flags. */
export function placeKeys(record: Pick<Placed, 'placements'>): string[] {
  const folders = new Set(record.placements.map((placement) => folderKey(placement.folderId)))
  return record.placements.some(isMarked) ? [...folders, deletedKey] : [...folders]
}

/** All keys of the message, without repeats; none of a tombstone. */
export function messageKeys(record: KeyFacts & Pick<Placed, 'placements'>, most = mostAddressKeys): string[] {
  return isLive(record) ? [...placeKeys(record), ...factKeys(record, most)] : []
}

/** The time of the oldest departure that is not reported; null = none. */
export function goneAt(record: Placed): number | null {
  return record.gone.length === 0 ? null : Math.min(...record.gone.map((gone) => gone.at))
}

/**
 * The keys of one alternative of an address filter: 'alice@x.com' is an address; 'x.com', '@x.com' and '.com' are
 * domains. An internationalised domain has a key for each spelling, as a message keeps that of its header.
 */
function termKeys(field: AddressField, term: string): string[] {
  const folded = foldCase(term.trim())
  const bare = folded.lastIndexOf('@') > 0 ? folded : folded.replace(/^[@.]+/, '')
  const at = bare.lastIndexOf('@')
  return domainSpellings(bare.slice(at + 1)).map(
    (domain) => `${field}:${at < 0 ? '@' : bare.slice(0, at + 1)}${domain}`,
  )
}

/** Kinds of keys, the narrowest first: a thread, an address, a domain, attachments, a folder, a top-level domain. */
const kinds = [/^t:/, /^(?:from|to|cc|bcc):[^@]/, /:@.*\./s, /^a$/, /^f:/, /:@/]

/** Estimates how many messages have one of the keys. A wrong estimate costs only time. */
function breadth(keys: readonly string[]): number {
  return Math.max(...keys.map((key) => kinds.findIndex((kind) => kind.test(key)))) + keys.length / 1000
}

/**
 * The keys of a query: a matching message has a key of each list in `all`, and no key of `none`. No message matches an
 * empty list. The narrowest list is the first: an index is read along it.
 */
export function queryKeys(query: MessageQuery) {
  const all: string[][] = []
  if (query.threadId !== undefined) all.push([threadKey(query.threadId)])
  if (query.threadIds !== undefined) all.push([...new Set(query.threadIds.map(threadKey))])
  for (const field of addressFields) {
    const terms = query[field]
    if (terms) all.push([...new Set(terms.flatMap((term) => termKeys(field, term)))])
  }
  const { email } = query
  if (email) all.push([...new Set(addressFields.flatMap((field) => email.flatMap((term) => termKeys(field, term))))])
  if (query.hasAttachments === true) all.push([attachmentKey])
  if (query.folderId !== undefined) all.push([folderKey(query.folderId)])
  all.sort((one, other) => breadth(one) - breadth(other))
  return { all, none: query.hasAttachments === false ? [attachmentKey] : [] }
}

/** Only a message with one of these keys can have a hidden placement. */
export function hidingKeys({ hidden }: MessageQuery): string[] {
  if (hidden === undefined) return []
  return [...hidden.folderIds.map(folderKey), ...(hidden.deleted ? [deletedKey] : [])]
}

/** The folded part of the subject; null = any subject. */
export function subjectNeedle(query: MessageQuery): string | null {
  return query.subject === undefined || query.subject === '' ? null : foldCase(query.subject)
}

export function liesAt(one: Place, other: Place): boolean {
  return one.uid === other.uid && one.folderId === other.folderId && one.uidValidity === other.uidValidity
}

export function newMessage(accountId: string, added: AddedMessage, indexedAt: number): MessageRecord {
  const { facts, placement, id, identity, firstChangeId } = added
  return { ...facts, id, accountId, identity, firstChangeId, indexedAt, placements: [placement], gone: [] }
}

/** Keeps a known placement, which may have newer flags. Ends the departure from this place. */
export function addPlacement<R extends Placed>(record: R, placement: Placement): R {
  if (record.placements.some((there) => liesAt(there, placement))) return record
  return {
    ...record,
    placements: [...record.placements, placement],
    gone: record.gone.filter((gone) => !liesAt(gone, placement)),
  }
}

/** Ignores flags with a lower rev than the stored ones. */
function updateFlags<R extends Placed>(record: R, folder: Omit<Place, 'uid'>, update: FlagUpdate): R {
  const place = { ...folder, uid: update.uid }
  const { flags, modseq, rev } = update
  const there = record.placements.find((placement) => liesAt(placement, place))
  if (!there || rev < there.rev) return record
  if (rev === there.rev && modseq === there.modseq && sameList(flags, there.flags)) return record
  const next = { ...there, flags: [...flags].sort(), modseq, rev }
  return { ...record, placements: record.placements.map((placement) => (placement === there ? next : placement)) }
}

/** Moves placements to `gone` with the time `at`, to be reported later. */
export function vanishWhere<R extends Placed>(record: R, lost: (placement: Placement) => boolean, at: number): R {
  const away = record.placements.filter(lost)
  if (away.length === 0) return record
  const gone = away.map(({ folderId, path, uidValidity, uid, generation, flags }): GonePlacement => {
    const draft = flags.includes('\\Draft') ? ({ draft: true } as const) : {}
    return { folderId, path, uidValidity, uid, ...(generation === undefined ? {} : { generation }), ...draft, at }
  })
  return { ...record, placements: record.placements.filter((there) => !lost(there)), gone: [...record.gone, ...gone] }
}

/** Removes all placements without a report, as the account has another mailbox. */
export function leftBehind<R extends Placed>(record: R): R {
  return isLive(record) ? { ...record, placements: [] } : record
}

export function vanish<R extends Placed>(record: R, place: Place, at: number): R {
  return vanishWhere(record, (placement) => liesAt(placement, place), at)
}

/** Removes a reported departure. */
function markReported<R extends Placed>(record: R, place: Place): R {
  if (!record.gone.some((gone) => liesAt(gone, place))) return record
  return { ...record, gone: record.gone.filter((gone) => !liesAt(gone, place)) }
}

function sameList(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index])
}

/** The comparison of compare-and-set on a folder. */
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
    (left.generation ?? 0) === (right.generation ?? 0)
  )
}

export function leaseLost(accountId: string, epoch: number): AppError {
  return new AppError('lease_lost', 'another owner has taken the account over', { details: { accountId, epoch } })
}

/** Throws `too_many` when there are `most` webhooks or more. `limit` is the name of the limit. */
export function checkRoom(limit: string, most: number, there: number): void {
  if (there < most) return
  throw new AppError('too_many', `there are ${there} webhooks already`, { details: { limit } })
}

/* The effects of a batch on messages: the new rows, and the steps of known rows. */

/** A pure, idempotent step; it returns the same object when it changes nothing. */
export type Step = <R extends Placed>(record: R) => R

/** A stored message at a place that the batch adds or removes. */
export interface Holder {
  readonly id: string
  readonly uid: number
  readonly uidValidity: string
}

/** The UIDs that the batch adds to or removes from its folder. */
export function placesOf({ folderId, added, vanished }: SyncBatch): number[] {
  const own = added.filter(({ placement }) => placement.folderId === folderId).map(({ placement }) => placement.uid)
  return [...new Set([...own, ...vanished])]
}

/** The batch's messages as new rows. A message with two placements is one row. */
export function newRows({ accountId, added }: SyncBatch, now: number): MessageRecord[] {
  const records = new Map<string, MessageRecord>()
  for (const one of added) {
    const known = records.get(one.id)
    records.set(one.id, known ? addPlacement(known, one.placement) : newMessage(accountId, one, now))
  }
  return [...records.values()]
}

/** Steps by message id, in order. `inserted`: ids of new rows; `holders`: the messages at placesOf(batch) before it. */
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
    // A UID is one message. A row with another identity, read before, loses the place.
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

/** Removes a placement without a report. */
export function giveUp<R extends Placed>(row: R, place: Placement): R {
  const placements = row.placements.filter((there) => !liesAt(there, place))
  return placements.length === row.placements.length ? row : { ...row, placements }
}

export function taken<R extends Placed>(record: R, steps: readonly Step[] = []): R {
  return steps.reduce((row, step) => step(row), record)
}
