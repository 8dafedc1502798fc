/**
 * LIST, STATUS, SELECT, CREATE, DELETE. Finds the special use of each mailbox by its attribute (RFC 6154), else by its
 * name; no two mailboxes have the same use.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { SpecialUse } from '../../store/records.ts'
import type { ListedMailbox, MailboxStatus, SelectedMailbox } from '../session-types.ts'
import { atom, type Argument, type ImapResponse, type Untagged, specialUse as guess } from './below.ts'
import { orNull, survives, type Send } from './line.ts'
import { type Names, shownName } from './names.ts'
import type { Parts } from './parts.ts'
import {
  decimal,
  list as listOf,
  number,
  positive,
  sequence,
  statusText,
  text,
  texts,
  type Token,
} from './responses.ts'
import { lastUid } from './search.ts'
import type { Facts } from './server-state.ts'

export function mailboxArgument(names: Names, path: string): Argument {
  return { type: 'STRING', value: names.toWire(path) }
}

/** (MESSAGES 3 UIDNEXT 5 …); null for each item that is missing. */
function readStatus(token: Token | undefined): MailboxStatus {
  const items = listOf(token)
  const found = new Map<string, Token>()
  for (let at = 0; at + 1 < items.length; at += 2) {
    found.set((text(items[at]) ?? '').toUpperCase(), items[at + 1] ?? null)
  }
  return {
    messages: number(found.get('MESSAGES')),
    unseen: number(found.get('UNSEEN')),
    uidNext: positive(found.get('UIDNEXT')),
    uidValidity: decimal(found.get('UIDVALIDITY')),
    highestModseq: decimal(found.get('HIGHESTMODSEQ')),
  }
}

/**
 * A STATUS response with the name of its folder; null = the name is missing or too long. The wire form of a name is
 * learned from LIST alone: by NOTIFY Dovecot 2.3 sends names in raw UTF-8, which it does not accept.
 */
export function reportedStatus({
  attributes = [],
}: ImapResponse): { readonly path: string; readonly status: MailboxStatus } | null {
  const wire = text(attributes[0])
  if (wire === null || wire.length > longestName) return null
  return { path: shownName(wire), status: readStatus(attributes[1]) }
}

/** Sends with the items of extensions; after BAD once more without, and from then on always without. */
async function withFallback<T>(
  facts: Facts,
  kind: 'modseq' | 'listReturn',
  ask: (rich: boolean) => Promise<T>,
): Promise<T> {
  if (facts.refused(kind)) return ask(false)
  try {
    return await ask(true)
  } catch (error) {
    if (!isAppError(error, 'server_refused') || error.details['status'] !== 'BAD') throw error
    const answer = await ask(false)
    facts.refuse(kind)
    return answer
  }
}

function statusItems(modseq: boolean): Argument[] {
  const items = ['MESSAGES', 'UNSEEN', 'UIDNEXT', 'UIDVALIDITY']
  return (modseq ? [...items, 'HIGHESTMODSEQ'] : items).map(atom)
}

function asksModseq(facts: Facts): boolean {
  return facts.offers('CONDSTORE') && !facts.refused('modseq')
}

/** Bounds of a listed mailbox, in the form on the wire; what exceeds them is left out. */
const longestName = 4096
const longestAttribute = 64
const mostAttributes = 32

/** One character (RFC 3501 §7.2.2); '' = none, or an invalid one. */
function delimiterOf(token: Token | undefined): string {
  const reported = text(token) ?? ''
  return reported.length === 1 ? reported : ''
}

interface ListQuery {
  readonly pattern: string
  /** More folders than this are an error. */
  readonly most: number
  readonly options?: readonly Argument[]
}

async function readList(
  send: Send,
  { names, facts }: Parts,
  { pattern, most, options = [] }: ListQuery,
): Promise<Listed[]> {
  const found = new Map<string, Listed>()
  const statuses = new Map<string, MailboxStatus>()
  const onList: Untagged = ({ attributes = [] }) => {
    const wire = text(attributes[2])
    if (wire === null || wire === '' || wire.length > longestName || /[\r\n\0]/.test(wire)) return
    const path = names.fromWire(wire)
    const reported = texts(attributes[0], longestAttribute).slice(0, mostAttributes)
    found.set(path, { path, attributes: reported, delimiter: delimiterOf(attributes[1]) })
  }
  const onStatus: Untagged = (response) => {
    const reported = reportedStatus(response)
    if (reported === null) return
    if (facts.hearsAll && (options.length === 0 || statuses.has(reported.path)))
      facts.emit({ type: 'status', ...reported })
    statuses.set(reported.path, reported.status)
  }
  const returned = options.length === 0 ? [] : [atom('RETURN'), options]
  const args: Argument[] = [{ type: 'STRING', value: '' }, { type: 'STRING', value: pattern }, ...returned]
  const tooMany = new AppError('protocol', `the mailbox has more than ${most} folders (MAILROOM_FOLDERS_MAX)`)
  // Each folder may have a STATUS too, and a server may repeat some.
  const allowance = { responses: 2 * most + spareResponses, tooMany, bytes: mostListBytes, leftOut: () => undefined }
  await send('LIST', args, { LIST: onList, STATUS: onStatus }, allowance)
  if (found.size > most) throw tooMany
  return [...found.values()].map((entry) => {
    const status = statuses.get(entry.path)
    return status ? { ...entry, status } : entry
  })
}

