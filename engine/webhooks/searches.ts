/**
 * Runs long searches (large texts, many patterns on many values) in worker threads: two, and a third for a developer
 * without a search. A search has a deadline and a thread a limit of memory; past either the thread is ended and the
 * search returns the reason. A developer has one search at a time and developers take turns, so that a developer with
 * many searches delays no other developer.
 */
import { setFlagsFromString } from 'node:v8'
import { AppError } from '../errors.ts'
import { createFairQueue, type FairQueue } from '../fair-queue.ts'
import { decodeBody, htmlText } from '../messages/bodies.ts'
import { measured } from '../observe/loop.ts'
import type { BodyPartRecord, MessageRecord } from '../store/records.ts'
import { createThreads, type Threads } from '../threads.ts'
import { type BodySearch, compileBodySearch, compileMatcher } from './match.ts'
import type { Judgement, KnownFacts, MessageEvent, Rules } from './match.ts'
import type { Target } from './targets.ts'

export interface TextPart extends BodyPartRecord {
  /** The part is an attached file, whose charset is not in the index. */
  readonly attached?: true
}

/** The beginning of a part, with its transfer encoding decoded. */
export interface PartRead {
  readonly part: TextPart
  readonly bytes: Uint8Array
  /** The bytes are the whole part; otherwise they may end within a character. */
  readonly whole: boolean
}

export function textOf({ part, bytes, whole }: PartRead): string {
  return decodeBody(bytes, { ...part, encoding: 'binary' }, !whole)
}

export async function isIn(search: BodySearch, { type }: TextPart, text: string): Promise<boolean> {
  return search.matches(type === 'text/html' ? await htmlText(text) : text)
}

export type Found<T> =
  | { readonly kind: 'found'; readonly answer: T; readonly tookMs: number }
  | { readonly kind: 'ended'; readonly why: string }

const [places, spare] = [2, 1]
const mib = 1_048_576

const setting = 'MAILROOM_FILTER_TIMEOUT'
const threadStartMs = 30_000

export class Searches {
  /** Time limit for one message and webhook. */
  readonly withinMs: number
  readonly #heapMb: number
  readonly #queue: FairQueue
  readonly #closing = new AbortController()
  readonly #threads: Threads

  /** `textBytes`: size of the largest text. */
  constructor(withinMs: number, textBytes: number) {
    this.withinMs = withinMs
    // A text is held as characters, in NFC, in lower case, and HTML in pieces.
    this.#heapMb = 64 + Math.ceil((12 * textBytes) / mib)
    const limits = { maxOldGenerationSizeMb: this.#heapMb, maxYoungGenerationSizeMb: 16 }
    this.#threads = createThreads(new URL(import.meta.url), places + spare, limits)
    this.#queue = createFairQueue({
      places,
      spare,
      perDeveloper: 1,
      deadlineMs: withinMs + threadStartMs,
      late: 'the search took too long',
    })
  }

  /**
   * Returns the answer and its time without the wait for a turn, or the reason for no answer. Rejects with
   * `shutting_down` after `close`. The bytes of a text are transferred to the worker: the caller loses them.
   */
  async run<K extends Task['kind']>(
    owner: string,
    task: Extract<Task, { kind: K }>,
    withinMs = this.withinMs,
  ): Promise<Found<Answers[K]>> {
    const { signal } = this.#closing
    try {
      const asked = { developerId: owner, key: '', urgent: false }
      const found = await this.#queue.run(asked, (over) => this.#search(task, withinMs, over), signal)
      return found as Found<Answers[K]>
    } catch (error) {
      throw signal.aborted ? (signal.reason as Error) : error
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new AppError('shutting_down', 'no more searches are begun'))
    await this.#threads.destroy()
  }

  /** `over`: ends the search with its place in the queue. */
  async #search(task: Task, withinMs: number, over: AbortSignal): Promise<Found<Answers[Task['kind']]>> {
    const threads = this.#threads
    // The start script's flag would override the worker's limit; the main thread does not need it any more.
    setFlagsFromString('--max-old-space-size=0')
    let late: AbortSignal | null = null
    try {
      // A thread that starts takes no time of the search.
      await threads.run(null, { signal: over })
      late = AbortSignal.timeout(Math.ceil(withinMs))
      const began = performance.now()
      // Its type is that of another overload of postMessage.
      const transferList: object = task.kind === 'text' ? [task.bytes.buffer as ArrayBuffer] : []
      const signal = AbortSignal.any([late, over])
      const answer = (await threads.run(task, { transferList, signal })) as Answers[Task['kind']]
      return { kind: 'found', answer, tookMs: performance.now() - began }
    } catch (error) {
      if (late?.aborted === true)
        return { kind: 'ended', why: `took longer than ${this.withinMs / 1000} s (${setting})` }
      if (isOutOfMemory(error)) return { kind: 'ended', why: `took more than ${this.#heapMb} MiB of memory` }
      throw error
    }
  }
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
}

/** Judges all filters, long ones in a worker. A filter that was ended there does not match; its verdict says why. */
export async function judgeAtLength(
  searches: Searches,
  { webhook, matcher }: Pick<Target, 'webhook' | 'matcher'>,
  event: MessageEvent,
  message: MessageRecord,
  known: KnownFacts,
): Promise<Judgement> {
  const judged = measured(() => matcher.judge(event, message, known))
  if (judged.outcome !== 'undecided' || judged.long.length === 0) return judged
  const { folderName = (path: string) => path, ...plain } = known
  const { filters, receiveAllChanges, receiveDrafts } = webhook
  const found = await searches.run(webhook.developerId, {
    kind: 'judge',
    webhook: { filters, receiveAllChanges, receiveDrafts },
    event,
    message,
    known: plain,
    folderName: folderName(event.path),
  })
  if (found.kind === 'found') return found.answer
  const ended = new Set<string>(judged.long)
  const why = `too much to look through: it ${found.why}`
  const verdicts = judged.verdicts.map((one) => (ended.has(one.filter) ? { ...one, why } : one))
  return { outcome: 'no', verdicts, undecided: [], long: [] }
}

export interface TextTask extends PartRead {
  readonly kind: 'text'
  readonly wanted: string
}

interface JudgeTask {
  readonly kind: 'judge'
  readonly webhook: Rules
  readonly event: MessageEvent
  readonly message: MessageRecord
  readonly known: Omit<KnownFacts, 'folderName' | 'unhurried'>
  /** Name of the event's folder, as the API shows it. */
  readonly folderName: string
}

type Task = TextTask | JudgeTask

interface Answers {
  readonly text: boolean
  readonly judge: Judgement
}

/** Answers a task, in a thread; null = the thread is ready. @public */
export async function run(task: Task | null): Promise<Answers[Task['kind']] | null> {
  if (task === null) return null
  if (task.kind === 'text') return isIn(compileBodySearch(task.wanted), task.part, textOf(task))
  const { webhook, event, message, folderName } = task
  const known = { ...task.known, folderName: () => folderName, unhurried: true }
  return compileMatcher(webhook).judge(event, message, known)
}
