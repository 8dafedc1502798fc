/**
 * A cache of answers from the index, 404s included, that were asked for more than once. An answer is valid while the
 * version of the account's mail and folders stays the same. The cache is bounded by bytes and drops the least recently
 * used answers.
 */
import { LRUCache } from 'lru-cache'
import { type AccountRecord, type AppError, isAppError } from '../engine/index.ts'
import { type Call, JsonText } from './route.ts'

interface KeptAnswer {
  readonly version: number
  /** The error is a 404; null = the answer was asked for once so far, and is kept when it is asked for again. */
  readonly answer: JsonText | AppError | null
}

/** Size of an error with its stack, and of an entry without an answer. */
const errorBytes = 4096
const markBytes = 256

const kept = new LRUCache<string, KeptAnswer>({
  maxSize: 33_554_432,
  sizeCalculation: ({ answer }, key) => key.length + sizeOf(answer),
})

/** Texts of these lengths are kept encoded. Shorter texts go out with their headers, longer ones in pieces. */
const encoded = { from: 4096, to: 65_536 }

/** `asked`: all values besides the account that decide the answer. */
export async function keptAnswer(
  call: Call,
  { id, label, options }: AccountRecord,
  asked: readonly unknown[],
  make: () => Promise<JsonText>,
): Promise<JsonText> {
  const version = call.engine.store.messages.version(id)
  const key = JSON.stringify([id, label, options.rawFileList, call.baseUrl, call.version, ...asked])
  const known = kept.get(key)
  const isFresh = known?.version === version && known.answer !== null
  const answer = isFresh ? known.answer : await make().then(toKeep, notFoundOnly)
  if (!isFresh) kept.set(key, { version, answer: known ? answer : null })
  if (answer instanceof JsonText) return answer
  throw answer
}

function sizeOf(answer: KeptAnswer['answer']): number {
  if (answer === null) return markBytes
  return answer instanceof JsonText ? answer.text.length : errorBytes
}

function toKeep({ text }: JsonText): JsonText {
  const isEncoded = text.length >= encoded.from && text.length <= encoded.to
  return new JsonText(isEncoded ? Buffer.from(text) : text)
}

function notFoundOnly(error: unknown): AppError {
  if (isAppError(error, 'not_found')) return error
  throw error
}
