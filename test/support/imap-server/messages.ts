/** FETCH, STORE, SEARCH, COPY, MOVE, APPEND, EXPUNGE: what is done with the messages of the open folder. */
import type { Connection, Handler } from './connection.ts'
import { fetchItems, fetchResponse, flagList, isOfMail, parseInternalDate, type FetchItem } from './fetch.ts'
import { folderOf } from './folders.ts'
import { addMessage, changed, nextModseq, removeMessages, type Folder, type Message } from './mailbox.ts'
import { searchMatcher } from './search.ts'
import { SyntaxProblem, inSet, itemsOf, textOf, type ClientCommand, type Token } from './tokens.ts'

interface Chosen {
  readonly message: Message
  readonly sequence: number
}

interface Target {
  readonly folder: Folder
  /** Chosen messages with their sequence numbers, ascending. */
  readonly chosen: readonly Chosen[]
  /** Those that are expunged, of which the connection has not been told. */
  readonly gone: readonly Chosen[]
  readonly byUid: boolean
}

function targetOf(connection: Connection, command: ClientCommand): Target {
  const { folder, view } = connection
  if (!folder) throw new SyntaxProblem('no mailbox selected')
  const byUid = command.name.startsWith('UID ')
  const greatest = byUid ? (view.at(-1)?.uid ?? 0) : view.length
  const within = inSet(textOf(command.args[0]), greatest)
  const present = new Set(folder.messages)
  const { chosen = [], gone = [] } = Object.groupBy(
    view
      .map((message, index) => ({ message, sequence: index + 1 }))
      .filter(({ message, sequence }) => within(byUid ? message.uid : sequence)),
    ({ message }) => (present.has(message) ? 'chosen' : 'gone'),
  )
  return { folder, chosen, gone, byUid }
}

function changedSince(modifiers: Token | undefined): bigint | null {
  const items = itemsOf(modifiers)
  const at = items.findIndex((item) => textOf(item).toUpperCase() === 'CHANGEDSINCE')
  return at < 0 ? null : BigInt(textOf(items[at + 1]))
}

const uidItem: FetchItem = { name: 'UID', section: null, partial: null, seen: false }
const modseqItem: FetchItem = { ...uidItem, name: 'MODSEQ' }

function withItem(items: readonly FetchItem[], item: FetchItem): FetchItem[] {
  return items.some(({ name }) => name === item.name) ? [...items] : [item, ...items]
}

const fetch: Handler = async (connection, command) => {
  const capabilities = connection.capabilities()
  const { folder, chosen, gone, byUid } = targetOf(connection, command)
  let items = fetchItems(command.args[1], capabilities)
  const since = changedSince(command.args[2])
  if (command.args[2] && !capabilities.has('CONDSTORE')) throw new SyntaxProblem('unknown modifier')
  if (since !== null) items = withItem(items, modseqItem)
  if (byUid) items = withItem(items, uidItem)
  const isNew = ({ message }: Chosen): boolean => since === null || message.modseq > since
  const isUnknown = (item: FetchItem): boolean => isOfMail(item, connection.server.hooks.cached)
  const lost = new Set(items.some(isUnknown) ? gone.filter(isNew) : [])
  for (const one of [...chosen, ...gone].filter(isNew).sort((a, b) => a.sequence - b.sequence)) {
    const { message, sequence } = one
    const isLost = lost.has(one)
    if (!isLost && !connection.readOnly && items.some((item) => item.seen) && !message.flags.has('\\Seen')) {
      message.flags.add('\\Seen')
      message.modseq = nextModseq(folder)
      changed(folder)
    }
    const body = fetchResponse(items, message, (item) => isLost && isUnknown(item))
    await connection.send(Buffer.concat([Buffer.from(`* ${sequence} FETCH (`), body, Buffer.from(')')]))
  }
  return lost.size === 0 ? 'OK Fetch completed.' : 'OK [EXPUNGEISSUED] Some messages were already expunged.'
}

function newFlags(message: Message, operation: string, flags: readonly string[]): Set<string> {
  if (operation.startsWith('+')) return new Set([...message.flags, ...flags])
  if (operation.startsWith('-')) return new Set([...message.flags].filter((flag) => !flags.includes(flag)))
  return new Set(flags)
}

const store: Handler = async (connection, command) => {
  const { folder, chosen, byUid } = targetOf(connection, command)
  const operation = textOf(command.args[1]).toUpperCase()
  const flags = command.args.slice(2).flatMap(itemsOf).map(textOf)
  if (!/^[+-]?(FLAGS|X-GM-LABELS)(\.SILENT)?$/.test(operation)) throw new SyntaxProblem('unknown operation')
  if (connection.readOnly) return 'NO Mailbox is read-only'
  for (const { message } of chosen) {
    const kind = operation.includes('X-GM-LABELS') ? 'labels' : 'flags'
    const next = newFlags({ ...message, flags: message[kind] }, operation, flags)
    if (next.size === message[kind].size && [...next].every((flag) => message[kind].has(flag))) continue
    message[kind] = next
    message.modseq = nextModseq(folder)
  }
  connection.told(chosen.map(({ message }) => message))
  changed(folder)
  if (!operation.endsWith('.SILENT')) {
    const modseqs = connection.capabilities().has('CONDSTORE')
    for (const { message, sequence } of chosen) {
      const uid = byUid ? `UID ${message.uid} ` : ''
      const modseq = modseqs ? ` MODSEQ (${message.modseq})` : ''
      await connection.send(`* ${sequence} FETCH (${uid}FLAGS ${flagList(message.flags)}${modseq})`)
    }
  }
  return 'OK Store completed.'
}

