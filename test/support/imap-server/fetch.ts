/** Answers FETCH: which items are asked, and what each is worth for one message. */
import { encode } from 'iconv-lite'
import { bodyStructure, envelope, sectionOf } from './mime.ts'
import type { Hooks } from './hooks.ts'
import { mimeOf, type Folder, type Message } from './mailbox.ts'
import { SyntaxProblem, itemsOf, quote, textOf, type Token } from './tokens.ts'

export interface FetchItem {
  /** 'FLAGS', 'BODY[]', … as it is called in the answer. */
  readonly name: string
  readonly section: string | null
  readonly partial: readonly [number, number] | null
  readonly seen: boolean
}

const macros: Record<string, readonly string[]> = {
  ALL: ['FLAGS', 'INTERNALDATE', 'RFC822.SIZE', 'ENVELOPE'],
  FAST: ['FLAGS', 'INTERNALDATE', 'RFC822.SIZE'],
  FULL: ['FLAGS', 'INTERNALDATE', 'RFC822.SIZE', 'ENVELOPE', 'BODY'],
}

/** Items that only exist with an extension; without it the whole command is BAD, as servers do. */
const extensionOf: Record<string, string> = {
  MODSEQ: 'CONDSTORE',
  'X-GM-MSGID': 'X-GM-EXT-1',
  'X-GM-THRID': 'X-GM-EXT-1',
  'X-GM-LABELS': 'X-GM-EXT-1',
  EMAILID: 'OBJECTID',
  THREADID: 'OBJECTID',
}

const plainItems = new Set(['FLAGS', 'UID', 'INTERNALDATE', 'RFC822.SIZE', 'ENVELOPE', 'BODY', 'BODYSTRUCTURE'])

function itemOf(text: string, capabilities: ReadonlySet<string>): FetchItem {
  const upper = text.toUpperCase()
  const body = /^(BODY|BINARY)(\.PEEK)?\[(.*)\](?:<(\d+)\.(\d+)>)?$/is.exec(text)
  if (body) {
    const section = body[3] ?? ''
    const partial = body[4] === undefined ? null : ([Number(body[4]), Number(body[5])] as const)
    const origin = partial ? `<${partial[0]}>` : ''
    return { name: `BODY[${section}]${origin}`, section, partial, seen: body[2] === undefined }
  }
  const old: Record<string, string> = { RFC822: '', 'RFC822.HEADER': 'HEADER', 'RFC822.TEXT': 'TEXT' }
  const section = old[upper]
  if (section !== undefined) return { name: upper, section, partial: null, seen: upper !== 'RFC822.HEADER' }
  const extension = extensionOf[upper]
  if (!plainItems.has(upper) && extension === undefined) throw new SyntaxProblem(`unknown item ${text}`)
  if (extension !== undefined && !capabilities.has(extension)) throw new SyntaxProblem(`unknown item ${text}`)
  return { name: upper, section: null, partial: null, seen: false }
}

