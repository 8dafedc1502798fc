/**
 * The thread where searches run that may take long: large texts, and many patterns on many values. What it is told and what it
 * answers is plain data; the same functions serve in the main thread. Whoever started it ends it when it takes too long (searches.ts).
 */
import { parentPort } from 'node:worker_threads'
import type { MessageRecord, WebhookRecord } from '../store/records.ts'
import type { MessageEvent } from './events.ts'
import { type Judgement, type Known, compileBodySearch, compileMatcher } from './match.ts'
import { type Hay, isIn, textOf } from './texts.ts'

/** Does what body_search says stand in this text? */
export interface TextTask extends Hay {
  readonly kind: 'text'
  readonly wanted: string
}

/** What do all filters of the webhook say? */
export interface JudgeTask {
  readonly kind: 'judge'
  readonly webhook: Pick<WebhookRecord, 'filters' | 'receiveAllChanges' | 'receiveDrafts'>
  readonly event: MessageEvent
  readonly message: MessageRecord
  readonly known: Omit<Known, 'folderName' | 'unhurried'>
  /** Of the event, as the API shows it. */
  readonly folderName: string
}

export type Task = TextTask | JudgeTask

export interface Answers {
  readonly text: boolean
  readonly judge: Judgement
}

async function answer(task: Task): Promise<Answers[Task['kind']]> {
  if (task.kind === 'text') return isIn(compileBodySearch(task.wanted), task.part, textOf(task))
  const { webhook, event, message, folderName } = task
  const known = { ...task.known, folderName: () => folderName, unhurried: true }
  return compileMatcher(webhook).judge(event, message, known)
}

// An error is nobody's answer: it ends the thread, and is told there.
parentPort?.on('message', (task: Task) => void answer(task).then((words) => parentPort?.postMessage(words)))
parentPort?.postMessage('ready')
