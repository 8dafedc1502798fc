/** Sets of UIDs: '5:9,12', '100:*'. */
import { badParameter } from '../../errors.ts'
import { yieldToLoop } from '../../scheduling.ts'

/** Exchange answers BAD to command lines of 40 kB; 8 kB is safe everywhere. */
const longestSet = 8000

const member = /^(?:\d{1,10}|\*)(?::(?:\d{1,10}|\*))?$/

/** The set in pieces of at most `longestSet` characters, in its order. */
export function splitSet(set: string): string[] {
  const members = set.split(',')
  if (!members.every((part) => member.test(part))) throw badParameter('range', 'expected a UID set')
  const pieces: string[] = []
  let piece = ''
  for (const part of members) {
    if (piece !== '' && piece.length + part.length + 1 > longestSet) {
      pieces.push(piece)
      piece = ''
    }
    piece = piece === '' ? part : `${piece},${part}`
  }
  return [...pieces, piece]
}

/** `100:*` matches 100 and above here, though servers answer it with a last message below 100 too (RFC 3501 §6.4.8). */
export function inSet(set: string): (uid: number) => boolean {
  if (set === '*') return () => true
  const ranges = set.split(',').map((part) => {
    const [from = '', to = from] = part.split(':')
    const ends = [from, to].map((end) => (end === '*' ? Number.POSITIVE_INFINITY : Number(end)))
    return [Math.min(...ends), Math.max(...ends)] as const
  })
  const sorted = ranges.sort(([from], [other]) => from - other)
  const froms = sorted.map(([from]) => from)
  // The farthest end of the ranges up to each one: ranges may overlap.
  let end = 0
  const reach = sorted.map(([, to]) => (end = Math.max(end, to)))
  return (uid) => (reach[lastIndexUpTo(froms, uid)] ?? 0) >= uid
}

/** Index of the last of these that is `uid` or less; -1 when there is none. */
export function lastIndexUpTo(ascending: readonly number[], uid: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? 0) <= uid) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** UIDs in any order → the shortest set: 1:3,7,9:12. */
export function toSet(uids: readonly number[]): string {
  const sorted = [...new Set(uids)].sort((a, b) => a - b)
  const ranges: [number, number][] = []
  for (const uid of sorted) {
    const last = ranges.at(-1)
    if (last && last[1] === uid - 1) last[1] = uid
    else ranges.push([uid, uid])
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}:${to}`)).join(',')
}

/** The number of UIDs below `uidNext` that the set can name; a UID that is named twice counts twice. */
export function countOf(set: string, uidNext: number | null): number {
  const end = (word: string): number => (word === '*' ? (uidNext ?? Infinity) : Number(word))
  return set.split(',').reduce((sum, part) => {
    const [from = '', to = from] = part.split(':')
    return sum + (from === to ? 1 : Math.abs(end(to) - end(from)) + 1)
  }, 0)
}

/** The UIDs of a set without `*`, in its order. */
export function uidsOfSet(set: string): number[] {
  return set.split(',').flatMap((part) => {
    const [from = 0, to = from] = part.split(':').map(Number)
    const low = Math.min(from, to)
    return Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => low + index)
  })
}

/** UIDs that are handled between two yields to the event loop: most work on so many takes less than 10 ms. */
export const stretch = 50_000

/**
 * Merges two ascending lists, each without doubles, into one. Appends to `ours` and returns it when all of `theirs` are
 * larger; otherwise makes a new list. Takes only those of `theirs` that are `wanted`.
 */
export async function joined(
  ours: number[],
  theirs: readonly number[],
  wanted: (uid: number) => boolean = () => true,
): Promise<number[]> {
  const isBehind = (theirs[0] ?? Infinity) > (ours.at(-1) ?? 0)
  const target = isBehind ? ours : []
  let at = 0
  for (let next = 0; next < theirs.length; next += stretch) {
    for (const uid of theirs.slice(next, next + stretch)) {
      if (!wanted(uid)) continue
      for (; !isBehind && (ours[at] ?? Infinity) < uid; at += 1) target.push(ours[at] ?? 0)
      if (!isBehind && ours[at] === uid) at += 1
      target.push(uid)
    }
    await yieldToLoop()
  }
  for (; !isBehind && at < ours.length; at += 1) target.push(ours[at] ?? 0)
  return target
}
