/** Checks on the mail server before a removal: the message is the expected one, and stays in another folder. */
import { AppError, isAppError } from '../../errors.ts'
import type { MessageRecord, Placement } from '../../store/records.ts'
import { isMarked } from '../../store/rows.ts'
import type { SyncContext } from '../write.ts'
import { inPlace, isReadAnew, isShown } from './message-location.ts'
import { digestOf, flagsAt } from './reading.ts'

/** A message that was read: where it lay, and its bytes. */
export interface Known {
  readonly places: readonly Placement[]
  readonly whole: { readonly size: number; readonly digest: string }
}

/** Each of several places may hold another mail: without a Message-ID the index may take two mails for one. */
export async function hasBytes(context: SyncContext, place: Placement, known: Known | null): Promise<boolean> {
  if (known === null || known.places.length === 1) return true
  const { size, digest } = known.whole
  return (await digestAt(context, place, size)) === digest
}

/** null when the message is not there, '' when it is longer. */
function digestAt(context: SyncContext, place: Placement, size: number): Promise<string | null> {
  return inPlace(context, place, () => digestOf(context.session, place.uid, size))
}

/**
 * Throws `conflict` unless the mail server still has the message in another folder. A \Deleted copy does not count: it
 * may be expunged at any moment.
 */
export async function mustStay(
  context: SyncContext,
  message: MessageRecord,
  leaves: readonly Placement[],
): Promise<void> {
  const { id, identity, placements } = message
  const mayBeTwo = identity.startsWith('hdr:')
  const stays: Placement[] = []
  let failure: AppError | null = null
  // The newest placement first; views of all mail last, as they are large.
  const rank = (place: Placement): number => Number(isShown(context.state, place))
  const others = placements.filter((place) => !leaves.includes(place)).reverse()
  for (const place of others.sort((one, other) => rank(one) - rank(other))) {
    if (stays.length > 0 && !mayBeTwo) break
    try {
      const now = await inPlace(context, place, () => flagsAt(context.session, place.uid), true)
      if (now !== null && (!isMarked(now) || leaves.every(isMarked))) stays.push(place)
    } catch (error) {
      const isPassed = isAppError(error, 'server_refused') || isReadAnew(error)
      if (context.session.closed || !isPassed) throw error
      failure ??= error
    }
  }
  if (stays.length === 0)
    throw failure ?? new AppError('conflict', `message ${id} lies in no other folder now; DELETE removes it`)
  if (!mayBeTwo) return
  const kept = new Set(await digestsOf(context, stays))
  const isOther = (await digestsOf(context, leaves)).some((digest) => digest !== null && !kept.has(digest))
  if (isOther) throw failure ?? new AppError('conflict', `message ${id} is another mail there, which lies nowhere else`)
}

async function digestsOf(context: SyncContext, places: readonly Placement[]): Promise<readonly (string | null)[]> {
  const digests: (string | null)[] = []
  for (const place of places) digests.push(await digestAt(context, place, Infinity))
  return digests
}
