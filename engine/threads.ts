/**
 * Worker threads for work that would block the event loop. A thread runs a module that posts one message when it is
 * ready, and one answer per task. A thread starts on demand, and ends when it is idle or its task fails or is aborted.
 * The caller bounds the number of threads.
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
  /** Idle threads, each with the timer that ends it. */
  readonly #idle = new Map<Worker, NodeJS.Timeout>()

  constructor(module: URL, options: WorkerOptions) {
    this.#module = module
    this.#options = { env: {}, ...options }
  }

  /** A ready thread, for one `ask`. */
  async take(): Promise<Worker> {
    return this.#takeIdle() ?? (await this.#start())
  }

  /** Runs a task. Rejects when the thread ends, and with the reason of the signal. */
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
    // Without a listener an error of an idle thread would end the process; its exit is handled above.
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

  /** Keeps the idle thread for a while, because a start takes 100 ms. */
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

/** The next message of the thread. Rejects when the thread ends before, and when the signal aborts. */
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
