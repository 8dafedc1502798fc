/**
 * Records parsed once for each version of their row. The row is read from the database every time, by whoever wrote it, and only
 * parsing it is saved: the same version gives the very same object, another one another object. So nothing here can be stale, and
 * whoever keeps something beside a record (a WeakMap) keeps it exactly as long as the record is true. Records are never changed in
 * place.
 */
import { LRUCache } from 'lru-cache'

interface Parsed<T> {
  readonly version: string | number
  readonly chars: number
  readonly record: T
}

export interface Records<T> {
  /** `key` = the row's own; `text` = its document, which is its version too. */
  of(key: string, text: string): T
  /** The record in this version; null = not kept. */
  known(key: string, version: number): T | null
  /** The record of a row that was read with its document. */
  read(key: string, version: number, text: string): T
}

/**
 * Keeps at most `max` records, of `maxChars` characters together; past that the least recently used go, and only for one that
 * was asked for before: a walk through a large mailbox would else push out what is read all the time, and keep what is not.
 */
export function createRecords<T>({ max, maxChars }: { readonly max: number; readonly maxChars: number }): Records<T> {
  const kept = new LRUCache<string, Parsed<T>>({ max, maxSize: maxChars, sizeCalculation: ({ chars }) => chars + 1 })
  const before = createSightings(max)
  const hasRoom = (text: string) => kept.size < max && kept.calculatedSize + text.length < maxChars
  const known = (key: string, version: string | number): T | null => {
    const found = kept.get(key)
    return found?.version === version ? found.record : null
  }
  const read = (key: string, version: string | number, text: string): T => {
    const found = known(key, version)
    if (found !== null) return found
    const record = JSON.parse(text) as T
    if (kept.has(key) || hasRoom(text) || before.seen(key)) kept.set(key, { version, chars: text.length, record })
    return record
  }
  return { of: (key, text) => read(key, text, text), known, read }
}

/**
 * Which keys were asked for lately: each hash has one slot, and whoever comes next to a slot takes it. Far fewer slots than
 * records, so that what is read at random seldom finds itself again, and what is read all the time does before long.
 * Two keys of one hash cost a place in the cache, nothing else.
 */
export function createSightings(records: number): { seen(key: string): boolean } {
  const slots = new Uint32Array(2 ** Math.max(0, Math.ceil(Math.log2(records / 4))))
  return {
    /** Whether it was seen before; from now on it was. */
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

/** The same for lists: the very same array as long as none of its rows has changed, come or gone. */
export interface Lists<T> {
  of(key: string, texts: readonly string[]): readonly T[]
}

export function createLists<T>(max: number): Lists<T> {
  const known = new LRUCache<string, { readonly texts: readonly string[]; readonly records: readonly T[] }>({ max })
  return {
    of(key, texts) {
      const found = known.get(key)
      if (found !== undefined && sameTexts(found.texts, texts)) return found.records
      const records = texts.map((text) => JSON.parse(text) as T)
      known.set(key, { texts, records })
      return records
    },
  }
}

function sameTexts(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index])
}
