/**
 * Look-ups of host names, so that a dead zone delays its own names only. The system's resolver holds a thread until the
 * name servers answer or its time is over, after 10 s or more, and cannot be cancelled. So few look-ups run at once,
 * and zones take turns. Look-ups of equal names are shared, and a look-up that nobody waits for is not begun.
 */
import { lookup as systemLookup } from 'node:dns/promises'
import { createFairQueue } from '../fair-queue.ts'

type Found = readonly { readonly address: string; readonly family: number }[]

export type Lookup = (name: string, signal?: AbortSignal) => Promise<Found>

/** With half as many spare places (fair-queue.ts): 12 look-ups at once, for which main.ts makes the threads. */
const lookUpsAtOnce = 8
const lookUpsOfZone = 2
/** Longer than any look-up of the resolver, whose thread cannot be stopped. */
const lookUpMs = 60_000

interface Question {
  readonly answer: Promise<Found>
  /** Cancels the look-up, unless it has begun: nobody waits for it any more. */
  readonly drop: () => void
  askers: number
}

export function createLookup(ask: Lookup): Lookup {
  const places = createFairQueue({
    places: lookUpsAtOnce,
    perDeveloper: lookUpsOfZone,
    deadlineMs: lookUpMs,
    late: 'the name servers did not answer in time',
  })
  const underWay = new Map<string, Question>()

  function begin(name: string): Question {
    const waiting = new AbortController()
    let begun = false
    const asking = (): Promise<Found> => {
      begun = true
      return ask(name)
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
