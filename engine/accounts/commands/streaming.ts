/** A stream over the command connection: handed out at once, while the connection stays its own until it ends. */
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { AppError } from '../../errors.ts'
import type { Link } from '../link.ts'
import type { Session } from '../session-types.ts'

/**
 * Keeps the connection for the stream until it ends, is destroyed, or stalls. Rejects with `timeout` when there is no stream
 * within `waitMs`: the turn that comes later passes by.
 */
export async function streamHeld(
  link: Link,
  waitMs: number,
  open: (session: Session) => Promise<Readable>,
): Promise<Readable> {
  const asked = Promise.withResolvers<Readable>()
  let waiting = true
  const isWaiting = (): boolean => waiting
  const timer = setTimeout(() => {
    waiting = false
    asked.reject(
      new AppError('timeout', 'the mail server is busy with other work of this account', { retryAfterMs: 5000 }),
    )
  }, waitMs)
  link
    .hold(async (session) => {
      if (!isWaiting()) return
      const stream = await open(session)
      // Its error is told to the reader; here only its end counts.
      const ended = finished(stream).catch(() => undefined)
      if (isWaiting()) asked.resolve(stream)
      else stream.destroy()
      await ended
    })
    .catch(asked.reject)
  try {
    return await asked.promise
  } finally {
    clearTimeout(timer)
  }
}
