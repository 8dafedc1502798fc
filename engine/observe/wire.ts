/**
 * The last lines of an account's connections, for operators: without credentials, and without what is in its mail.
 * Frozen at each failure. Kept as few long texts, since many small ones cost three times as much.
 */
import type { FailureClass } from '../errors.ts'

const longestLine = 100
const mostLines = 200
/** Of full blocks, and of what is frozen: with the lines that follow the blocks 7,000 characters. */
const mostCharacters = 3500
const mostFrozen = 2500
/** Lines that are put together to one text. */
const blockLines = 10

export interface FrozenWire {
  readonly at: number
  readonly failure: FailureClass
  readonly lines: readonly string[]
}

export type WireRing = ReturnType<typeof createWireRing>

export function createWireRing() {
  /** Full blocks, oldest first, and the lines that follow them. */
  let blocks: string[] = []
  let lines: string[] = []
  let frozen: { readonly at: number; readonly failure: FailureClass; readonly text: string } | null = null

  function trim(): void {
    let characters = 0
    let from = blocks.length
    while (from > 0 && blocks.length - from < mostLines / blockLines) {
      characters += blocks[from - 1]?.length ?? 0
      if (characters > mostCharacters) break
      from -= 1
    }
    blocks = blocks.slice(from)
  }

  const text = (): string => [...blocks, ...lines].join('\n')
  return {
    /** A line as the session tells it, 'C: …' or 'S: …'. Answers what is kept of it. */
    add(line: string): string {
      // A copy: the text that it was cut from may be long.
      const copy = Buffer.from(shown(line), 'latin1').toString('latin1')
      lines.push(copy)
      if (lines.length >= blockLines) {
        blocks.push(lines.join('\n'))
        lines = []
        trim()
      }
      return copy
    },
    freeze(at: number, failure: FailureClass): void {
      const last = text().slice(-mostFrozen)
      const whole = last.length < mostFrozen ? last : last.slice(last.indexOf('\n') + 1)
      frozen = { at, failure, text: Buffer.from(whole, 'latin1').toString('latin1') }
    },
    /** Oldest first. */
    lines: (): string[] => split(text()).slice(-mostLines),
    frozen: (): FrozenWire | null => frozen && { at: frozen.at, failure: frozen.failure, lines: split(frozen.text) },
  }
}

function split(text: string): string[] {
  return text === '' ? [] : text.split('\n')
}

/** '> A3 NOOP', '< A3 OK done' */
function shown(line: string): string {
  const text = line.slice(3)
  const masked = line.startsWith('C: ') ? `> ${client(text)}` : `< ${server(text)}`
  return masked.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, longestLine)
}

/** Commands whose arguments are no secret, and no words of a mail. */
const plainCommands =
  /^[A-Za-z0-9]+ (?:UID )?(?:CAPABILITY|NOOP|LOGOUT|STARTTLS|ID|NAMESPACE|ENABLE|SELECT|EXAMINE|CLOSE|UNSELECT|LIST|LSUB|STATUS|FETCH|STORE|COPY|MOVE|EXPUNGE|IDLE|CREATE|DELETE|RENAME|SUBSCRIBE|UNSUBSCRIBE)\b/i

function client(text: string): string {
  if (text === 'DONE' || plainCommands.test(text)) return text
  const mechanism = /^[A-Za-z0-9]+ AUTHENTICATE [A-Z0-9-]{1,20}/i.exec(text)
  if (mechanism) return `${mechanism[0]} ***`
  // Numbers and names of a search stay; its words may be those of a mail.
  if (/^[A-Za-z0-9]+ (?:UID )?SEARCH /i.test(text)) return withoutTexts(text)
  return /^[A-Za-z0-9]+ (?:LOGIN|APPEND)\b/i.exec(text)?.[0].concat(' ***') ?? '***'
}

const statusLine = /^(?:\*|[A-Za-z0-9]+) (?:OK|NO|BAD|BYE|PREAUTH)\b/i
const plainAnswers =
  /^\* (?:\d+ (?:EXISTS|EXPUNGE|RECENT)|CAPABILITY|ENABLED|ID|NAMESPACE|FLAGS|X?LIST|LSUB|STATUS|E?SEARCH|VANISHED)\b/i

function server(text: string): string {
  if (statusLine.test(text) || plainAnswers.test(text)) return text
  const fetched = /^\* \d+ FETCH\b/i.exec(text)
  if (fetched) return `${fetched[0]} (${fetchedItems(text)})`
  return text.startsWith('+') ? '+ ***' : '***'
}

/** Numbers and flags, as far as they come before any text of the mail. */
function fetchedItems(text: string): string {
  const [begin = ''] = text.slice(0, 4 * longestLine).split(/["{[]/, 1)
  const items = begin.match(/\b(?:UID \d+|FLAGS \([^()]*\)|MODSEQ \(\d+\)|RFC822\.SIZE \d+)/gi) ?? []
  return [...items, ...(begin.endsWith(')') ? [] : ['***'])].join(' ')
}

/**
 * Quoted texts become "***", one without an end too; a literal leaves nothing but its size. Cut first: what comes
 * behind is not shown.
 */
function withoutTexts(text: string): string {
  const begin = text.slice(0, 4 * longestLine).replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, '"***"')
  const literal = begin.search(/\{\d+\+?\}[\r\n]/)
  return literal < 0 ? begin : `${begin.slice(0, begin.indexOf('}', literal) + 1)} ***`
}
