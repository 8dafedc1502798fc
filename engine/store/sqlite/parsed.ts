/**
 * Records parsed once for each version of their row. The row is read every time, so nothing here can be stale; the same
 * version gives the very same object, so that what is kept beside it (in a WeakMap) is kept as long as it is true.
 */
import { LRUCache } from 'lru-cache'

interface Parsed<T> {
  readonly version: string | number
  readonly chars: number
  readonly record: T
}

export interface Records<T> {
  /** `key` = the row's own; `text` = its document, and its version; of a list that of an array. */
  of(key: string, text: string): T
  /** The record in this version; null = not kept. */
  known(key: string, version: number): T | null
  read(key: string, version: number, text: string): T
  /** Characters of the document; null = not kept. */
  charsOf(key: string): number | null
}

/**
 * Keeps at most `max` records, of `maxChars` characters together, with their keys; past that the least recently used
 * go, and only for one that was asked for before: a walk through a large mailbox would else push out what is read all
 * the time, and keep what is not.
 */
export function createRecords<T>({ max, maxChars }: { readonly max: number; readonly maxChars: number }): Records<T> {
  const kept = new LRUCache<string, Parsed<T>>({ max, maxSize: maxChars, sizeCalculation: ({ chars }) => chars + 1 })
  const before = createSightings(max / 2)
  const hasRoom = (text: string) => kept.size < max && kept.calculatedSize + text.length < maxChars
  const known = (key: string, version: string | number): T | null => {
    const found = kept.get(key)
    return found?.version === version ? found.record : null
  }
  const read = (key: string, version: string | number, text: string): T => {
    const found = kept.get(key)
    if (found?.version === version) return found.record
    const record = JSON.parse(text) as T
    if (found !== undefined || hasRoom(text) || before.seen(key)) kept.set(key, { version, chars: text.length, record })
    return record
  }
  return {
    of: (key, text) => read(key, text, text),
    known,
    read,
    charsOf: (key) => kept.peek(key)?.chars ?? null,
  }
}

/**
 * Which keys were asked for lately: each hash has one slot, and the next key of that slot takes it. With few slots what
 * is read at random seldom finds itself again, and what is read all the time does before long. Two keys of one hash
 * cost a place in the cache, nothing else.
 */
function createSightings(size: number): { seen(key: string): boolean } {
  const slots = new Uint32Array(2 ** Math.max(0, Math.ceil(Math.log2(size))))
  return {
    seen(key) {
      const hash = hashOf(key)
      const slot = hash & (slots.length - 1)
      if (slots[slot] === hash) return true
      slots[slot] = hash
      return false
    },
  }
}

/** FNV-1a; never 0, which is an empty slot. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index += 1) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  return hash === 0 ? 1 : hash >>> 0
}

export interface PageReads<T> {
  /** One that is not kept, by the shortest way. */
  passing(): readonly T[]
  /** Its records are kept too. */
  kept(): readonly T[]
  /** An older version of it is kept: most of its records are known. */
  changed(): readonly T[]
}

export interface Pages<T> {
  /** `version` 0 = there is none, and no page is kept. */
  of(key: string, version: number, read: PageReads<T>): readonly T[]
}

/**
 * Pages of lists: the very same array while the version is the same, of a page whose records are all kept. At most
 * `max` pages, of `maxChars` characters together, with their keys; past that the least recently used go, as above.
 */
export function createPages<T>(options: {
  readonly max: number
  readonly maxChars: number
  readonly charsOf: (record: T) => number | null
}): Pages<T> {
  interface Kept {
    readonly version: number
    readonly records: readonly T[]
    readonly chars: number
  }
  const { max, maxChars, charsOf } = options
  const kept = new LRUCache<string, Kept>({ max, maxSize: maxChars, sizeCalculation: ({ chars }) => chars + 1 })
  const before = createSightings(max / 2)
  const hasRoom = () => kept.size < max && kept.calculatedSize < maxChars * 0.9
  return {
    of(key, version, read) {
      const known = kept.get(key)
      if (known?.version === version) return known.records
      const wanted = version !== 0 && (known !== undefined || before.seen(key) || hasRoom())
      if (!wanted) return read.passing()
      const records = known === undefined ? read.kept() : read.changed()
      const sum = sumOf(records.map(charsOf))
      if (sum !== null) kept.set(key, { version, records, chars: sum + key.length })
      return records
    },
  }
}

function sumOf(sizes: readonly (number | null)[]): number | null {
  return sizes.reduce((sum, size) => (sum === null || size === null ? null : sum + size), 0)
}
