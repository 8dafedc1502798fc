/** The rim of the adapter: what leaves a method is an AppError, and it leaves in time. */
import { isRolledBack, storeError, unavailable } from './errors.ts'

type Method = (...args: never[]) => Promise<unknown>

/** A step that is rolled back this often has a server in trouble. */
const mostTries = 5

/**
 * Each method of an aggregate with the driver's errors turned into AppErrors and a deadline (`store_unavailable` past it).
 * A step that is given up goes on underneath: its writes are idempotent, and its caller repeats it. Methods in `unbounded`
 * take as long as there are rows; each of their operations has the client's own deadlines.
 */
export function guarded<T extends { readonly [K in keyof T]: Method }>(
  aggregate: T,
  deadlineMs: number,
  unbounded: readonly (keyof T & string)[] = [],
): T {
  const methods = Object.entries<Method>(aggregate).map(([name, method]) => {
    const free = (unbounded as readonly string[]).includes(name)
    const call = (...args: never[]): Promise<unknown> => {
      const work = repeated(() => method(...args))
      return free ? work : within(work, deadlineMs)
    }
    return [name, call] as const
  })
  return Object.fromEntries(methods) as unknown as T
}

/** A step is repeatable: it is taken again, from its start, when the server rolled it back for another's sake. */
async function repeated(step: () => Promise<unknown>): Promise<unknown> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step()
    } catch (error) {
      if (tries === mostTries || !isRolledBack(error)) throw storeError(error)
    }
  }
}

/** The outcome of `work`, or `store_unavailable` when it is not there in time. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable(new Error(`no answer within ${ms} ms`))), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
