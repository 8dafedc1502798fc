/**
 * Look-ups of host names, so that a dead zone delays its own names only. The system's resolver holds a thread until the
 * name servers answer or its time is over, after 10 s or more, and cannot be cancelled. So few look-ups run at once,
 * and zones take turns. Look-ups of equal names are shared, and a look-up that nobody waits for is not begun.
 */
import { lookup as systemLookup } from 'node:dns/promises'
import { LRUCache } from 'lru-cache'
import { createFairQueue } from '../fair-queue.ts'

type Found = readonly { readonly address: string; readonly family: number }[]

export type Lookup = (name: string, signal?: AbortSignal) => Promise<Found>

/** With half as many spare places (fair-queue.ts): 12 look-ups at once, for which main.ts makes the threads. */
const lookUpsAtOnce = 8
const lookUpsOfZone = 2
const slowNamesKept = 10_000
const slowNameMs = 3_600_000

interface Question {
  readonly answer: Promise<Found>
  /** Cancels the look-up, unless it has begun: nobody waits for it any more. */
  readonly drop: () => void
  askers: number
}

interface SlowFailure {
  readonly error: Error
  readonly until: number
}

interface Limits {
  /** A failure that took this long or longer is slow. */
  readonly slowMs: number
  /** The second slow failure in a row is remembered for this time; after the first, a quick retry still asks. */
  readonly rememberedMs: number
  /** Longer than any look-up of the resolver, whose thread cannot be stopped. */
  readonly deadlineMs: number
}

type SlowNames = LRUCache<string, SlowFailure>

/** Asks the resolver, and remembers a name whose look-up failed slowly. */
async function timed(ask: Lookup, name: string, slowNames: SlowNames, limits: Limits): Promise<Found> {
  const began = performance.now()
  try {
    const found = await ask(name)
    slowNames.delete(name)
    return found
  } catch (error) {
    const now = performance.now()
    const until = slowNames.has(name) ? now + limits.rememberedMs : 0
    if (now - began < limits.slowMs) slowNames.delete(name)
    else slowNames.set(name, { error: error as Error, until })
    throw error
  }
}

export function createLookup(
  ask: Lookup,
  limits: Limits = { slowMs: 1000, rememberedMs: 30_000, deadlineMs: 60_000 },
): Lookup {
  const places = createFairQueue({
    places: lookUpsAtOnce,
    perDeveloper: lookUpsOfZone,
    deadlineMs: limits.deadlineMs,
    late: 'the name servers did not answer in time',
  })
  const slowNames: SlowNames = new LRUCache({ maxSize: slowNamesKept, sizeCalculation: () => 1, ttl: slowNameMs })
  const underWay = new Map<string, Question>()

  function begin(name: string): Question {
    const waiting = new AbortController()
    let begun = false
    const asking = (): Promise<Found> => {
      begun = true
      return timed(ask, name, slowNames, limits)
    }
    const answer = places.run({ developerId: zoneOf(name), key: name, urgent: false }, asking, waiting.signal)
    const over = (): void => {
      if (underWay.get(name) === question) underWay.delete(name)
    }
    const drop = (): void => {
      if (begun) return
      over()
      waiting.abort()
    }
    const question: Question = { answer: answer.finally(over), drop, askers: 0 }
    underWay.set(name, question)
    return question
  }

  return async (asked, signal) => {
    const name = asked.toLowerCase()
    const known = slowNames.get(name)
    if (known !== undefined && performance.now() < known.until) throw known.error
    const question = underWay.get(name) ?? begin(name)
    question.askers += 1
    const giveUp = (): void => {
      question.askers -= 1
      if (question.askers === 0) question.drop()
    }
    signal?.addEventListener('abort', giveUp, { once: true })
    return question.answer.finally(() => signal?.removeEventListener('abort', giveUp))
  }
}

/** The last two labels of a name. */
function zoneOf(name: string): string {
  return name.split('.').slice(-2).join('.')
}

/** The look-up of this process, whose threads all callers share. */
export const lookUp = createLookup((name) => systemLookup(name, { all: true }))