const search: Handler = async (connection, command) => {
  const { folder, view } = connection
  if (!folder) throw new SyntaxProblem('no mailbox selected')
  const charset = textOf(command.args[0]).toUpperCase() === 'CHARSET'
  if (charset && !/^(utf-8|us-ascii)$/i.test(textOf(command.args[1]))) return 'NO [BADCHARSET (UTF-8)] Unknown charset'
  const limits = { greatestUid: view.at(-1)?.uid ?? 0, greatestSequence: view.length }
  const matches = searchMatcher(command.args.slice(charset ? 2 : 0), limits)
  const byUid = command.name.startsWith('UID ')
  const present = new Set(folder.messages)
  const found = view
    .map((message, index) => ({ message, sequence: index + 1 }))
    .filter((candidate) => present.has(candidate.message) && matches(candidate))
    .map(({ message, sequence }) => (byUid ? message.uid : sequence))
  await connection.send(['* SEARCH', ...found].join(' '))
  return 'OK Search completed.'
}

/** Copies in ascending order; the COPYUID code, or null without UIDPLUS or when there was nothing to copy. */
function copyTo(connection: Connection, { chosen }: Target, to: Folder): string | null {
  const pairs = chosen.map(({ message }) => {
    const { raw, flags, internalDate } = message
    return [message.uid, addMessage(to, { raw, flags, internalDate, like: message }).uid] as const
  })
  if (pairs.length === 0) return null
  changed(to)
  if (!connection.capabilities().has('UIDPLUS')) return null
  const [from, into] = [pairs.map(([uid]) => uid).join(','), pairs.map(([, uid]) => uid).join(',')]
  return `[COPYUID ${to.uidValidity} ${from} ${into}]`
}

const expungeIssued = 'NO [EXPUNGEISSUED] Some of the requested messages no longer exist'

const copy: Handler = (connection, command) => {
  const target = targetOf(connection, command)
  const to = folderOf(connection, command.args[1])
  if (!to) return Promise.resolve('NO [TRYCREATE] No such mailbox')
  if (target.gone.length > 0) return Promise.resolve(expungeIssued)
  const code = copyTo(connection, target, to)
  return Promise.resolve(code ? `OK ${code} Copied.` : 'OK Copied.')
}

const move: Handler = async (connection, command) => {
  if (!connection.capabilities().has('MOVE')) return 'BAD Unknown command'
  const target = targetOf(connection, command)
  const to = folderOf(connection, command.args[1])
  if (!to) return 'NO [TRYCREATE] No such mailbox'
  if (target.gone.length > 0) return expungeIssued
  const code = copyTo(connection, target, to)
  if (code) await connection.send(`* OK ${code} Moved UIDs.`)
  const moved = new Set(target.chosen.map(({ message }) => message))
  if (removeMessages(target.folder, (message) => moved.has(message)).length > 0) changed(target.folder)
  return 'OK Moved.'
}

const expunge: Handler = (connection, command) => {
  const { folder } = connection
  if (!folder) throw new SyntaxProblem('no mailbox selected')
  if (connection.readOnly) return Promise.resolve('NO Mailbox is read-only')
  const byUid = command.name === 'UID EXPUNGE'
  if (byUid && !connection.capabilities().has('UIDPLUS')) return Promise.resolve('BAD Unknown command')
  const chosen = byUid ? new Set(targetOf(connection, command).chosen.map(({ message }) => message)) : null
  const shown = new Set(connection.view)
  const removed = removeMessages(
    folder,
    (message) => message.flags.has('\\Deleted') && shown.has(message) && (chosen?.has(message) ?? true),
  )
  if (removed.length > 0) changed(folder)
  return Promise.resolve('OK Expunge completed.')
}

const append: Handler = (connection, command) => {
  const to = folderOf(connection, command.args[0])
  if (!to) return Promise.resolve('NO [TRYCREATE] No such mailbox')
  const raw = command.args.at(-1)
  if (raw?.kind !== 'string' || command.args.length < 2) throw new SyntaxProblem('no message')
  const flags = command.args.find((arg) => arg.kind === 'list')
  const date = command.args.slice(1, -1).find((arg) => arg.kind === 'string')
  const message = addMessage(to, {
    raw: raw.bytes,
    flags: itemsOf(flags).map(textOf),
    ...(date ? { internalDate: parseInternalDate(textOf(date)) } : {}),
  })
  changed(to)
  const code = connection.capabilities().has('UIDPLUS') ? `[APPENDUID ${to.uidValidity} ${message.uid}] ` : ''
  return Promise.resolve(`OK ${code}Append completed.`)
}

const close: Handler = (connection) => {
  const { folder, readOnly } = connection
  if (folder && !readOnly) {
    const removed = removeMessages(folder, (message) => message.flags.has('\\Deleted'))
    connection.open(null, false)
    if (removed.length > 0) changed(folder)
  }
  connection.open(null, false)
  return Promise.resolve('OK Closed.')
}

export const messageHandlers: readonly (readonly [string, Handler])[] = [
  ['FETCH', fetch],
  ['UID FETCH', fetch],
  ['STORE', store],
  ['UID STORE', store],
  ['SEARCH', search],
  ['UID SEARCH', search],
  ['COPY', copy],
  ['UID COPY', copy],
  ['MOVE', move],
  ['UID MOVE', move],
  ['EXPUNGE', expunge],
  ['UID EXPUNGE', expunge],
  ['APPEND', append],
  ['CLOSE', close],
]
