/** Several writers: the engine has both. Who may work when: steps of one key one after the other, of different keys side by side, and not too many of all. */

export interface Turns {
  /** Runs `work` when the earlier ones of this key have ended, whatever their outcome. */
  take<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>()
  return {
    take: (key, work) => {
      const before = last.get(key) ?? Promise.resolve()
      const turn = before.then(work, work)
      last.set(key, turn)
      const leave = (): void => {
        if (last.get(key) === turn) last.delete(key)
      }
      turn.then(leave, leave)
      return turn
    },
  }
}

export interface Places {
  /** Runs `work` when a place is free; who came first goes first. */
  take<T>(work: () => Promise<T>): Promise<T>
}

export function createPlaces(most: number): Places {
  let free = most
  const waiting: (() => void)[] = []
  return {
    async take(work) {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next) next()
        else free += 1
      }
    },
  }
}