export function fetchItems(token: Token | undefined, capabilities: ReadonlySet<string>): FetchItem[] {
  const names = itemsOf(token).map(textOf)
  if (names.length === 0) throw new SyntaxProblem('no items')
  return names.flatMap((name) => macros[name.toUpperCase()] ?? [name]).map((name) => itemOf(name, capabilities))
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** ' 5-Mar-2024 09:08:07 +0000' */
function internalDateText(time: number): string {
  const date = new Date(time)
  const two = (n: number): string => String(n).padStart(2, '0')
  const day = String(date.getUTCDate()).padStart(2, ' ')
  const month = months[date.getUTCMonth()] ?? 'Jan'
  const clock = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`
  return `${day}-${month}-${date.getUTCFullYear()} ${clock} +0000`
}

export function parseInternalDate(text: string): number {
  const match = /^\s*(\d+)-(\w{3})-(\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/.exec(text)
  if (!match) throw new SyntaxProblem('invalid date')
  const [, day, month, year, hours, minutes, seconds, sign, zoneHours, zoneMinutes] = match
  const offset = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === '-' ? -1 : 1)
  const index = months.findIndex((name) => name.toLowerCase() === month?.toLowerCase())
  const local = Date.UTC(Number(year), index, Number(day), Number(hours), Number(minutes), Number(seconds))
  return local - offset * 60_000
}

export function flagList(flags: Iterable<string>): string {
  return `(${[...flags].join(' ')})`
}

function bytesOf(item: FetchItem, message: Message): Buffer {
  const bytes = sectionOf(mimeOf(message), message.raw, item.section ?? '')
  if (bytes === null) return Buffer.from('NIL')
  const [from, length] = item.partial ?? [0, bytes.length]
  const cut = bytes.subarray(from, from + length)
  return Buffer.concat([Buffer.from(`{${cut.length}}\r\n`), cut])
}

/** Asked of the mail itself, not of the server's index, nor of its cache. */
export function isOfMail({ name, section }: FetchItem, cached: Hooks['cached']): boolean {
  if (section !== null) return cached === undefined || !section.startsWith('HEADER.FIELDS')
  if (name === 'BODY' || name === 'BODYSTRUCTURE') return cached !== true
  return cached === undefined && (name === 'INTERNALDATE' || name === 'RFC822.SIZE')
}

const emptyText = '"text" "plain" NIL NIL NIL "7bit" 0 0'

/** Of a message that is expunged and still in the connection's view: item by item, as Dovecot what its cache lacks. */
function valueOfLost({ name, section }: FetchItem): string {
  if (section !== null) return 'NIL'
  if (name === 'BODY') return `(${emptyText})`
  if (name === 'BODYSTRUCTURE') return `(${emptyText} NIL NIL NIL NIL)`
  return name === 'RFC822.SIZE' ? '0' : `"${internalDateText(0)}"`
}

function valueOf(item: FetchItem, message: Message): Buffer | string {
  if (item.section !== null) return bytesOf(item, message)
  switch (item.name) {
    case 'UID':
      return String(message.uid)
    case 'FLAGS':
      return flagList(message.flags)
    case 'INTERNALDATE':
      return `"${internalDateText(message.internalDate)}"`
    case 'RFC822.SIZE':
      return String(message.raw.length)
    case 'ENVELOPE':
      return envelope(mimeOf(message))
    case 'BODY':
      return bodyStructure(mimeOf(message), false)
    case 'BODYSTRUCTURE':
      return bodyStructure(mimeOf(message), true)
    case 'MODSEQ':
      return `(${message.modseq})`
    case 'X-GM-MSGID':
      return message.identity
    case 'X-GM-THRID':
      return message.thread
    case 'X-GM-LABELS':
      return `(${[...message.labels].map(quote).join(' ')})`
    case 'EMAILID':
      return `(M${message.identity})`
    case 'THREADID':
      return `(T${message.thread})`
    default:
      return 'NIL'
  }
}

/** One whole FETCH response without `* n FETCH (` and `)`. `isLost` = of this item nothing is left. */
export function fetchResponse(
  items: readonly FetchItem[],
  message: Message,
  isLost: (item: FetchItem) => boolean,
): Buffer {
  const pieces: Buffer[] = []
  for (const [index, item] of items.entries()) {
    pieces.push(Buffer.from(`${index === 0 ? '' : ' '}${item.name} `))
    const value = isLost(item) ? valueOfLost(item) : valueOf(item, message)
    pieces.push(Buffer.isBuffer(value) ? value : Buffer.from(value))
  }
  return Buffer.concat(pieces)
}

/** Modified UTF-7, as names travel. */
export function wireName(name: string): string {
  return /^[\x20-\x25\x27-\x7e]*$/.test(name) ? name : encode(name, 'utf-7-imap').toString('latin1')
}

/** A STATUS response with these items. */
export function statusLine(folder: Folder, names: readonly string[], capabilities: ReadonlySet<string>): string {
  return `* STATUS ${quote(wireName(folder.name))} ${statusText(folder, names, capabilities)}`
}

/** STATUS items of a folder; an unknown one makes the command BAD. */
function statusText(folder: Folder, names: readonly string[], capabilities: ReadonlySet<string>): string {
  const shown = names.map((name) => {
    switch (name.toUpperCase()) {
      case 'MESSAGES':
        return `MESSAGES ${folder.messages.length}`
      case 'RECENT':
        return 'RECENT 0'
      case 'UIDNEXT':
        return `UIDNEXT ${folder.uidNext}`
      case 'UIDVALIDITY':
        return `UIDVALIDITY ${folder.uidValidity}`
      case 'UNSEEN':
        return `UNSEEN ${folder.messages.filter((message) => !message.flags.has('\\Seen')).length}`
      case 'HIGHESTMODSEQ':
        if (capabilities.has('CONDSTORE')) return `HIGHESTMODSEQ ${folder.highestModseq}`
        throw new SyntaxProblem('unknown item HIGHESTMODSEQ')
      default:
        throw new SyntaxProblem(`unknown item ${name}`)
    }
  })
  return `(${shown.join(' ')})`
}