const spareResponses = 1000
const mostListBytes = 32 * 1_048_576
const mostFolders = 10_000

/** With RETURN options servers give nothing else, so all options are asked for. */
function returnOptions(facts: Facts, status: boolean): Argument[] {
  if (!status || !facts.offers('LIST-STATUS')) return []
  const options: Argument[] = [atom('STATUS'), statusItems(asksModseq(facts))]
  if (facts.offers('SPECIAL-USE')) options.push(atom('SPECIAL-USE'))
  if (facts.offers('CHILDREN') || facts.offers('LIST-EXTENDED')) options.push(atom('CHILDREN'))
  return options
}

async function listAll(send: Send, deps: Parts, status: boolean, most: number): Promise<ListedMailbox[]> {
  const options = returnOptions(deps.facts, status)
  const ask = (rich: boolean): Promise<Listed[]> =>
    readList(send, deps, { pattern: '*', most, ...(rich ? { options } : {}) })
  const listed = await (options.length === 0 ? ask(false) : withFallback(deps.facts, 'listReturn', ask))
  // Some servers keep INBOX out of "*" when it lies outside the personal namespace.
  const inbox = listed.some(({ path }) => path === 'INBOX')
    ? []
    : await readList(send, deps, { pattern: 'INBOX', most })
  return assignSpecialUse([...listed, ...inbox.map((entry) => ({ ...entry, byName: true }))])
}

async function exists(send: Send, deps: Parts, path: string): Promise<boolean> {
  const listed = await readList(send, deps, { pattern: deps.names.toWire(path), most: mostFolders })
  return listed.some((entry) => entry.path === path && !hasAttribute(entry, '\\nonexistent'))
}

/** Rejects with `not_found` when the mailbox of a refused command does not exist, else with the error. */
async function refine(send: Send, deps: Parts, path: string, error: unknown): Promise<never> {
  if (isAppError(error, 'server_refused') && !(await exists(send, deps, path))) throw notFound('folder', path, error)
  throw isAppError(error, 'not_found') ? notFound('folder', path, error) : error
}

export async function askStatus(send: Send, { names, facts }: Parts, path: string): Promise<MailboxStatus> {
  const reported: MailboxStatus[] = []
  const ask = (modseq: boolean): ReturnType<Send> =>
    send('STATUS', [mailboxArgument(names, path), statusItems(modseq)], {
      STATUS(response) {
        const other = facts.hearsAll ? reportedStatus(response) : null
        if (other !== null && other.path !== path) facts.emit({ type: 'status', ...other })
        else reported.push(readStatus(response.attributes?.[1]))
      },
    })
  await (facts.offers('CONDSTORE') ? withFallback(facts, 'modseq', ask) : ask(false))
  return reported.at(-1) ?? readStatus(undefined)
}

export async function selectIn(send: Send, deps: Parts, path: string, refresh: boolean): Promise<SelectedMailbox> {
  const { facts, names } = deps
  if (facts.selected?.path === path && !refresh) return facts.selected
  facts.deselect()
  const opened = await openMailbox(send, names, path).catch((error: unknown) => refine(send, deps, path, error))
  facts.select(opened.mailbox, opened.noModseq)
  if (opened.mailbox.uidNext === null) facts.learn({ uidNext: await findUidNext(send, deps, opened.mailbox) })
  return facts.selected ?? opened.mailbox
}

/** Some servers leave UIDNEXT out of SELECT, 163.com also out of STATUS. */
async function findUidNext(send: Send, deps: Parts, { path, exists: count }: SelectedMailbox): Promise<number | null> {
  const status = await orNull(askStatus(send, deps, path))
  if (status?.uidNext || count === 0) return status?.uidNext ?? null
  const last = await orNull(lastUid(send, deps.facts))
  return last === null ? null : last + 1
}

async function createMailbox(send: Send, deps: Parts, path: string): Promise<void> {
  const argument = mailboxArgument(deps.names, path)
  await send('CREATE', [argument]).catch(async (error: unknown) => {
    const already = isAppError(error, 'conflict') || (survives(error) && (await exists(send, deps, path)))
    if (!already) throw error
    throw new AppError('conflict', `folder ${path} exists already`, { details: { path }, cause: error })
  })
  // Some mail programs show only subscribed folders. A refusal does not matter.
  await orNull(send('SUBSCRIBE', [argument]))
}

/** Without CLOSE, which would expunge. */
async function leaveMailbox(send: Send, { facts, names }: Parts): Promise<void> {
  facts.deselect()
  if (facts.offers('UNSELECT')) await send('UNSELECT')
  else await openMailbox(send, names, 'INBOX')
}

