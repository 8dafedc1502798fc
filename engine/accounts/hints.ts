/**
 * What our own commands have done on the server, for the reader: which message a new UID holds (COPYUID), and which
 * placements we took away. In memory only: without a hint the reader finds the same as of any other mail program.
 */
import type { Place } from '../store/records.ts'

/** More hints than these are not kept: the reader uses each soon after the command. */
const hintsMost = 1000

const keyOf = ({ folderId, uidValidity, uid }: Place): string => `${folderId} ${uidValidity} ${uid}`

interface Hint {
  readonly messageId: string
  /** The folder to which the message was moved or copied; null = it was removed. */
  readonly to: string | null
  /** The folders that were marked by then may hold the message: see createMoved. */
  readonly mark: number
}

/** Hints by placement, the newest. */
function createPlaces() {
  const hints = new Map<string, Hint>()
  return {
    add(place: Place, hint: Hint): void {
      hints.set(keyOf(place), hint)
      const oldest = hints.keys().next()
      if (hints.size > hintsMost && oldest.done !== true) hints.delete(oldest.value)
    },
    get: (place: Place): Hint | undefined => hints.get(keyOf(place)),
    delete: (place: Place): boolean => hints.delete(keyOf(place)),
    isEmpty: (): boolean => hints.size === 0,
    ids: (): string[] => [...new Set(Array.from(hints.values(), ({ messageId }) => messageId))],
  }
}

export function createHints() {
  return { arrivals: createPlaces(), departures: createPlaces() }
}
