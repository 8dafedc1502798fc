/** The list of email accounts in the admin API, over all developers. */
import { z } from 'zod'
import {
  type AccountPlace,
  type AccountRecord,
  conditionOf,
  conditions,
  type Engine,
  failureClasses,
  noActor,
  type PoolFacts,
  shownStates,
} from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { address, answer, exampleOf, ids, label, time, view } from '../examples.ts'
import { accountStatus, choice, filledText, integer, optional } from '../values.ts'
import { adminRoute, count, developerId, factsById, found, nextView, paging, presentNext } from './shared.ts'
import { silent, total } from './shared.ts'

export const accountFields = {
  id: [z.string(), '7c9e6679f81d4b1c8a2e3d4f'],
  developer_id: developerId,
  user_id: [z.string(), ids.user],
  label: [z.string(), label],
  email: [z.string(), address],
  server: [z.string(), 'imap.example.com'],
  status: [z.enum(['OK', 'DISABLED']), 'OK'],
  condition: [
    z.enum(conditions),
    'down',
    'over all tries and restarts: up = its mailbox was caught up and no session has failed since',
  ],
  since: [z.int(), time, 'up, down, disabled or paused since then'],
  state: [
    z.string(),
    'waiting',
    'what its actor does: watching, syncing, connecting, queued, waiting, throttled, disabled, paused, dead',
  ],
  state_since: [z.int(), time, 'in this state since then; it starts anew with each try'],
  failure: [z.string().nullable(), 'network', 'class of the last failure since it was well; null = none'],
  message: [z.string().nullable(), 'the connection to the mail server was closed'],
  attempt: [count, 3, 'failed attempts in a row'],
  next: [nextView, { what: 'connects again', at: time + 40 }, 'what happens by itself; null = nothing is timed'],
} as const
export const accountRow = view('AdminAccount', accountFields)
export type AccountRow = z.input<typeof accountRow>

/** `facts`: the state of the account's actor; null or undefined = it has no actor. */
export function presentAccount(account: AccountRecord, facts: PoolFacts | null | undefined): AccountRow {
  const { id, developerId: developer_id, userId: user_id, label: name, email, server, status, resume } = account
  const { lastError } = facts ?? resume
  const { is, since } = conditionOf(account)
  return {
    ...{ id, developer_id, user_id, label: name, email, server, status },
    condition: is,
    since: seconds(since),
    state: facts?.state ?? noActor,
    state_since: seconds(facts?.since ?? account.createdAt),
    failure: lastError?.class ?? null,
    message: account.statusMessage ?? lastError?.message ?? null,
    attempt: facts?.attempt ?? resume.attempt,
    next: presentNext(facts),
  }
}

export const accountQuery = z.object({
  condition: optional(choice(conditions), 'only accounts in this condition, over all tries'),
  state: optional(choice(shownStates.account), 'only accounts whose actor does this', 'waiting'),
  status: optional(accountStatus, 'only accounts of this status'),
  host: optional(filledText, 'only accounts at this mail server'),
  developer: optional(filledText, 'only accounts of this developer, by id', '4a1b2c3d4e5f60718293a4b5'),
  user: optional(filledText, 'only accounts of this user, by id'),
  failure: optional(choice(failureClasses), 'only accounts whose last failure is of this class'),
  older_than: optional(
    integer(0),
    'only accounts that are up, down, disabled or paused for at least so many seconds',
    600,
  ),
  q: optional(filledText, 'part of the email address, or a whole id or label', 'anna@'),
  ...paging,
})
type AccountQuery = z.output<typeof accountQuery>

export const accountList = answer({ total, accounts: [z.array(accountRow), [exampleOf(accountRow)]], silent })

const unhealthyFirst: readonly AccountPlace['condition']['is'][] = ['disabled', 'down', 'paused', 'up']

/** Unhealthy accounts come first; then, of each condition, those that are in it for longest. */
export async function listAccounts(engine: Engine, query: AccountQuery): Promise<z.input<typeof accountList>> {
  const places = await placesLike(engine, query)
  // The actors are asked after the store, so a change in between shows in their answers.
  const isLive = [query.state, query.status, query.failure].some((asked) => asked !== undefined)
  const live = isLive ? await factsById(engine, 'accounts') : null
  const like = live === null ? places : places.filter(({ id }) => isLike(live.facts.get(id), query))
  const matching = unhealthyFirst.flatMap((condition) => like.filter(({ condition: { is } }) => is === condition))
  const page = matching.slice(query.offset, query.offset + query.limit)
  const records = await recordsOf(engine, page)
  const ids = records.map(({ id }) => id)
  const { facts, silent } = live ?? (await factsById(engine, 'accounts', ids))
  const accounts = records.map((account) => presentAccount(account, facts.get(account.id)))
  return { total: matching.length, accounts, silent }
}

/** The accounts that match those filters which the store knows. isLike checks the filters on the state of the actor. */
function placesLike({ store }: Engine, query: AccountQuery): Promise<AccountPlace[]> {
  const { host, developer, user, q, condition, older_than: age } = query
  return store.accounts.places({
    ...{ server: host?.toLowerCase(), developerId: developer, userId: user, text: q, condition },
    sinceUntil: age === undefined ? undefined : Date.now() - age * 1000,
  })
}

function isLike(facts: PoolFacts | undefined, { state, status, failure }: AccountQuery): boolean {
  if (state !== undefined && state !== (facts?.state ?? noActor)) return false
  if (status !== undefined && facts?.tags.includes(status === 'OK' ? 'ok' : 'disabled') !== true) return false
  return failure === undefined || failure === facts?.lastError?.class
}

/** The records in the order of `places`, without accounts that were deleted meanwhile. */
async function recordsOf({ store }: Engine, places: readonly AccountPlace[]): Promise<AccountRecord[]> {
  const accounts = await store.accounts.several(places.map(({ id }) => id))
  const records = new Map(accounts.map((account) => [account.id, account]))
  return places.flatMap(({ id }) => records.get(id) ?? [])
}

/** Throws `not_found` for an unknown id. */
export const findAccount = ({ store }: Engine, id: string): Promise<AccountRecord> =>
  found('email account', id, store.accounts.get(id))

export const accountsRoute = adminRoute('GET /admin/accounts', {
  summary: 'List email accounts, unhealthy ones first; of one condition those that are in it for longest',
  query: accountQuery,
  response: accountList,
  handler: ({ query }, { engine }) => listAccounts(engine, query),
})
