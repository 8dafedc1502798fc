/**
 * Runs long searches (large texts, many patterns on many values) in worker threads: at most two, started when needed
 * and ended when idle. A search has a deadline and a thread a limit of memory; past either the thread is ended and the
 * search returns the reason. A developer has one search at a time and developers take turns, so that a developer with
 * many searches delays no other developer.
 *
 * This module is also the worker's entry. Messages to and from a worker are plain data.
 */
import { setFlagsFromString } from 'node:v8'
import { parentPort, workerData } from 'node:worker_threads'
import { AppError } from '../errors.ts'
import { createFairQueue, type FairQueue } from '../fair-queue.ts'
import { decodeBody, htmlText } from '../messages/bodies.ts'
import type { BodyPartRecord, MessageRecord } from '../store/records.ts'
import { Threads, threadStartMs } from '../threads.ts'
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

const mostThreads = 2
const mib = 1_048_576

const setting = 'MAILROOM_FILTER_TIMEOUT'
/** Distinguishes the worker from other threads that load this module. */
const searchThread = 'mailroom search'

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
    this.#threads = new Threads(new URL(import.meta.url), {
      name: 'search',
      workerData: searchThread,
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMb, maxYoungGenerationSizeMb: 16 },
    })
    this.#queue = createFairQueue({
      places: mostThreads,
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
      const search = (): Promise<Found<Answers[Task['kind']]>> => this.#search(task, withinMs)
      return (await this.#queue.run({ developerId: owner, key: '', urgent: false }, search, signal)) as Found<
        Answers[K]
      >
    } catch (error) {
      throw signal.aborted ? (signal.reason as Error) : error
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new AppError('shutting_down', 'no more searches are begun'))
    await this.#threads.close()
  }

  async #search(task: Task, withinMs: number): Promise<Found<Answers[Task['kind']]>> {
    // The start script's flag would override the worker's limit; the main thread does not need it any more.
    setFlagsFromString('--max-old-space-size=0')
    const thread = await this.#threads.take()
    const late = AbortSignal.timeout(Math.ceil(withinMs))
    const began = performance.now()
    try {
      const moved = task.kind === 'text' ? [task.bytes.buffer as ArrayBuffer] : []
      const answer = (await this.#threads.ask(thread, task, late, moved)) as Answers[Task['kind']]
      return { kind: 'found', answer, tookMs: performance.now() - began }
    } catch (error) {
      if (late.aborted) return { kind: 'ended', why: `took longer than ${this.withinMs / 1000} s (${setting})` }
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
  const judged = matcher.judge(event, message, known)
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

async function answer(task: Task): Promise<Answers[Task['kind']]> {
  if (task.kind === 'text') return isIn(compileBodySearch(task.wanted), task.part, textOf(task))
  const { webhook, event, message, folderName } = task
  const known = { ...task.known, folderName: () => folderName, unhurried: true }
  return compileMatcher(webhook).judge(event, message, known)
}

// An error ends the thread, and with it the search.
if (parentPort !== null && workerData === searchThread) {
  const port = parentPort
  port.on('message', (task: Task) => void answer(task).then((found) => port.postMessage(found)))
  port.postMessage('ready')
}
