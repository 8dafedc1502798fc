/** Steps of one key one after the other, of different keys side by side. */

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
