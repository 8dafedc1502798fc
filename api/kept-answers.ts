/**
 * Answers from the index as they were given before: they are the same while the account's mail and folders are. They
 * are kept up to a number of bytes, those that were asked for last.
 */
import { LRUCache } from 'lru-cache'
import type { AccountRecord } from '../engine/index.ts'
import type { Call, JsonText } from './route.ts'

export interface Answer extends Pick<JsonText, 'text'> {
  /** Of a list: see reachOf in lite/messages/list.ts. */
  readonly reach?: number | undefined
}

interface KeptAnswer extends Answer {
  readonly version: number
}

const kept = new LRUCache<string, KeptAnswer>({
  maxSize: 33_554_432,
  sizeCalculation: ({ text }, key) => text.length + key.length,
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
  if (known?.version === version) return known
  const { text, reach } = await make()
  const isEncoded = text.length >= encoded.from && text.length <= encoded.to
  const answer = { text: isEncoded ? Buffer.from(text) : text, reach, version }
  kept.set(key, answer)
  return answer
}
