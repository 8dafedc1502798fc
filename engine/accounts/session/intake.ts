/**
 * What comes in: our framing in the place of imapflow's, and responses that are nothing but numbers, read without its
 * tokenizer.
 *
 * What a mail server sends draws from the budget of the process before it is read into memory: an answer under way (its
 * lines, and the literals that it announces) holds a share until it has been taken apart. A server whose answers find
 * no room is not read meanwhile.
 */
import { createGiveWay } from '../../give-way.ts'
import type { ImapResponse, Untagged } from './below.ts'
import { type Allowance, createFrames, type Frame } from './frames.ts'
import type { Release } from '../../budget.ts'
import { AppError } from '../../errors.ts'
import type { SessionOptions } from '../session-types.ts'

export interface Streamer {
  readonly readBytesCounter: number
  readonly destroyed: boolean
  readonly inputQueue: readonly unknown[]
  responseBytes: number
  lineBytes: number
  /** Ends the wait for a response to be taken, when the stream is destroyed. */
  pendingPush: (() => void) | null
  push(item: Frame & { readonly next: () => void; readonly trailingAfterLine: boolean }): boolean
  processInputChunk: (chunk: Buffer) => Promise<void>
}

interface Source {
  readonly streamer: Streamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
}

/** Answers the way to begin a command, with what it allows. `onPlain`: a response that imapflow does not see. */
export function takeIn(wire: Source, onPlain: (line: string) => void): (allowance: Allowance) => void {
  const { streamer } = wire
  const frames = createFrames()
  const giveWay = createGiveWay()

  async function hand(frame: Frame): Promise<void> {
    const plain = plainOf(frame)
    if (plain === null) return put(streamer, frame)
    onPlain(frame.payload.toString('latin1', 0, 500))
    await wire.getUntaggedHandler(plain.command ?? '', plain.attributes)?.(plain)
  }

  streamer.processInputChunk = async (chunk) => {
    await giveWay()
    for (const frame of frames.read(chunk)) {
      streamer.responseBytes = frames.responseBytes
      if (!streamer.destroyed) await hand(frame)
      await giveWay()
      if (streamer.destroyed) return
    }
    streamer.responseBytes = frames.responseBytes
    streamer.lineBytes = frames.lineBytes
  }
  return (allowance) => frames.begin(allowance)
}

async function put(streamer: Streamer, frame: Frame): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const next = (): void => resolve(undefined)
  streamer.pendingPush = next
  streamer.push({ ...frame, next, trailingAfterLine: frame.trailing || streamer.inputQueue.length > 0 })
  await promise
  streamer.pendingPush = null
}

const counted = /^\* (\d{1,10}) (EXISTS|EXPUNGE|RECENT) ?$/i
const listed = /^\* (E?SEARCH|VANISHED)(?: (.*))?$/is

/** The response as imapflow would tell it, with all the numbers in one text; null = it has to read it. */
function plainOf({ payload, literals }: Frame): ImapResponse | null {
  if (literals.length > 0) return null
  const few = counted.exec(payload.toString('latin1', 0, 40))
  if (few && payload.length < 40) return response(few[1] ?? '', few[2] ?? '')
  const many = listed.exec(payload.toString('latin1', 0, 10)) && listed.exec(payload.toString('latin1'))
  return many ? response(many[1] ?? '', many[2] ?? '') : null
}

function response(command: string, value: string): ImapResponse {
  return { tag: '*', command, attributes: [{ type: 'TEXT', value }] }
}

export interface CountedStreamer {
  readonly readBytesCounter: number
  readonly responseBytes: number
  readonly lineBytes: number
  _transform(chunk: Buffer, encoding: BufferEncoding, next: (error?: Error | null) => void): void
  push(item: { next: () => void } | null): boolean
  destroy(error?: Error): unknown
  once(event: 'close', listener: () => void): unknown
}

/** Smaller answers are not counted: connections are few enough. */
const uncounted = 65_536
/** A literal is held as it came and put together; what grows line by line is asked for in steps. */
const heldTimes = 2
const step = 1_048_576

export function countInflow(streamer: CountedStreamer, take: Take): void {
  const inflow: Inflow = { coming: noShares(), complete: noShares(), drawing: false, stop: new AbortController() }
  const transform = streamer._transform.bind(streamer)
  streamer._transform = (chunk, encoding, next) => {
    const bytes = streamer.responseBytes + streamer.lineBytes + chunk.length
    const go = (): void => transform(chunk, encoding, next)
    if (bytes <= uncounted || bytes <= inflow.coming.bytes) go()
    else draw(inflow, streamer, take, bytes).then(go, (error: unknown) => void streamer.destroy(error as Error))
  }
  const push = streamer.push.bind(streamer)
  streamer.push = (item) => {
    if (item !== null && inflow.coming.bytes > 0) handOver(inflow, item)
    return push(item)
  }
  streamer.once('close', () => {
    inflow.stop.abort(new AppError('network', 'the connection is closed'))
    giveBack(inflow.coming)
    giveBack(inflow.complete)
  })
}

type Take = NonNullable<SessionOptions['take']>

interface Inflow {
  coming: Shares
  complete: Shares
  drawing: boolean
  readonly stop: AbortController
}

/** A share for an answer that has become so large. The server is not to blame for the time that we wait. */
async function draw(inflow: Inflow, streamer: CountedStreamer, take: Take, bytes: number): Promise<void> {
  const pace = {
    moved: () => (inflow.coming.bytes > 0 && !inflow.drawing ? streamer.readBytesCounter : null),
    end: () => streamer.destroy(new AppError('timeout', 'the mail server was too slow while others waited for memory')),
  }
  const more = Math.ceil((bytes - inflow.coming.bytes) / step) * step
  inflow.drawing = true
  const release = await take(more * heldTimes, { signal: inflow.stop.signal, pace })
  inflow.drawing = false
  if (release === null)
    throw new AppError('timeout', 'too much is read from mail servers at once (MAILROOM_BUFFER_MAX)')
  if (inflow.stop.signal.aborted) release()
  inflow.coming = { bytes: inflow.coming.bytes + more, releases: [...inflow.coming.releases, release] }
}

/** Held until the answer has been taken apart. */
function handOver(inflow: Inflow, item: { next: () => void }): void {
  const { next } = item
  const mine = inflow.coming
  inflow.complete = mine
  inflow.coming = noShares()
  item.next = () => {
    giveBack(mine)
    next()
  }
}

interface Shares {
  readonly bytes: number
  readonly releases: readonly Release[]
}

const noShares = (): Shares => ({ bytes: 0, releases: [] })

function giveBack({ releases }: Shares): void {
  for (const release of releases) release()
}
