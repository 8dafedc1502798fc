/** What comes in: our framing in the place of imapflow's, and the responses that are nothing but numbers read without its tokenizer. */
import type { ImapResponse } from 'imapflow'
import { createGiveWay } from '../../give-way.ts'
import type { Untagged } from './client.ts'
import { createFrames, type Allowance, type Frame } from './frames.ts'

/** Of imapflow's stream of responses. */
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

export interface Source {
  readonly streamer: Streamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
}

/** Answers how to say that another command begins, and what it allows. `onPlain`: a response that imapflow does not see. */
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
