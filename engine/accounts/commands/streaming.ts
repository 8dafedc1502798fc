/**
 * A stream over the command connection, chunk by chunk: each chunk is a turn of its own, so that nobody waits for the reader. The
 * next one is asked for when this one has been taken, and is on its way while the reader reads.
 */
import { Readable } from 'node:stream'
import { AppError } from '../../errors.ts'
import type { Chunk } from '../session-types.ts'

/** One turn: short for those who wait, long enough that a fast reader does not notice the round trips. */
export const chunkBytes = 512 * 1024

/** What a stream holds: a piece that is being taken, and the next one. */
export const streamBytes = 2 * chunkBytes

/** Bytes from here on. */
export type ReadChunk = (from: number) => Promise<Chunk>

/** Rejects when there is no first chunk. A reader that takes nothing for `stallMs` is cut off with `timeout`. */
export async function streamChunks(readChunk: ReadChunk, stallMs: number): Promise<Readable> {
  const first = await readChunk(0)
  let ahead: Promise<Chunk> | null = Promise.resolve(first)
  let from = 0
  let timer: NodeJS.Timeout | undefined

  /** null = that was all. */
  async function take(): Promise<Buffer | null> {
    const chunk = await ahead
    if (chunk === null || stream.destroyed) return null
    from += chunk.bytes.length
    ahead = chunk.last ? null : readChunk(from)
    // Told when it is taken.
    ahead?.catch(() => undefined)
    return chunk.bytes.length === 0 ? take() : chunk.bytes
  }

  const stalled = (): void => void stream.destroy(new AppError('timeout', 'the part was not read in time'))
  const stream = new Readable({
    highWaterMark: chunkBytes,
    read() {
      clearTimeout(timer)
      take().then(
        (bytes) => {
          if (stream.destroyed) return
          // Full: from here on it is the reader who is waited for.
          if (!stream.push(bytes) && bytes !== null) timer = setTimeout(stalled, stallMs)
        },
        (error: unknown) => stream.destroy(error as Error),
      )
    },
    destroy(error, done) {
      clearTimeout(timer)
      done(error)
    },
  })
  return stream
}
