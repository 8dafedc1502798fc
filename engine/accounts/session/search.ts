/**
 * UID SEARCH. Some servers answer with sequence numbers. These never exceed the number of messages, so an answer
 * without a larger number is doubted, until a test has shown whether the server means UIDs or sequence numbers.
 *
 * An answer has to fit into a line (frames.ts). A longer one is asked for by slices of the folder.
 */
import { AppError } from '../../errors.ts'
import { yieldToLoop } from '../../scheduling.ts'
import { atom, uidSet, type Argument, type Untagged } from './below.ts'
import { fetches, longestNumbers, mostMessages } from './frames.ts'
import type { Send } from './line.ts'
import { type FetchItems, readFetch, text } from './responses.ts'
import type { Facts } from './server-state.ts'
import { inSet, joined, splitSet, stretch, toSet } from './uids.ts'

export type Searcher = ReturnType<typeof createSearcher>

/** Without doubles. Nearly all servers answer so already, and to sort 95,000 numbers holds the loop. */
const ascending = (numbers: number[]): number[] =>
  numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0))
    ? numbers
    : [...new Set(numbers)].sort((a, b) => a - b)

/** The number of tries of a search by sequence numbers, when messages leave the folder meanwhile. */
const askedMost = 3

export function createSearcher(facts: Facts) {
  let means: 'unknown' | 'uids' | 'sequence' = 'unknown'

  /** Ascending UIDs; `most` = upper limit of their number, where it is known. */
  async function search(send: Send, args: readonly Argument[], most = Infinity): Promise<number[]> {
    const numbers = await askAll(send, facts, args, most)
    const { exists = 0, uidNext = null } = facts.selected ?? {}
    // With `exists + 1` as UIDNEXT each message's UID is its sequence number.
    if (means === 'unknown' && numbers.length > 0 && uidNext !== exists + 1) {
      if (numbers.some((number) => number > exists)) means = 'uids'
      else means = await learn(send, facts)
    }
    return means === 'sequence' ? inSequence(send, facts, args) : numbers
  }

  return {
    search,
    /** Whether the open mailbox has this UID by FETCH, or at least by SEARCH. */
    exists: async (send: Send, uid: number): Promise<boolean> =>
      (await uidsOf(send, facts, 'UID FETCH', String(uid))).includes(uid) ||
      (await search(send, [atom('UID'), uidSet(String(uid))])).includes(uid),
  }
}

/** Numbers that fit into one answer, each with ten digits and a space. */
const sliceMost = Math.floor((longestNumbers - 1000) / 11)

/** Asks for one answer if it fits, else by slices. */
async function askAll(send: Send, facts: Facts, args: readonly Argument[], most: number): Promise<number[]> {
  const exists = facts.selected?.exists ?? 0
  if (Math.min(exists, most) <= sliceMost) return ask(send, args)
  if (exists > mostMessages) {
    const limit = `the folder has ${exists} messages, and more than ${mostMessages} are not read`
    throw new AppError('protocol', limit)
  }
  return undisturbed(facts, () => askSlices(send, exists, args))
}

/** Repeats `find` until no message left meanwhile: EXPUNGE shifts sequence numbers. */
async function undisturbed(facts: Facts, find: () => Promise<number[]>): Promise<number[]> {
  for (let asked = 0; asked < askedMost; asked += 1) {
    const { expunged } = facts
    const found = await find()
    if (facts.expunged === expunged) return found
  }
  throw new AppError('server_refused', 'the folder changed again and again while it was searched')
}

async function askSlices(send: Send, exists: number, args: readonly Argument[]): Promise<number[]> {
  let slices: number[] = []
  for (let from = 1; from <= exists; from += sliceMost) {
    const to = Math.min(exists, from + sliceMost - 1)
    const found = await ask(send, [uidSet(`${from}:${to}`), ...args])
    slices = await joined(slices, found.slice(0, sliceMost))
  }
  return slices
}

async function ask(send: Send, args: readonly Argument[]): Promise<number[]> {
  let words = ''
  const onSearch: Untagged = ({ attributes = [] }) => {
    // Some servers answer in several lines. More numbers than fit into one cannot be meant.
    for (const token of attributes) if (words.length <= longestNumbers) words += ` ${text(token) ?? ''}`
  }
  await send('UID SEARCH', args, { SEARCH: onSearch })
  return ascending(await numbersIn(words))
}

/** The numbers above 0 among words, without holding the loop. */
async function numbersIn(words: string): Promise<number[]> {
  const numbers: number[] = []
  for (let from = 0; from < words.length;) {
    const space = words.indexOf(' ', from + stretch)
    const end = space === -1 ? words.length : space
    for (const word of words.slice(from, end).split(' ')) {
      const number = /^\d{1,10}$/.test(word) ? Number(word) : 0
      if (number > 0) numbers.push(number)
    }
    from = end + 1
    await yieldToLoop()
  }
  return numbers
}

/** Tests with the last message. If its UID equals its sequence number, those of all other messages do too. */
async function learn(send: Send, facts: Facts): Promise<'unknown' | 'uids' | 'sequence'> {
  const sequence = facts.selected?.exists ?? 0
  const uid = await lastUid(send, facts)
  if (uid === null || sequence === uid) return 'unknown'
  const answer = await ask(send, [atom('UID'), uidSet(String(uid))])
  if (answer.includes(uid)) return 'uids'
  return answer.includes(sequence) ? 'sequence' : 'unknown'
}

/** UID of the open folder's last message, by its sequence number: some servers refuse `*`. null = there is none. */
export async function lastUid(send: Send, facts: Facts): Promise<number | null> {
  const count = facts.selected?.exists ?? 0
  return count === 0 ? null : ((await uidsOf(send, facts, 'FETCH', String(count))).at(-1) ?? null)
}

function inSequence(send: Send, facts: Facts, args: readonly Argument[]): Promise<number[]> {
  return undisturbed(facts, async () => {
    const numbers = await askAll(send, facts, args, Infinity)
    let uids: number[] = []
    for (let from = 0; from < numbers.length; from += stretch)
      uids = await joined(uids, await uidsOf(send, facts, 'FETCH', toSet(numbers.slice(from, from + stretch))))
    return uids
  })
}

async function uidsOf(send: Send, facts: Facts, command: 'FETCH' | 'UID FETCH', range: string): Promise<number[]> {
  const wanted = inSet(range)
  const answer = await fetchUids(send, facts, command, range)
  const number = ({ sequence, uid }: Numbers): number => (command === 'FETCH' ? sequence : uid) ?? 0
  return ascending(answer.flatMap((items) => (wanted(number(items)) ? (items.uid ?? []) : [])))
}

type Numbers = Pick<FetchItems, 'sequence' | 'uid'>

async function fetchUids(send: Send, facts: Facts, command: 'FETCH' | 'UID FETCH', range: string): Promise<Numbers[]> {
  const answer: Numbers[] = []
  for (const piece of splitSet(range)) {
    const onFetch: Untagged = (response) => {
      const items = readFetch(response)
      const { sequence, uid } = items
      if (answer.length < mostMessages) answer.push({ sequence, uid })
      facts.flagsReported(items)
    }
    await send(command, [uidSet(piece), [atom('UID')]], { FETCH: onFetch }, fetches)
  }
  return answer
}
