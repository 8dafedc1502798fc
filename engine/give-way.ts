/** Work in batches gives way: whoever holds the thread for long lets the others have their turn between two pieces. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long a batch works at a stretch. */
const stretchMs = 10

/** To be called between two pieces: waits for a turn of the event loop when a stretch is over, else goes on at once. */
export function createGiveWay(): () => Promise<void> {
  let until = performance.now() + stretchMs
  return async () => {
    if (performance.now() < until) return
    await nextTurn()
    until = performance.now() + stretchMs
  }
}
