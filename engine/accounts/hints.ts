/**
 * Hints of our own commands for the watching session: the message at a new UID (COPYUID), and the placements that a
 * command took away. In memory only: without a hint the change looks like another mail program's.
 */
import type { Place } from '../store/records.ts'

/** The newest hints are kept: each is used soon after its command. */
const hintsMost = 1000

const keyOf = ({ folderId, uidValidity, uid }: Place): string => `${folderId} ${uidValidity} ${uid}`

interface Hint {
  readonly messageId: string
  /** The folder to which the message was moved or copied; null = it was removed. */
  readonly to: string | null
  /** The folders with marks up to this may hold the message: see createMoved. */
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
