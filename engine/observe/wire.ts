/**
 * The last lines of an account's connections, with the steps of its actor, for operators: without credentials and
 * without contents of mail. A copy is frozen at each failure. Blocks of lines are compressed to about a quarter.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { FailureClass } from '../errors.ts'

const longestLine = 160
const mostLines = 200
/** Bounds of a block. */
const blockLines = 40
const blockCharacters = 2600
/** Bound of all blocks, compressed; the frozen copy may take as much again. */
const mostBytes = 5200
const deflate = { memLevel: 4, windowBits: 12 }

export interface WireLine {
  readonly at: number
  /** Number of the connection since the start of the service; null = a step of the actor. */
  readonly connection: number | null
  readonly line: string
}

/** The connection that watches the mailbox, or the connection for commands of the API. */
export type ConnectionKind = 'mailbox' | 'commands'

/** Immutable, so that the frozen copy shares it. `packed`: a latin1 string, 200 bytes smaller than a Buffer. */
interface Block {
  readonly lines: number
  readonly packed: string
}

interface Opened {
  readonly at: number
  readonly connection: number
}

interface Frozen {
  readonly at: number
  readonly failure: FailureClass
  readonly blocks: readonly Block[]
  readonly last: number
  readonly opened: Opened | null
}

export type WireRing = ReturnType<typeof createWireRing>

export function createWireRing() {
  /** Oldest first; `lines` are the newer lines, in the format of a block. */
  let blocks: readonly Block[] = []
  let lines: string[] = []
  let characters = 0
  /** Time of the newest line, and the newest step. */
  let last = 0
  let step = ''
  let connections = 0
  const opened = new Map<ConnectionKind, Opened>()
  let frozen: Frozen | null = null

  function pack(): void {
    blocks = trimmed([...blocks, packed(lines)])
    lines = []
    characters = 0
  }

  function add(at: number, connection: number | null, line: string): WireLine {
    // A copy, because a slice would keep the whole original line in memory.
    const text = `${(at - last).toString(36)} ${connection ?? ''} ${line}`
    const copy = Buffer.from(text, 'latin1').toString('latin1')
    last = at
    lines.push(copy)
    characters += copy.length
    if (lines.length >= blockLines || characters >= blockCharacters) pack()
    return { at, connection, line }
  }

  return {
    /** Returns a function that takes the connection's lines ('C: …', 'S: …') and returns their kept form. */
    open(at: number, kind: ConnectionKind): (at: number, line: string) => WireLine {
      const connection = ++connections
      opened.set(kind, { at, connection })
      return (at, line) => add(at, connection, shown(line))
    },
    /** Adds a step of the actor, unless it equals the last step. */
    step(at: number, event: string, state: string): void {
      const text = `${event} -> ${state}`
      if (text !== step) add(at, null, text)
      step = text
    },
    /** Freezes a copy. `kind`: the connection that failed; null = none failed. */
    freeze(at: number, failure: FailureClass, kind: ConnectionKind | null): void {
      const all = lines.length === 0 ? blocks : trimmed([...blocks, packed(lines)])
      frozen = { at, failure, blocks: all, last, opened: (kind && opened.get(kind)) ?? null }
    },
    /** Oldest first. */
    lines: (): WireLine[] => dated([...blocks.flatMap(unpacked), ...lines], last),
    /** `connection`: the one that failed, with its lines and the steps since it was opened; null = none failed. */
    frozen() {
      if (frozen === null) return null
      const { at, failure, blocks: before, last: end, opened: own } = frozen
      const { at: from, connection } = own ?? { at: -Infinity, connection: null }
      const all = dated(before.flatMap(unpacked), end)
      const lines = all.filter((one) => one.at >= from && (one.connection ?? connection) === connection)
      return { at, failure, connection, lines }
    },
  }
}

/** Lines with their times. A line has the time since the line before it, so times are added up from the end. */
function dated(lines: readonly string[], last: number): WireLine[] {
  let at = last
  const found = lines.toReversed().map((text): WireLine => {
    const [, after = '', connection = '', line = ''] = /^(\S*) (\d*) (.*)$/.exec(text) ?? []
    const dated = { at, connection: connection === '' ? null : Number(connection), line }
    at -= parseInt(after, 36)
    return dated
  })
  return found.slice(0, mostLines).reverse()
}

