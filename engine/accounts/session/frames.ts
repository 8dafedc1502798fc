/**
 * Bounds of the server's responses. imapflow's own bounds come first: a line, a literal or a response over them ends
 * the session. Within them, this file skips unread most literals and all that a command did not ask for, leaves out a
 * response that is too long for imapflow's tokenizer (which holds a node for each token and needs time by the square of
 * an atom's length), and bounds the sum of the responses to one command.
 */
import { AppError } from '../../errors.ts'
import { yieldToLoop } from '../../scheduling.ts'

/** Bytes of a response without its BODY[section] literals. */
const longestResponse = 65_536
/** Bytes of SEARCH and VANISHED, which hold nothing but numbers: they bypass the tokenizer. */
export const longestNumbers = 1_048_576
/** Bytes of a line in the answer to a command with `leftOut`. */
const longestLeftOut = 8 * 1_048_576
/** Bytes of a literal of which most is skipped: a server may send a whole message for each piece of it. */
const largestResponse = 128 * 1_048_576
/** Words, brackets and literals of a response: so many take 10 ms to read. */
const mostTokens = 5000
/** Literals that are read before the loop may go on: a chunk from the socket holds 10,000 empty ones. */
const literalsAtOnce = 100
/** Characters without a space or a bracket. */
const longestWord = 5000
/** Responses to a command without a limit of its own. */
const mostResponses = 100_000
/** Bytes of the responses to a command that are read, without BODY[section] literals. */
const mostBytes = 8 * 1_048_576
/** FETCH responses to a command that asks for none: enough to know that flags have changed. */
const mostUnasked = 100

/** The part of an answer that a command allows beyond the limits above. */
export interface Allowance {
  /** Keeps this piece of each BODY[section] literal, with at most `sections` of them in one response. */
  readonly piece?: { readonly from: number; readonly count: number; readonly sections: number }
  /** Reads all FETCH responses; absent = only the first ones, as news. */
  readonly fetches?: true
  readonly responses?: number
  /** Thrown at more than `responses`. */
  readonly tooMany?: AppError
  /** Bytes of the responses that are read, without BODY[section] literals. */
  readonly bytes?: number
  /** Called for each FETCH response beyond `bytes`, which is left out; absent = the connection ends. */
  readonly beyond?: () => void
  /** Called for an answer (FETCH, LIST …) over its limit, where else the connection ends, or that is not readable. */
  readonly leftOut?: () => void
}

export const mostMessages = 2_000_000

/** For a command that asks for FETCH responses, perhaps one for each message. */
export const fetches: Allowance = { fetches: true, responses: mostMessages, bytes: 128 * 1_048_576 }

/** The kept piece of a literal: where it begins, and the size of the whole literal. */
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
  readonly literals: readonly Buffer[]
}

/** The members of imapflow's stream of responses that are used here. */
export interface Framing {
  readonly destroyed: boolean
  /** 1 = in a line, 2 = in a literal, of which `literalWaiting` bytes have not come. */
  readonly state: number
  literalWaiting: number
  /** The ended lines and the literals of the response under way. */
  readonly inputBuffer: Buffer[]
  readonly literals: Buffer[]
  maxLineLength: number
  maxLiteralSize: number
  maxResponseSize: number
  /** Reads from there to the begin or the end of a literal, and returns that place; null = the end of the chunk. */
  processChunkSegment(chunk: Buffer, from: number): Promise<number | null>
}

const inLiteral = 2
/** Bytes of a response's head: enough for a UID that stands before the rest. */
const headLength = 1024
/** Enough for `* 4294967295 FETCH `. */
const wordsLength = 32
/** Enough for `]<4294967295.134217728> {134217728}` and the line end. */
const endLength = 64
/** Some servers name the length of a range too, against RFC 3501 §7.4.2: `<0.524288>`. */
const marker = /(\](?:<(\d+)(?:\.\d+)?>)? ?~?)?\{\d+\}\r?\n$/

type State = ReturnType<typeof createState>

function createState(framing: Framing) {
  return {
    framing,
    allowance: {} as Allowance,
    /** Counts of the command under way. */
    responses: 0,
    fetches: 0,
    bytes: 0,
    /** The literal under way, how many of the next bytes are skipped, and how many after the kept piece. */
    literal: null as Cut | null,
    skip: 0,
    skipAfter: 0,
    response: begun(),
  }
}

/** The response under way. `literalBytes`: without BODY[section] literals; `isLeftOut`: it is over its limit. */
function begun() {
  return { literals: 0, sections: 0, literalBytes: 0, passed: 0, isLeftOut: false }
}

function leaveOut({ allowance, response }: State, head: string, limit: string): void {
  if (!allowance.leftOut || !isAnswer(head)) throw tooLong(head, limit)
  response.isLeftOut = true
}

/** The piece to keep of the literal that begins. */
function windowOf(state: State, size: number): { readonly from: number; readonly to: number } {
  const { framing, response } = state
  // Some servers put NULs before a response.
  const head = framing.inputBuffer[0]?.toString('latin1', 0, headLength).replace(/^\0+/, '') ?? ''
  const end = marker.exec(framing.inputBuffer.at(-1)?.subarray(-endLength).toString('latin1') ?? '')
  response.literals += 1
  if (response.literals > mostTokens) leaveOut(state, head, `${mostTokens} literals`)
  const { piece } = state.allowance
  if (piece && end?.[1] !== undefined && isFetch(head)) {
    response.sections += 1
    if (response.sections > piece.sections) leaveOut(state, head, `${piece.sections} sections`)
    const from = end[2] === undefined ? Math.min(size, piece.from) : 0
    return { from, to: Math.min(size, from + piece.count) }
  }
  response.literalBytes += size
  if (response.literalBytes > longestResponse) leaveOut(state, head, `${longestResponse} bytes`)
  return { from: 0, to: size }
}

