/** Prints long lists without paging in steps, and yields to the event loop between two steps. */
import { yieldToLoop } from '../engine/index.ts'
import { type Call, JsonText } from './route.ts'

/** Items of one step. */
export const listStep = 50

/** `stepsOf` makes the steps of an array. */
export async function listText(
  call: Call,
  steps: Iterable<readonly object[]> | AsyncIterable<readonly object[]>,
): Promise<JsonText> {
  const texts: string[] = []
  await yieldToLoop()
  for await (const step of steps) {
    for (const view of step) texts.push(JSON.stringify(view))
    call.signal.throwIfAborted()
    await yieldToLoop()
  }
  return new JsonText(`[${texts.join()}]`)
}

export function* stepsOf<T>(items: readonly T[], show: (item: T) => object): Generator<readonly object[]> {
  for (let at = 0; at < items.length; at += listStep) yield items.slice(at, at + listStep).map(show)
}
