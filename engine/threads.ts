/**
 * Threads for work that would hold the event loop: a module of its own runs in each, takes tasks as messages, answers
 * each with one, and says that it is ready first. Started when they are needed, ended when they are idle; so is a
 * thread whose task fails or is aborted. How many there are is for the caller's queue.
 */
import { once } from 'node:events'
import { type Transferable, Worker, type WorkerOptions } from 'node:worker_threads'
import { AppError } from './errors.ts'

const idleMs = 30_000
export const threadStartMs = 30_000

export class Threads {
  readonly #module: URL
  readonly #options: WorkerOptions
  readonly #threads = new Set<Worker>()
  /** Each with the timer that ends it. */
  readonly #idle = new Map<Worker, NodeJS.Timeout>()

  constructor(module: URL, options: WorkerOptions) {
    this.#module = module
    this.#options = { env: {}, ...options }
  }

  /** A thread that is ready: for one `ask`. */
  async take(): Promise<Worker> {
    return this.#takeIdle() ?? (await this.#start())
  }

  /** Rejects when the thread has ended, and with the reason of the signal. */
  async ask(thread: Worker, task: unknown, signal: AbortSignal, moved: readonly Transferable[] = []): Promise<unknown> {
    try {
      const answered = nextMessage(thread, signal)
      thread.postMessage(task, moved)
      const answer = await answered
      this.#rest(thread)
      return answer
    } catch (error) {
      await thread.terminate()
      throw error
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#threads].map((thread) => thread.terminate()))
  }

  async #start(): Promise<Worker> {
    const thread = new Worker(this.#module, this.#options)
    this.#threads.add(thread)
    thread.once('exit', () => {
      this.#threads.delete(thread)
      this.#wake(thread)
    })
    // An idle thread has no listener otherwise: its end is enough.
    thread.on('error', () => undefined)
    const late = AbortSignal.timeout(threadStartMs)
    try {
      await nextMessage(thread, late)
      return thread
    } catch (error) {
      await thread.terminate()
      throw late.aborted ? new AppError('timeout', 'a thread did not start in time') : error
    }
  }

  /** Kept for a while: a start takes a tenth of a second. */
  #rest(thread: Worker): void {
    thread.unref()
    this.#idle.set(thread, setTimeout(() => void thread.terminate(), idleMs).unref())
  }

  #wake(thread: Worker): void {
    clearTimeout(this.#idle.get(thread))
    this.#idle.delete(thread)
  }

  #takeIdle(): Worker | null {
    const last = [...this.#idle.keys()].at(-1)
    if (last === undefined) return null
    this.#wake(last)
    last.ref()
    return last
  }
}

/** Rejects when the thread ends without one, and when the signal aborts. */
async function nextMessage(thread: Worker, signal: AbortSignal): Promise<unknown> {
  const over = new AbortController()
  const options = { signal: AbortSignal.any([signal, over.signal]) }
  const ended = once(thread, 'exit', options).then(() => Promise.reject(new Error('the thread has ended')))
  try {
    return (await Promise.race([once(thread, 'message', options), ended]))[0]
  } finally {
    over.abort()
  }
}
