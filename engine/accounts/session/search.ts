/**
 * UID SEARCH. Some servers answer it with sequence numbers: these are no larger than the number of messages, so an
 * answer that holds nothing larger is doubted until the server has shown what it means, and read as sequence numbers
 * where it means these.
 *
 * An answer has to fit into a line (frames.ts). Where it may not, it is asked for by ESEARCH, which tells ranges, or by
 * slices of the folder.
 */
import { AppError, isAppError } from '../../errors.ts'
import { atom, uidSet, type Argument, type Untagged } from './below.ts'
import type { Facts } from './server-state.ts'
import { type FetchItems, readFetch } from './fetched.ts'
import { fetches, longestNumbers, mostMessages } from './frames.ts'
import type { Parts, Send } from './line.ts'
import { inSet, splitSet, toSet, uidsOfSet } from './sets.ts'
import { text } from './tokens.ts'

export type Searcher = ReturnType<typeof createSearcher>

const ascending = (numbers: Iterable<number>): number[] => [...new Set(numbers)].sort((a, b) => a - b)

/** Messages that came or went in between make sequence numbers worthless: asked again, this often. */
const askedMost = 3

export function createSearcher({ facts }: Pick<Parts, 'facts'>) {
  let means: 'unknown' | 'uids' | 'sequence' = 'unknown'

  /** Ascending UIDs; `most` = how many they may be, where that is known. */
  async function search(send: Send, args: readonly Argument[], most = Infinity): Promise<number[]> {
    const numbers = await askAll(send, facts, args, most)
    if (means === 'unknown' && numbers.length > 0) {
      if (numbers.some((number) => number > (facts.selected?.exists ?? 0))) means = 'uids'
      else means = await learn(send, facts)
    }
    return means === 'sequence' ? inSequence(send, facts, args) : numbers
  }

  return {
    search,
    /** Whether the open mailbox has this UID: what FETCH does not show, SEARCH may. */
    exists: async (send: Send, uid: number): Promise<boolean> =>
      (await uidsOf(send, facts, 'UID FETCH', String(uid))).includes(uid) ||
      (await search(send, [atom('UID'), uidSet(String(uid))])).includes(uid),
  }
}

/** What fits into one answer, each number with ten digits and a space. */
const sliceMost = Math.floor((longestNumbers - 1000) / 11)

/** In one answer where it fits, else by ESEARCH, else by slices; asked anew when the folder moves meanwhile. */
async function askAll(send: Send, facts: Facts, args: readonly Argument[], most: number): Promise<number[]> {
  const exists = facts.selected?.exists ?? 0
  if (Math.min(exists, most) <= sliceMost) return ask(send, args)
  if (exists > mostMessages) {
    const limit = `the folder has ${exists} messages, and more than ${mostMessages} are not read`
    throw new AppError('protocol', limit)
  }
  const ranges = facts.offers('ESEARCH') && !facts.refused('esearch') ? await askRanges(send, facts, args) : null
  if (ranges !== null) return ranges
  return undisturbed(facts, () => askSlices(send, exists, args))
}

/** What was found while no message left: sequence numbers mean nothing otherwise. */
async function undisturbed(facts: Facts, find: () => Promise<number[]>): Promise<number[]> {
  for (let asked = 0; asked < askedMost; asked += 1) {
    const { expunged } = facts
    const found = await find()
    if (facts.expunged === expunged) return found
  }
  throw new AppError('server_refused', 'the folder changed again and again while it was searched')
}

async function askSlices(send: Send, exists: number, args: readonly Argument[]): Promise<number[]> {
  const slices: number[][] = []
  for (let from = 1; from <= exists; from += sliceMost) {
    const to = Math.min(exists, from + sliceMost - 1)
    const found = await ask(send, [uidSet(`${from}:${to}`), ...args])
    slices.push(found.slice(0, sliceMost))
  }
  return ascending(slices.flat())
}

async function ask(send: Send, args: readonly Argument[]): Promise<number[]> {
  const found: number[] = []
  const onSearch: Untagged = ({ attributes = [] }) => {
    // Some servers answer in several lines; no folder has more messages than that.
    for (const word of found.length > sliceMost
      ? []
      : attributes
          .map((token) => text(token) ?? '')
          .join(' ')
          .split(' ')) {
      if (/^\d{1,10}$/.test(word)) found.push(Number(word))
    }
  }
  await send('UID SEARCH', args, { SEARCH: onSearch })
  return ascending(found.filter((number) => number > 0))
}

/** null = the server does not do it, or the answer is too long even so. */
async function askRanges(send: Send, facts: Facts, args: readonly Argument[]): Promise<number[] | null> {
  const told: { ranges?: string; isTooLong?: true } = {}
  const onRanges: Untagged = ({ attributes = [] }) => void (told.ranges ??= text(attributes[0]) ?? '')
  const leftOut = (): void => void (told.isTooLong = true)
  const sent = [atom('RETURN'), [atom('ALL')], ...args]
  const reply = await send('UID SEARCH', sent, { ESEARCH: onRanges }, { leftOut }).catch((error: unknown) => {
    if (isAppError(error, 'server_refused')) return null
    throw error
  })
  const { ranges, isTooLong } = told
  if (isTooLong) return null
  if (reply === null || ranges === undefined || !/(?:^| )UID(?: |$)/i.test(ranges)) {
    facts.refuse('esearch')
    return null
  }
  return uidsOfSet(/ ALL ([\d:,]+)/i.exec(ranges)?.[1] ?? '', mostMessages)
}

/** Told by the last message, where its two numbers differ; where they do not, those of all the others do not either. */
async function learn(send: Send, facts: Facts): Promise<'unknown' | 'uids' | 'sequence'> {
  const last = (await fetchUids(send, facts, 'UID FETCH', '*')).at(-1)
  if (last === undefined || last.uid === null || last.sequence === last.uid) return 'unknown'
  const answer = await ask(send, [atom('UID'), uidSet(String(last.uid))])
  if (answer.includes(last.uid)) return 'uids'
  return last.sequence !== null && answer.includes(last.sequence) ? 'sequence' : 'unknown'
}

function inSequence(send: Send, facts: Facts, args: readonly Argument[]): Promise<number[]> {
  return undisturbed(facts, async () => {
    const numbers = await askAll(send, facts, args, Infinity)
    return numbers.length === 0 ? [] : uidsOf(send, facts, 'FETCH', toSet(numbers))
  })
}

async function uidsOf(send: Send, facts: Facts, command: 'FETCH' | 'UID FETCH', range: string): Promise<number[]> {
  const wanted = inSet(range)
  const told = await fetchUids(send, facts, command, range)
  const number = ({ sequence, uid }: Numbers): number => (command === 'FETCH' ? sequence : uid) ?? 0
  return ascending(told.flatMap((items) => (wanted(number(items)) ? (items.uid ?? []) : [])))
}

type Numbers = Pick<FetchItems, 'sequence' | 'uid'>

async function fetchUids(send: Send, facts: Facts, command: 'FETCH' | 'UID FETCH', range: string): Promise<Numbers[]> {
  const told: Numbers[] = []
  for (const piece of splitSet(range)) {
    const onFetch: Untagged = (response) => {
      const items = readFetch(response)
      const { sequence, uid } = items
      if (told.length < mostMessages) told.push({ sequence, uid })
      facts.flagsTold(items)
    }
    await send(command, [uidSet(piece), [atom('UID')]], { FETCH: onFetch }, fetches)
  }
  return told
}
