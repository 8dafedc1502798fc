/** Runs random scenarios. What fails is printed with its seed and path, and as small as it can be made. */
import { before, test } from 'node:test'
import fc from 'fast-check'
import { openTestStore, type TestStore } from '../../../support/test-store.ts'
import { installVirtualTime, type VirtualTime } from '../../../support/virtual-time.ts'
import { run } from './run.ts'
import { scenarios, type Scenario } from './steps.ts'

/** `tests` of them with `numRuns` scenarios each, and before them those that have failed once. */
export function checkModel(tests: number, numRuns: number, failedOnce: readonly Scenario[] = []): void {
  let time: VirtualTime
  let stored: TestStore
  before(async () => {
    time = installVirtualTime(Date.UTC(2026, 0, 1))
    // Its clock is the virtual one.
    stored = await openTestStore()
  })

  const property = fc.asyncProperty(scenarios, (scenario) => run(stored.store, time, scenario))

  for (const [index, scenario] of failedOnce.entries())
    test(`a scenario that failed once (${index + 1})`, () => run(stored.store, time, scenario))

  for (let number = 1; number <= tests; number += 1)
    test(`index, counts and changes are those of the mailbox, whatever happens (${number})`, () =>
      fc.assert(property, { numRuns, ...given(number) }))
}

/**
 * The same scenarios each time. MODEL_SEED has others, and with MODEL_PATH shows a failure again; MODEL_SHRINK=0 shows
 * the scenario as it was found.
 */
function given(usual: number): fc.Parameters<[Scenario]> {
  const { MODEL_SEED: seed = usual, MODEL_PATH: path, MODEL_RUNS: numRuns, MODEL_SHRINK } = process.env
  return {
    seed: Number(seed),
    ...(path === undefined ? {} : { path }),
    ...(numRuns === undefined ? {} : { numRuns: Number(numRuns) }),
    endOnFailure: MODEL_SHRINK === '0',
  }
}
