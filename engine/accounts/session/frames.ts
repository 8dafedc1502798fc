/**
 * Cuts what the server sends into responses, in place of imapflow's own framing: each is bounded by its kind before
 * anything takes it apart. imapflow's tokenizer needs time by the square of an atom's length, and holds a node for each
 * token; so responses that are nothing but numbers (SEARCH, EXISTS …) never get there, and the others only up to a
 * size.
 */
import { AppError } from '../../errors.ts'

/** Of a response without its BODY[section] literals. */
const longestResponse = 65_536
/** SEARCH, ESEARCH and VANISHED. */
export const longestNumbers = 1_048_576
/** With all that is passed over: the literals of a server that sends a whole message for each piece of it. */
const largestResponse = 128 * 1_048_576
/** Words and brackets of a response; with as many it takes 10 ms to read. */
const mostTokens = 5000
/** Characters without a space or a bracket. */
const longestWord = 5000
/** Responses to a command that says nothing else. */
const mostResponses = 100_000
/** Bytes of the responses to a command that are read, without BODY[section] literals. */
const mostBytes = 8 * 1_048_576
/** FETCH responses to a command that asks for none: enough to know that flags have changed. */
const mostUnasked = 100

/** What a command lets the server answer, beyond what any command does. */
export interface Allowance {
  /** BODY[section] literals: this piece is kept of each, of `sections` in one response. None otherwise. */
  readonly piece?: { readonly from: number; readonly count: number; readonly sections: number }
  /** FETCH responses are read; otherwise only the first ones, as news. */
  readonly fetches?: true
  readonly responses?: number
  /** Once more responses came than that. */
  readonly tooMany?: AppError
  /** Of the responses that are read, without BODY[section] literals. */
  readonly bytes?: number
  /** FETCH responses beyond these bytes are left out, and this is called for each; otherwise the connection ends. */
  readonly beyond?: () => void
  /** Called with the head of an answer (FETCH, LIST …) over its limit; without it the connection ends. */
  readonly leftOut?: (head: string) => void
}

export const mostMessages = 2_000_000

/** For a command that asks for FETCH responses, one a message perhaps. */
export const fetches: Allowance = { fetches: true, responses: mostMessages, bytes: 128 * 1_048_576 }

/** What was cut off a literal: where it began, and how long the whole of it was. */
interface Cut {
  readonly from: number
  readonly size: number
}

const cuts = new WeakMap<Buffer, Cut>()

export function cutOf(bytes: Buffer): Cut | null {
  return cuts.get(bytes) ?? null
}

export interface Frame {
  readonly payload: Buffer
  readonly literals: Buffer[]
  readonly trailing: boolean
}

interface Literal {
  readonly size: number
  readonly from: number
  readonly to: number
  at: number
  readonly pieces: Buffer[]
}

const [lf, cr] = [0x0a, 0x0d]
const empty = Buffer.alloc(0)
/** Enough for a UID that stands before the rest. */
const headLength = 1024
/** Enough for `]<4294967295> {134217728}` and the line end. */
const endLength = 64
const marker = /(\](?:<(\d+)>)? ?~?)?\{(\d{1,20})\}\r?\n$/

type State = ReturnType<typeof createState>

function createState() {
  return {
    allowance: {} as Allowance,
    responses: 0,
    fetches: 0,
    bytes: 0,
    lines: [] as Buffer[],
    /** The unfinished line; and the end of it, kept even of one that is left out. */
    line: [] as Buffer[],
    lineBytes: 0,
    end: empty as Buffer,
    literals: [] as Buffer[],
    literal: null as Literal | null,
    /** Without BODY[section] literals. */
    plainBytes: 0,
    sections: 0,
    passed: 0,
    /** How it began, once it is left out. */
    leftOut: null as string | null,
  }
}