async function deleteMailbox(send: Send, deps: Parts, path: string): Promise<void> {
  if (deps.facts.selected?.path === path) await leaveMailbox(send, deps)
  await send('DELETE', [mailboxArgument(deps.names, path)]).catch((error: unknown) => refine(send, deps, path, error))
}

export function createMailboxes(parts: Parts) {
  const { line } = parts
  return {
    /** Rejects with `protocol` when the server lists more than `most` folders. */
    list: ({ status, most = mostFolders }: { status: boolean; most?: number }): Promise<ListedMailbox[]> =>
      line.run((send) => listAll(send, parts, status, most)),
    /**
     * Rejects with `not_found`, or `server_refused` when the mailbox cannot be opened. Sends nothing when it is open,
     * unless `refresh`.
     */
    select: (path: string, { refresh = false } = {}): Promise<SelectedMailbox> =>
      line.run((send) => selectIn(send, parts, path, refresh)),
    status: (path: string): Promise<MailboxStatus> =>
      line.run((send) => askStatus(send, parts, path).catch((error: unknown) => refine(send, parts, path, error))),
    createMailbox: (path: string): Promise<void> => line.run((send) => createMailbox(send, parts, path)),
    deleteMailbox: (path: string): Promise<void> => line.run((send) => deleteMailbox(send, parts, path)),
  }
}

const selectCodes = new Set(['NOMODSEQ', 'UIDNEXT', 'UIDVALIDITY', 'HIGHESTMODSEQ'])

async function openMailbox(send: Send, names: Names, path: string) {
  const codes = new Map<string, Token>()
  let exists = 0
  const reply = await send('SELECT', [mailboxArgument(names, path)], {
    OK: (response) => {
      const { code, args } = statusText(response)
      if (code !== null && selectCodes.has(code)) codes.set(code, args[0] ?? null)
    },
    EXISTS: (response) => {
      exists = sequence(response) ?? exists
    },
    FLAGS: () => undefined,
    RECENT: () => undefined,
    // An EXPUNGE or FETCH here is about the mailbox that was selected before.
    EXPUNGE: () => undefined,
    FETCH: () => undefined,
  })
  const noModseq = codes.has('NOMODSEQ')
  const mailbox: SelectedMailbox = {
    path,
    exists,
    uidNext: positive(codes.get('UIDNEXT')),
    uidValidity: decimal(codes.get('UIDVALIDITY')),
    highestModseq: noModseq ? null : decimal(codes.get('HIGHESTMODSEQ')),
    readOnly: reply.code === 'READ-ONLY',
  }
  return { mailbox, noModseq }
}

type Listed = Pick<ListedMailbox, 'path' | 'attributes' | 'delimiter'> &
  Partial<Pick<ListedMailbox, 'status' | 'byName'>>

const named = ['\\All', '\\Archive', '\\Drafts', '\\Flagged', '\\Junk', '\\Sent', '\\Trash', '\\Important'] as const
/** By attribute in lower case. INBOX is recognised by its name alone. */
const useOf = new Map<string, SpecialUse>(named.map((use) => [use.toLowerCase(), use]))

function hasAttribute({ attributes }: Listed, wanted: string): boolean {
  return attributes.some((attribute) => attribute.toLowerCase() === wanted)
}

function isSelectable(listed: Listed): boolean {
  return !hasAttribute(listed, '\\noselect') && !hasAttribute(listed, '\\nonexistent')
}

function levelsOf({ path, delimiter }: Listed): string[] {
  return delimiter === '' ? [path] : path.split(delimiter)
}

/** The lowest rank wins: 0 = the server says so, 1 = by the very name, 2 = by a similar name. */
function claimOf(listed: Listed): { readonly use: SpecialUse; readonly rank: number } | null {
  if (listed.path === 'INBOX') return { use: '\\Inbox', rank: 0 }
  const [reported] = listed.attributes.flatMap((attribute) => useOf.get(attribute.toLowerCase()) ?? [])
  if (reported !== undefined) return { use: reported, rank: 0 }
  if (!isSelectable(listed)) return null
  const { flag, source } = guess(false, { flags: new Set(), name: levelsOf(listed).at(-1) ?? '' })
  const use = useOf.get(flag?.toLowerCase() ?? '')
  return use === undefined ? null : { use, rank: source === 'name' ? 1 : 2 }
}

/** In the server's order. Of two claims of the same rank that of the shallower mailbox wins. */
export function assignSpecialUse(all: readonly Listed[]): ListedMailbox[] {
  const claims = all.flatMap((listed) => {
    const claim = claimOf(listed)
    return claim === null ? [] : [{ ...claim, listed, depth: levelsOf(listed).length }]
  })
  claims.sort((a, b) => a.rank - b.rank || a.depth - b.depth)
  const byUse = Map.groupBy(claims, ({ use }) => use)
  const uses = new Map(Array.from(byUse, ([use, [best]]) => [best?.listed, use]))
  return all.map((listed) => ({
    status: null,
    byName: false,
    ...listed,
    specialUse: uses.get(listed) ?? null,
    selectable: isSelectable(listed),
  }))
}
