/** What waits, by key (an address, an account, a developer): the keys take turns, and of each key the first is next. */
export interface Ring<T> {
  /** Of all keys. */
  readonly size: number
  add(key: string, one: T): void
  /** The first of the next key that `may`; what else waits with that key goes to the end. undefined = there is none. */
  take(may?: (key: string) => boolean): T | undefined
  /** false = it does not wait. */
  remove(key: string, one: T): boolean
  /** Takes out all that waits with this key. */
  removeAll(key: string): readonly T[]
}

export function createRing<T>(): Ring<T> {
  const lines = new Map<string, T[]>()
  let size = 0
  return {
    get size() {
      return size
    },
    add(key, one) {
      size += 1
      const line = lines.get(key)
      if (line === undefined) lines.set(key, [one])
      else line.push(one)
    },
    take(may = () => true) {
      const key = lines.keys().find((one) => may(one))
      if (key === undefined) return undefined
      const line = lines.get(key) ?? []
      lines.delete(key)
      if (line.length > 1) lines.set(key, line)
      size -= 1
      return line.shift()
    },
    remove(key, one) {
      const line = lines.get(key) ?? []
      const index = line.indexOf(one)
      if (index < 0) return false
      size -= 1
      line.splice(index, 1)
      if (line.length === 0) lines.delete(key)
      return true
    },
    removeAll(key) {
      const line = lines.get(key) ?? []
      size -= line.length
      lines.delete(key)
      return line
    },
  }
}