export function createFrames() {
  const state = createState()
  return {
    begin(allowance: Allowance): void {
      state.allowance = allowance
      state.responses = state.fetches = state.bytes = 0
    },
    /** The responses that end in this chunk. Throws an AppError when one passes its limit. */
    read: (chunk: Buffer): Generator<Frame, void, undefined> => read(state, chunk),
    get responseBytes(): number {
      const { plainBytes, lineBytes, literals, literal } = state
      const sections = literals.reduce((sum, { length }) => sum + length, 0)
      return plainBytes - lineBytes + sections + Math.max(0, (literal?.to ?? 0) - (literal?.from ?? 0))
    },
    get lineBytes(): number {
      return state.lineBytes
    },
  }
}

function* read(state: State, chunk: Buffer): Generator<Frame, void, undefined> {
  for (let at = 0; at < chunk.length;) {
    if (state.literal !== null) {
      at = readLiteral(state, state.literal, chunk, at)
      continue
    }
    const end = chunk.indexOf(lf, at)
    const piece = chunk.subarray(at, end < 0 ? chunk.length : end + 1)
    at += piece.length
    addToLine(state, piece)
    if (end < 0 || startsLiteral(state)) continue
    const frame = finish(state, at < chunk.length)
    if (frame !== null) yield frame
  }
}

function readLiteral(state: State, literal: Literal, chunk: Buffer, start: number): number {
  const taken = Math.min(chunk.length - start, literal.size - literal.at)
  const [from, to] = [Math.max(0, literal.from - literal.at), Math.min(taken, literal.to - literal.at)]
  if (to > from) literal.pieces.push(chunk.subarray(start + from, start + to))
  literal.at += taken
  if (literal.at === literal.size) endLiteral(state, literal)
  return start + taken
}

function endLiteral(state: State, { size, from, pieces }: Literal): void {
  state.literal = null
  if (state.leftOut !== null) return
  const bytes = Buffer.concat(pieces)
  if (bytes.length < size) cuts.set(bytes, { from, size })
  state.literals.push(bytes)
}

function addToLine(state: State, piece: Buffer): void {
  state.lineBytes += piece.length
  pass(state, piece.length)
  state.end = state.end.length === 0 ? piece : Buffer.concat([state.end.subarray(-endLength), piece])
  if (state.leftOut !== null) return
  state.line.push(piece)
  state.plainBytes += piece.length
  checkSize(state)
}

function pass(state: State, bytes: number): void {
  state.passed += bytes
  if (state.passed > largestResponse + longestNumbers) throw tooLong(state, `${largestResponse} bytes`)
}

function checkSize(state: State): void {
  if (state.plainBytes <= longestResponse || state.leftOut !== null) return
  const most = isNumbers(headOf(state)) ? longestNumbers : longestResponse
  if (state.plainBytes > most) leaveOut(state, `${most} bytes`)
}

function startsLiteral(state: State): boolean {
  const found = marker.exec(state.end.subarray(-endLength).toString('latin1'))
  state.end = empty
  state.lines.push(...state.line)
  state.line = []
  state.lineBytes = 0
  if (found === null) return false
  const size = Number(found[3])
  pass(state, size)
  const literal = { size, at: 0, pieces: [], ...kept(state, found[1] !== undefined, found[2] !== undefined, size) }
  state.literal = literal
  if (size === 0) endLiteral(state, literal)
  return true
}

function kept(state: State, isSection: boolean, isPartial: boolean, size: number): Pick<Literal, 'from' | 'to'> {
  const { piece } = state.allowance
  if (isSection && piece && isFetch(headOf(state))) {
    state.sections += 1
    if (state.sections > piece.sections) leaveOut(state, `${piece.sections} sections`)
    const from = isPartial ? 0 : piece.from
    return state.leftOut === null ? { from, to: Math.min(size, from + piece.count) } : { from: 0, to: 0 }
  }
  state.plainBytes += size
  checkSize(state)
  return { from: 0, to: state.leftOut === null ? size : 0 }
}

/** The response has ended; null = it is not read. */
function finish(state: State, trailing: boolean): Frame | null {
  const payload = payloadOf(state.lines)
  const head = state.leftOut ?? headOf(state)
  const isBeyond = state.leftOut === null && !isRead(state, head)
  if (state.leftOut === null && !isBeyond && payload.length > longestWord && !isNumbers(head) && isHeavy(payload)) {
    leaveOut(state, `${mostTokens} words, or ${longestWord} characters in one`)
  }
  const { literals, leftOut, allowance } = state
  Object.assign(state, { lines: [], literals: [], plainBytes: 0, sections: 0, passed: 0, leftOut: null })
  if (payload.length === 0 && leftOut === null) return null
  count(state)
  if (leftOut !== null) allowance.leftOut?.(leftOut)
  return leftOut !== null || isBeyond ? null : { payload, literals, trailing }
}

