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
  destroy(error?: Error): unknown
  once(event: 'close', listener: () => void): unknown
}

interface Source {
  readonly streamer: Streamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
}

/** Answers the way to begin a command, with what it allows. `onPlain`: a response that imapflow does not see. */
export function takeIn(
  wire: Source,
  take: SessionOptions['take'],
  onPlain: (line: string) => void,
): (allowance: Allowance) => void {
  const { streamer } = wire
  const frames = createFrames()
  const giveWay = createGiveWay()
  const shares = createShares(streamer, take)
  const isOver = (): boolean => streamer.destroyed

  /** Ends when the response has been taken apart. */
  async function hand(frame: Frame): Promise<void> {
    const plain = plainOf(frame)
    if (plain === null) return put(streamer, frame)
    onPlain(frame.payload.toString('latin1', 0, 500))
    await wire.getUntaggedHandler(plain.command ?? '', plain.attributes)?.(plain)
  }

  async function read(chunk: Buffer): Promise<void> {
    await giveWay()
    await shares.grow(frames.responseBytes + frames.lineBytes + chunk.length)
    if (isOver()) return
    for (const frame of frames.read(chunk)) {
      streamer.responseBytes = frames.responseBytes
      await hand(frame)
      shares.giveBack()
      await giveWay()
      if (isOver()) return
    }
    streamer.responseBytes = frames.responseBytes
    streamer.lineBytes = frames.lineBytes
  }

  streamer.processInputChunk = (chunk) => shares.work(() => read(chunk))
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

/** Smaller answers are not counted: connections are few enough. */
const uncounted = 65_536
/** A literal is held as it came and put together; what grows line by line is asked for in steps. */
const heldTimes = 2
const step = 1_048_576

/** Shares of the budget for the answer under way. The server is not to blame for the time that we wait or work. */
function createShares(streamer: Streamer, take: SessionOptions['take']) {
  const closed = new AbortController()
  let releases: Release[] = []
  let held = 0
  let ours = false

  function giveBack(): void {
    if (held === 0) return
    for (const release of releases) release()
    releases = []
    held = 0
  }

  async function draw(bytes: number): Promise<void> {
    const more = Math.ceil((bytes - held) / step) * step
    const release = await take?.(more * heldTimes, {
      signal: closed.signal,
      pace: {
        moved: () => (held > 0 && !ours ? streamer.readBytesCounter : null),
        end: () =>
          streamer.destroy(new AppError('timeout', 'the mail server was too slow while others waited for memory')),
      },
    })
    if (!release) throw new AppError('timeout', 'too much is read from mail servers at once (MAILROOM_BUFFER_MAX)')
    releases.push(release)
    held += more
    if (closed.signal.aborted) giveBack()
  }

  streamer.once('close', () => {
    closed.abort(new AppError('network', 'the connection is closed'))
    giveBack()
  })
  return {
    /** The answer has become so large. */
    async grow(bytes: number): Promise<void> {
      if (!take || bytes <= uncounted || bytes <= held) return
      await draw(bytes).catch((error: unknown) => void streamer.destroy(error as Error))
    },
    giveBack,
    /** Work on what has come. */
    async work(run: () => Promise<void>): Promise<void> {
      ours = true
      await run().finally(() => (ours = false))
    },
  }
}