function beginLiteral(state: State): void {
  const { framing, response } = state
  const size = framing.literalWaiting
  const { from, to } = windowOf(state, size)
  const kept = response.isLeftOut ? 0 : to - from
  if (response.isLeftOut) framing.inputBuffer.splice(1)
  framing.literalWaiting = kept
  response.passed += size - kept
  state.literal = { from, size }
  state.skip = kept === 0 ? size : from
  state.skipAfter = size - kept - state.skip
}

function endLiteral(state: State, { size, from }: Cut): void {
  const { literals } = state.framing
  const bytes = literals.at(-1)
  if (state.response.isLeftOut) literals.splice(0)
  else if (bytes && bytes.length < size) cuts.set(bytes, { from, size })
  state.literal = null
  state.skip = state.skipAfter
}

/** Hands the chunk to imapflow, without the skipped bytes. */
async function read(state: State, chunk: Buffer): Promise<void> {
  const { framing } = state
  for (let at: number | null = 0; at !== null && at < chunk.length && !framing.destroyed;) {
    const skipped = Math.min(state.skip, chunk.length - at)
    state.skip -= skipped
    at = await framing.processChunkSegment(chunk, at + skipped)
    if (state.literal === null && framing.state === inLiteral) {
      beginLiteral(state)
      if (state.response.literals % literalsAtOnce === 0) await yieldToLoop()
    } else if (state.literal !== null && framing.state !== inLiteral) endLiteral(state, state.literal)
  }
}

/** false = the command did not ask for the response, or its bytes are used up. */
function isWanted(state: State, head: string, bytes: number): boolean {
  const { fetches: asked, bytes: most = mostBytes, beyond } = state.allowance
  if (isFetch(head) && !asked && (state.fetches += 1) > mostUnasked) return false
  const mayPass = isFetch(head) && beyond
  // After FETCH responses that were left out, other responses still have their usual room.
  if (state.bytes + bytes > (beyond && !mayPass ? most + mostBytes : most)) {
    if (!mayPass)
      throw new AppError('protocol', `the mail server sent more than ${most} bytes of responses to one command`)
    beyond()
    return false
  }
  state.bytes += bytes
  return true
}

function admits(state: State, { payload, literals }: Frame): boolean {
  const { allowance, response } = state
  const { responses = mostResponses, tooMany } = allowance
  state.responses += 1
  if (state.responses > responses)
    throw tooMany ?? new AppError('protocol', `the mail server sent more than ${responses} responses to one command`)
  const head = payload.toString('latin1', 0, wordsLength)
  const bytes = payload.length + response.literalBytes
  const wanted = response.isLeftOut || isWanted(state, head, bytes)
  const isPlain = literals.length === 0 && isNumbers(head)
  const most = isPlain ? longestNumbers : longestResponse
  const over = (limit: string): void => leaveOut(state, payload.toString('latin1', 0, headLength), limit)
  if (wanted && bytes > most) over(`${most} bytes`)
  else if (wanted && !isPlain && payload.length > longestWord && isHeavy(payload))
    over(`${mostTokens} words, or ${longestWord} characters in one`)
  state.response = begun()
  if (response.isLeftOut) allowance.leftOut?.()
  return wanted && !response.isLeftOut
}

export function createBounds(framing: Framing) {
  const state = createState(framing)
  return {
    /** A command begins. */
    begin(allowance: Allowance): void {
      Object.assign(state, { allowance, responses: 0, fetches: 0, bytes: 0 })
      const isLong = allowance.leftOut !== undefined
      framing.maxLineLength = isLong ? longestLeftOut : longestNumbers
      framing.maxLiteralSize = isLong || allowance.piece ? largestResponse : longestResponse
      framing.maxResponseSize = framing.maxLineLength + framing.maxLiteralSize
    },
    /** Bytes of the response under way that were not kept. */
    get passed(): number {
      return state.response.passed
    },
    read: (chunk: Buffer): Promise<void> => read(state, chunk),
    /** Whether the ended response, without leading NULs, is to be read. Throws an AppError when it passes a limit. */
    admits: (frame: Frame): boolean => admits(state, frame),
    /** The response that was to be read is not readable. */
    leftOut: (): void => state.allowance.leftOut?.(),
  }
}

function tooLong(head: string, limit: string): AppError {
  const word = /^\* (?:\d{1,10} )?([A-Za-z]{1,20})\b/.exec(head)?.[1]
  const name = word === undefined ? 'response' : `${word.toUpperCase()} response`
  return new AppError('protocol', `the mail server sent a ${name} of more than ${limit}`)
}

export function isFetch(head: string): boolean {
  return /^\* \d{1,10} FETCH /i.test(head)
}

function isAnswer(head: string): boolean {
  return isFetch(head) || /^\* (?:LIST|STATUS) /i.test(head)
}

function isNumbers(head: string): boolean {
  return /^\* (?:SEARCH|VANISHED)(?: |$)/i.test(head)
}

/** Each separates words for imapflow's tokenizer, and is a token of its own. */
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