function count(state: State): void {
  const { responses = mostResponses, tooMany } = state.allowance
  state.responses += 1
  if (state.responses <= responses) return
  throw tooMany ?? new AppError('protocol', `the mail server sent more than ${responses} responses to one command`)
}

/** false = it is not read: it was not asked for, or is beyond the bytes of the command. */
function isRead(state: State, head: string): boolean {
  if (isUnasked(state, head)) return false
  const { bytes = mostBytes, beyond } = state.allowance
  state.bytes += state.plainBytes
  const isPassed = isFetch(head) && beyond
  // What else is said after FETCH responses that were left out is read as ever.
  if (state.bytes <= (beyond && !isPassed ? bytes + mostBytes : bytes)) return true
  if (!isPassed)
    throw new AppError('protocol', `the mail server sent more than ${bytes} bytes of responses to one command`)
  state.bytes -= state.plainBytes
  beyond()
  return false
}

function isUnasked(state: State, head: string): boolean {
  if (state.allowance.fetches || !isFetch(head)) return false
  state.fetches += 1
  return state.fetches > mostUnasked
}

/** The beginning of the response: no more pieces are put together than it needs, however many have come. */
function headOf({ lines, line }: State): string {
  const first = lines[0] ?? line[0] ?? empty
  if (first.length >= headLength) return textOf(first)
  const pieces: Buffer[] = []
  let length = 0
  for (const part of [lines, line]) {
    for (let at = 0; at < part.length && length < headLength; at += 1) {
      const piece = part[at] ?? empty
      pieces.push(piece)
      length += piece.length
    }
  }
  return textOf(Buffer.concat(pieces))
}

function textOf(head: Buffer): string {
  return head.toString('latin1', 0, headLength).replace(/^\0+/, '')
}

function leaveOut(state: State, limit: string): void {
  const head = headOf(state)
  if (!state.allowance.leftOut || !isAnswer(head)) throw tooLong(state, limit)
  Object.assign(state, { leftOut: head, lines: [], line: [], literals: [] })
}

function tooLong(state: State, limit: string): AppError {
  const word = /^\* (?:\d{1,10} )?([A-Za-z]{1,20})\b/.exec(state.leftOut ?? headOf(state))?.[1]
  const name = word === undefined ? 'response' : `${word.toUpperCase()} response`
  return new AppError('protocol', `the mail server sent a ${name} of more than ${limit}`)
}

function isFetch(head: string): boolean {
  return /^\* \d{1,10} FETCH /i.test(head)
}

function isAnswer(head: string): boolean {
  return isFetch(head) || /^\* (?:E?SEARCH|X?LIST|STATUS) /i.test(head)
}

function isNumbers(head: string): boolean {
  return /^\* (?:E?SEARCH|VANISHED)(?: |\r?\n|$)/i.test(head)
}

/** Without its line end, and without the NULs that some servers put before it. */
function payloadOf(lines: readonly Buffer[]): Buffer {
  const [first = empty] = lines
  const whole = lines.length > 1 ? Buffer.concat(lines) : first
  const from = whole[0] === 0 ? whole.findIndex((byte) => byte !== 0) : 0
  const to = whole.length - (whole.at(-1) !== lf ? 0 : whole.at(-2) === cr ? 2 : 1)
  return whole.subarray(from, to)
}

/** What separates words for imapflow's tokenizer, and makes a token of its own. */
const separators = new Set(Buffer.from(' ()"[]<>\\{}\r\n'))

function isHeavy(payload: Buffer): boolean {
  let tokens = 0
  let word = 0
  for (const byte of payload) {
    if (separators.has(byte)) {
      tokens += 1
      word = 0
    } else word += 1
    if (word > longestWord || tokens > mostTokens) return true
  }
  return false
}
