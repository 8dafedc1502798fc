/**
 * Divides a sync batch into steps that hold the event loop shortly; nearly every batch is one step. Both stores write
 * the steps in the order of the port, the cursor last, so that the batch is repeated after a crash.
 */
import type { SyncBatch } from './port-types.ts'
import type { MessageFacts } from './records.ts'

const lists = ['contacts', 'added', 'changes', 'outbox', 'flagUpdates', 'vanished', 'reported'] as const

export type Part = Partial<Pick<SyncBatch, (typeof lists)[number]>>
export type WeighedPart = readonly [weight: number, part: Part]

/** The weight of a step, some 15 ms. An address to store weighs 1. */
const stepWeight = 1500
const contactWeight = 4

/** Groups items in order, up to the weight of a step. */
export function byWeight<T>(items: Iterable<readonly [weight: number, item: T]>): T[][] {
  const steps: T[][] = []
  let left = 0
  for (const [weight, item] of items) {
    const step = steps.at(-1)
    if (step === undefined || weight > left) {
      steps.push([item])
      left = stepWeight
    } else step.push(item)
    left -= weight
  }
  return steps
}

export function inSteps(parts: Iterable<WeighedPart>): Required<Part>[] {
  const listOf = (step: readonly Part[], list: keyof Part): unknown[] =>
    step.flatMap<unknown>((part) => part[list] ?? [])
  return byWeight(parts).map(
    (step) => Object.fromEntries(lists.map((list) => [list, listOf(step, list)])) as unknown as Required<Part>,
  )
}

/** New messages, each with its contact deltas, and the deltas of known messages. */
export function newMail({ added, contacts }: Pick<SyncBatch, 'added' | 'contacts'>): WeighedPart[] {
  const deltas = Map.groupBy(contacts, ({ key }) => key.slice(0, key.lastIndexOf(':')))
  const weighed = (weight: number, part: Part): WeighedPart => {
    return [weight + contactWeight * (part.contacts?.length ?? 0), part]
  }
  const messages = added.map((one) => {
    const own = deltas.get(one.id) ?? []
    deltas.delete(one.id)
    return weighed(addressesOf(one.facts), { added: [one], contacts: own })
  })
  return [...messages, ...[...deltas.values()].map((own) => weighed(0, { contacts: own }))]
}

function addressesOf({ addresses }: MessageFacts): number {
  return Object.values({ ...addresses }).reduce((sum, list) => sum + list.length, 0)
}