function packed(lines: readonly string[]): Block {
  return { lines: lines.length, packed: deflateRawSync(lines.join('\n'), deflate).toString('latin1') }
}

function unpacked(block: Block): string[] {
  return inflateRawSync(Buffer.from(block.packed, 'latin1')).toString('latin1').split('\n')
}

/** The newest blocks within the bounds. */
function trimmed(blocks: readonly Block[]): readonly Block[] {
  let [lines, bytes, from] = [0, 0, blocks.length]
  for (const block of blocks.toReversed()) {
    bytes += block.packed.length
    if (lines >= mostLines || bytes > mostBytes) break
    lines += block.lines
    from -= 1
  }
  return blocks.slice(from)
}

/** '> A3 NOOP', '< A3 OK done' */
function shown(line: string): string {
  const text = line.slice(3)
  const masked = line.startsWith('C: ') ? `> ${maskedCommand(text)}` : `< ${maskedResponse(text)}`
  return masked.slice(0, longestLine).replaceAll(/[^\x20-\x7e]/g, '?')
}

/** Commands whose arguments hold no secret and no words of a mail. */
const plainCommands =
  /^[A-Za-z0-9]+ (?:UID )?(?:CAPABILITY|NOOP|LOGOUT|STARTTLS|ID|NAMESPACE|ENABLE|SELECT|EXAMINE|CLOSE|UNSELECT|LIST|LSUB|STATUS|FETCH|STORE|COPY|MOVE|EXPUNGE|IDLE|CREATE|DELETE|RENAME|SUBSCRIBE|UNSUBSCRIBE)\b/i

function maskedCommand(text: string): string {
  if (text === 'DONE' || plainCommands.test(text)) return text
  const mechanism = /^[A-Za-z0-9]+ AUTHENTICATE [A-Z0-9-]{1,20}/i.exec(text)
  if (mechanism) return `${mechanism[0]} ***`
  // The words of a search may be words of a mail.
  if (/^[A-Za-z0-9]+ (?:UID )?SEARCH /i.test(text)) return withoutTexts(text)
  return /^[A-Za-z0-9]+ (?:LOGIN|APPEND)\b/i.exec(text)?.[0].concat(' ***') ?? '***'
}

const statusLine = /^(?:\*|[A-Za-z0-9]+) (?:OK|NO|BAD|BYE|PREAUTH)\b/i
const plainAnswers =
  /^\* (?:\d+ (?:EXISTS|EXPUNGE|RECENT|more FETCH)|CAPABILITY|ENABLED|ID|NAMESPACE|FLAGS|X?LIST|LSUB|STATUS|E?SEARCH|VANISHED)\b/i

function maskedResponse(text: string): string {
  if (statusLine.test(text) || plainAnswers.test(text)) return text
  const fetched = /^\* \d+ FETCH\b/i.exec(text)
  if (fetched) return `${fetched[0]} (${fetchedItems(text)})`
  return text.startsWith('+') ? '+ ***' : '***'
}

/** Numbers and flags before the first text of the mail. */
function fetchedItems(text: string): string {
  const [begin = ''] = text.slice(0, 4 * longestLine).split(/["{[]/, 1)
  const items = begin.match(/\b(?:UID \d+|FLAGS \([^()]*\)|MODSEQ \(\d+\)|RFC822\.SIZE \d+)/gi) ?? []
  return [...items, ...(begin.endsWith(')') ? [] : ['***'])].join(' ')
}

/** Masks quoted texts as "***", also an unterminated one; of a literal only the size is shown. */
function withoutTexts(text: string): string {
  const begin = text.slice(0, 4 * longestLine).replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, '"***"')
  const literal = begin.search(/\{\d+\+?\}[\r\n]/)
  return literal < 0 ? begin : `${begin.slice(0, begin.indexOf('}', literal) + 1)} ***`
}
