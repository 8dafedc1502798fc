/** Worker threads for work that would block the event loop. A thread starts on demand, and ends when it is idle. */
import { platform } from 'node:os'
import { Piscina } from 'piscina'

export type Threads = ReturnType<typeof createThreads>

const idleMs = 30_000

/**
 * A thread runs the `run` that the module exports: tasks and answers are plain data. It ends when its task is aborted,
 * or needs more memory than `resourceLimits`. Tasks beyond `most` wait.
 */
export function createThreads(module: URL, most: number, resourceLimits: Piscina['options']['resourceLimits'] = {}) {
  const threads = new Piscina({
    filename: module.href,
    name: 'run',
    minThreads: 0,
    maxThreads: most,
    idleTimeout: idleMs,
    env: {},
    resourceLimits,
    recordTiming: false,
    // An idle thread waits in its event loop: terminate() now and then does not end a thread in Atomics.wait.
    atomics: 'disabled',
    // The event loop goes first where both want a processor. Only Linux has a priority for each thread.
    niceIncrement: platform() === 'linux' ? 5 : 0,
  })
  // A thread that fails as it starts: its task ends at its deadline, and the next one starts another thread.
  return threads.on('error', () => undefined)
}
