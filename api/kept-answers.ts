/**
 * Answers from the index as they were given before, 404s among them: they are the same while the account's mail and
 * folders are. They are kept up to a number of bytes, those that were asked for last.
 */
import { LRUCache } from 'lru-cache'
import { type AccountRecord, type AppError, isAppError } from '../engine/index.ts'
import type { Call, JsonText } from './route.ts'

export interface Answer extends Pick<JsonText, 'text'> {
  /** Of a list: see reachOf in lite/messages/list.ts. */
  readonly reach?: number | undefined
}

interface KeptAnswer {
  readonly version: number
  /** An error: nothing was found. */
  readonly answer: Answer | AppError
}

/** Of an error with its stack. */
const errorBytes = 4096

const kept = new LRUCache<string, KeptAnswer>({
  maxSize: 33_554_432,
  sizeCalculation: ({ answer }, key) => ('text' in answer ? answer.text.length : errorBytes) + key.length,
})

/** Of these lengths a text is kept encoded: a shorter one goes out along with its headers, a longer one in pieces. */
const encoded = { from: 4096, to: 65_536 }

/** `asked`: all that the answer depends on besides the account. */
export async function keptAnswer(
  call: Call,
  { id, label, options }: AccountRecord,
  asked: readonly unknown[],
  make: () => Promise<Answer>,
): Promise<Answer> {
  const version = call.engine.store.messages.version(id)
  const key = JSON.stringify([id, label, options.rawFileList, call.baseUrl, call.version, ...asked])
  const known = kept.get(key)
  const answer = known?.version === version ? known.answer : await make().then(toKeep, notFoundOnly)
  if (answer !== known?.answer) kept.set(key, { version, answer })
  if ('text' in answer) return answer
  throw answer
}

function toKeep({ text, reach }: Answer): Answer {
  const isEncoded = text.length >= encoded.from && text.length <= encoded.to
  return { text: isEncoded ? Buffer.from(text) : text, reach }
}

function notFoundOnly(error: unknown): AppError {
  if (isAppError(error, 'not_found')) return error
  throw error
}
