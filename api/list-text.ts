/** Prints long lists without paging in steps, and yields to the event loop between two steps. */
import { createFairQueue, measured, yieldToLoop } from '../engine/index.ts'
import { type Call, JsonText } from './route.ts'

/** Items of one step. */
const listStep = 50

/** Two lists are made at a time, and a third one for a developer who has none of them. Developers take turns. */
const lists = createFairQueue({ places: 2 })

/** `stepsOf` makes the steps of an array. */
export async function listText(
  call: Call,
  steps: Iterable<readonly object[]> | AsyncIterable<readonly object[]>,
): Promise<JsonText> {
  const { developer, signal } = call
  const texts: string[] = []
  const make = async (): Promise<void> => {
    for await (const step of steps) {
      await yieldToLoop()
      signal.throwIfAborted()
      measured(() => texts.push(...step.map((view) => JSON.stringify(view))))
    }
  }
  await lists.run({ developerId: developer.id, key: '', urgent: false }, make, signal)
  return new JsonText(`[${texts.join()}]`)
}

export function* stepsOf<T>(items: readonly T[], show: (item: T) => object): Generator<readonly object[]> {
  for (let at = 0; at < items.length; at += listStep) yield items.slice(at, at + listStep).map(show)
}
