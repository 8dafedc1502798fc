/** What one call holds of the budget: given back when its answer is out, or its client gone. */
import { AppError, type Budget, type Pace, type Release, type Use } from '../engine/index.ts'
import type { FrameContext } from './exchange.ts'

/**
 * A share for this call, in the name of its developer, or of its address while no developer is known. Rejects with `busy` when
 * there was no room in time, and with the signal's reason.
 */
export async function takeShare(
  { state: { exchange }, res }: FrameContext,
  budget: Pick<Budget, 'take'>,
  use: Use,
  bytes: number,
  options: { readonly signal?: AbortSignal; readonly pace?: Pace } = {},
): Promise<Release> {
  const owner = { developerId: exchange.developer?.id ?? exchange.address, part: '' }
  const release = await budget.take(use, owner, bytes, options)
  if (release === null) {
    throw new AppError('busy', 'many large calls are under way (MAILROOM_BUFFER_MAX); try again', {
      retryAfterMs: 5000,
    })
  }
  if (res.closed) release()
  else res.once('close', () => release())
  return release
}

/** Of an answer that is under way: a client that takes it too slowly, while others wait, loses it. */
export function paceOf({ state: { exchange }, res }: FrameContext): Pace {
  return { moved: () => exchange.taken, end: () => res.destroy() }
}
