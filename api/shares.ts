/** What one call holds of the budget: given back when its answer is out, or its client gone. */
import { AppError, type Budget, type Pace, type Release, type Use } from '../engine/index.ts'
import type { Exchange, FrameContext } from './exchange.ts'

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

/** For contents of mail, and for the answer that is made of them. A client that takes it too slowly, while others wait, loses it. */
export async function holdContents(
  ctx: FrameContext,
  budget: Pick<Budget, 'take'>,
  bytes: number,
  signal?: AbortSignal,
): Promise<void> {
  const { state, res } = ctx
  const { exchange } = state
  const pace = { moved: () => exchange.taken, end: () => void res.destroy() }
  const release = await takeShare(ctx, budget, 'contents', bytes, { pace, ...(signal ? { signal } : {}) })
  exchange.shares.push({ bytes, release })
}

/** Gives back what the answer was made of: it is held until it is out. */
export function keepOnly({ shares }: Exchange, bytes: number): void {
  let left = bytes
  for (const share of shares) {
    const kept = Math.min(left, share.bytes)
    share.release(kept)
    left -= kept
  }
}
