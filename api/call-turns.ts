/**
 * Calls begin in turns: in each turn of the event loop there is work on them for 10 ms, then come timers, mail servers and new
 * connections. Addresses take turns, so that the flood of one delays no other. Where nothing waits a call begins at once.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createRing, settled } from '../engine/index.ts'

type Work = () => void

export interface CallTurns {
  /** Runs `work` at once, or when its address has its turn. `first` = in every second turn, while there are such. */
  enter(address: string, first: boolean, work: Work): void
}

const stretchMs = 10

/** The work that waits must not count as the work of the call that happens to be under way. */
const outside = AsyncLocalStorage.snapshot()

export function createCallTurns(): CallTurns {
  /** By address. */
  const first = createRing<Work>()
  const others = createRing<Work>()
  /** When the first call of this turn of the loop began; null = none has. */
  let began: number | null = null
  /** After one that is first one of the others has its turn, so that a flood of health checks does not stop them. */
  let isOwed = false

  const used = (): number => performance.now() - (began ?? performance.now())
  const schedule = (): void => {
    began = performance.now()
    outside(() => setImmediate(() => void stretch()))
  }
  const stretch = async (): Promise<void> => {
    began = performance.now()
    do {
      const isFirst = others.size === 0 || (!isOwed && first.size > 0)
      const ring = isFirst ? first : others
      isOwed = isFirst
      ring.take()?.()
      await settled()
    } while (first.size + others.size > 0 && used() < stretchMs)
    if (first.size + others.size > 0) schedule()
    else began = null
  }
  return {
    enter(address, isFirst, work) {
      const isFree = used() < stretchMs && first.size === 0 && (isFirst || others.size === 0)
      if (began === null) schedule()
      if (isFree) work()
      else (isFirst ? first : others).add(address, AsyncLocalStorage.bind(work))
    },
  }
}
