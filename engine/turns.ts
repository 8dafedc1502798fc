/**
 * Places for work of which only so much may go on at once, in fair turns. The developer who holds the fewest places is
 * next; of several the one who has waited longest. Within a developer urgent work goes first, then its keys (accounts,
 * hosts) take turns. A developer who holds none may have one of the spare places, half as many as there are: so no
 * developer waits only for another one's work.
 */

export interface Asked {
  readonly developerId: string
  /** An account, a host … */
  readonly key: string
  readonly urgent: boolean
}

export type GiveBack = () => void

export type Turns = ReturnType<typeof createTurns>

type Settle = (giveBack: GiveBack | null) => void

interface Line {
  readonly urgent: Ring<Settle>
  readonly usual: Ring<Settle>
  held: number
}

interface Room {
  readonly places: number
  readonly spare: number
  /** By developer; of those who hold equally many the first is next. */
  readonly lines: Map<string, Line>
  held: number
}

function createLine(): Line {
  return { urgent: createRing(), usual: createRing(), held: 0 }
}

function waitingIn({ urgent, usual }: Line): number {
  return urgent.size + usual.size
}

function nextDeveloper({ lines, held, places, spare }: Room): readonly [string, Line] | null {
  let best: readonly [string, Line] | null = null
  for (const entry of lines) {
    if (waitingIn(entry[1]) > 0 && (best === null || entry[1].held < best[1].held)) best = entry
  }
  if (best === null || held < places) return best
  return best[1].held === 0 && held < places + spare ? best : null
}

function tidy({ lines }: Room, developerId: string): void {
  const line = lines.get(developerId)
  if (line !== undefined && line.held + waitingIn(line) === 0) lines.delete(developerId)
}

function advance(room: Room): void {
  for (let next = nextDeveloper(room); next !== null; next = nextDeveloper(room)) {
    const [developerId, line] = next
    const settle = line.urgent.take() ?? line.usual.take()
    room.lines.delete(developerId)
    room.lines.set(developerId, line)
    room.held += 1
    line.held += 1
    settle?.(giveBackOf(room, developerId, line))
  }
}

/** Once; a second call does nothing. */
function giveBackOf(room: Room, developerId: string, line: Line): GiveBack {
  let given = false
  return () => {
    if (given) return
    given = true
    room.held -= 1
    line.held -= 1
    tidy(room, developerId)
    advance(room)
  }
}

export function createTurns(places: number) {
  const room: Room = { places, spare: Math.ceil(places / 2), lines: new Map(), held: 0 }
  return {
    /** A place, when its turn has come; null = it was sent away. Rejects with the signal's reason. */
    async take({ developerId, key, urgent }: Asked, signal: AbortSignal): Promise<GiveBack | null> {
      signal.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<GiveBack | null>()
      const line = room.lines.get(developerId) ?? createLine()
      room.lines.set(developerId, line)
      const ring = urgent ? line.urgent : line.usual
      const giveUp = (): void => {
        if (!ring.remove(key, resolve)) return
        tidy(room, developerId)
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      ring.add(key, resolve)
      advance(room)
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
    dismiss({ developerId, key }: Pick<Asked, 'developerId' | 'key'>): void {
      const line = room.lines.get(developerId)
      if (line === undefined) return
      const away = [...line.urgent.removeAll(key), ...line.usual.removeAll(key)]
      tidy(room, developerId)
      for (const settle of away) settle(null)
    },
    get waiting(): number {
      return room.lines.values().reduce((sum, line) => sum + waitingIn(line), 0)
    },
  }
}

export type Ring<T> = ReturnType<typeof createRing<T>>

/** What waits, by key (an address, an account, a developer): the keys take turns, and of each key the first is next. */
export function createRing<T>() {
  const lines = new Map<string, T[]>()
  let size = 0
  return {
    get size(): number {
      return size
    },
    add(key: string, one: T): void {
      size += 1
      const line = lines.get(key)
      if (line === undefined) lines.set(key, [one])
      else line.push(one)
    },
    /** The first of the next key that `may`, if any; what else waits with that key goes to the end. */
    take(may: (key: string) => boolean = () => true): T | undefined {
      const key = lines.keys().find((one) => may(one))
      if (key === undefined) return undefined
      const line = lines.get(key) ?? []
      lines.delete(key)
      if (line.length > 1) lines.set(key, line)
      size -= 1
      return line.shift()
    },
    /** false = it does not wait. */
    remove(key: string, one: T): boolean {
      const line = lines.get(key) ?? []
      const index = line.indexOf(one)
      if (index < 0) return false
      size -= 1
      line.splice(index, 1)
      if (line.length === 0) lines.delete(key)
      return true
    },
    removeAll(key: string): readonly T[] {
      const line = lines.get(key) ?? []
      size -= line.length
      lines.delete(key)
      return line
    },
  }
}
