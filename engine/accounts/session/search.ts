/**
 * UID SEARCH. Some servers answer it with sequence numbers: these are no larger than the number of messages, so an answer that holds
 * nothing larger is doubted until the server has shown what it means, and read as sequence numbers where it means these.
 */
import { AppError } from '../../errors.ts'
import type { Argument } from './client.ts'
import type { Events } from './events.ts'
import type { Facts } from './facts.ts'
import { readFetch, type FetchItems } from './fetched.ts'
import type { Send } from './line.ts'
import { inSet, splitSet, toSet } from './sets.ts'
import { positive } from './tokens.ts'

export interface Searcher {
  /** Ascending UIDs. */
  readonly search: (send: Send, args: readonly Argument[]) => Promise<number[]>
  /** Whether the open mailbox has this UID: what FETCH does not show, SEARCH may. */
  exists(send: Send, uid: number): Promise<boolean>
}

export interface SearcherDeps {
  readonly facts: Facts
  readonly events: Events
}

const atom = (value: string): Argument => ({ type: 'ATOM', value })
const set = (value: string): Argument => ({ type: 'SEQUENCE', value })
const ascending = (numbers: Iterable<number>): number[] => [...new Set(numbers)].sort((a, b) => a - b)

/** Messages that came or went in between make sequence numbers worthless: asked again, this often. */
const askedMost = 3

export function createSearcher(deps: SearcherDeps): Searcher {
  let means: 'unknown' | 'uids' | 'sequence' = 'unknown'

  async function search(send: Send, args: readonly Argument[]): Promise<number[]> {
    const numbers = await ask(send, args)
    if (means === 'unknown' && numbers.length > 0) {
      if (numbers.some((number) => number > (deps.facts.selected?.exists ?? 0))) means = 'uids'
      else means = await learn(send, deps)
    }
    return means === 'sequence' ? inSequence(send, deps, args) : numbers
  }

  return {
    search,
    exists: async (send, uid) =>
      (await uidsOf(send, deps, 'UID FETCH', String(uid))).includes(uid) ||
      (await search(send, [atom('UID'), set(String(uid))])).includes(uid),
  }
}

async function ask(send: Send, args: readonly Argument[]): Promise<number[]> {
  const found: number[] = []
  await send('UID SEARCH', args, {
    SEARCH: ({ attributes = [] }) => {
      for (const token of attributes) found.push(positive(token) ?? 0)
    },
  })
  return ascending(found.filter((number) => number > 0))
}

/** Told by the last message, where its two numbers differ; where they do not, those of all the others do not either. */
async function learn(send: Send, deps: SearcherDeps): Promise<'unknown' | 'uids' | 'sequence'> {
  const last = (await fetchUids(send, deps, 'UID FETCH', '*')).at(-1)
  if (last === undefined || last.uid === null || last.sequence === last.uid) return 'unknown'
  const answer = await ask(send, [atom('UID'), set(String(last.uid))])
  if (answer.includes(last.uid)) return 'uids'
  return last.sequence !== null && answer.includes(last.sequence) ? 'sequence' : 'unknown'
}

async function inSequence(send: Send, deps: SearcherDeps, args: readonly Argument[]): Promise<number[]> {
  let left = 0
  const unlisten = deps.events.onExpunge(() => (left += 1))
  try {
    for (let asked = 0; asked < askedMost; asked += 1) {
      left = 0
      const numbers = await ask(send, args)
      const uids = numbers.length === 0 ? [] : await uidsOf(send, deps, 'FETCH', toSet(numbers))
      if (left === 0) return uids
    }
  } finally {
    unlisten()
  }
  throw new AppError('server_refused', 'the folder changed again and again while it was searched')
}

async function uidsOf(
  send: Send,
  deps: SearcherDeps,
  command: 'FETCH' | 'UID FETCH',
  range: string,
): Promise<number[]> {
  const wanted = inSet(range)
  const told = await fetchUids(send, deps, command, range)
  const number = ({ sequence, uid }: FetchItems): number => (command === 'FETCH' ? sequence : uid) ?? 0
  return ascending(told.flatMap((items) => (wanted(number(items)) ? (items.uid ?? []) : [])))
}

async function fetchUids(
  send: Send,
  { events }: SearcherDeps,
  command: 'FETCH' | 'UID FETCH',
  range: string,
): Promise<FetchItems[]> {
  const told: FetchItems[] = []
  for (const piece of splitSet(range)) {
    await send(command, [set(piece), [atom('UID')]], {
      FETCH: (response) => {
        const items = readFetch(response)
        told.push(items)
        events.flagsTold(items)
      },
    })
  }
  return told
}
