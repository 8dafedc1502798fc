/** Email accounts as operators see them: the list over all of them, and one in full. */
import type { z } from 'zod'
import {
  type AccountPlace,
  type AccountRecord,
  type ActorView,
  type Engine,
  folderName,
  type FolderRecord,
  notFound,
  type Page,
  type PoolFacts,
} from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { explainAccount } from './explain.ts'
import { noActor, orNull, presentAccount, presentSteps } from './rows.ts'
import type { accountList, accountView } from './views.ts'

/** undefined = not asked for. */
export interface AccountQuery extends Page {
  /** What the actor does: 'watching' … */
  readonly state?: string | undefined
  readonly status?: 'OK' | 'DISABLED' | undefined
  readonly host?: string | undefined
  readonly developer?: string | undefined
  readonly user?: string | undefined
  /** Class of the last failure. */
  readonly failure?: string | undefined
  /** In its state for at least so many seconds. */
  readonly older_than?: number | undefined
  /** Part of the email address, or a whole id or label. */
  readonly q?: string | undefined
}

export type AccountList = z.input<typeof accountList>
export type AccountDetail = z.input<typeof accountView>

interface Placed {
  readonly place: AccountPlace
  readonly facts: PoolFacts | undefined
}

/** Those that are in their state for longest come first. */
export async function listAccounts(engine: Engine, query: AccountQuery): Promise<AccountList> {
  const matching = await matchingAccounts(engine, query)
  const { limit, offset } = query
  const page = matching.toSorted((left, right) => sinceOf(left) - sinceOf(right)).slice(offset, offset + limit)
  const records = await recordsOf(
    engine,
    page.map(({ place }) => place.id),
  )
  const accounts = page.flatMap(({ place, facts }) => {
    const account = records.get(place.id)
    return account === undefined ? [] : [presentAccount(account, facts)]
  })
  return { total: matching.length, accounts }
}

export async function recordsOf({ store }: Engine, ids: readonly string[]): Promise<Map<string, AccountRecord>> {
  if (ids.length === 0) return new Map()
  return new Map((await store.accounts.several(ids)).map((account) => [account.id, account]))
}

export function factsById({ accounts }: Engine): Map<string, PoolFacts> {
  return new Map(accounts.facts().map((facts) => [facts.id, facts]))
}

/** What lies in the store is asked of the store, what is live of the pool. */
async function matchingAccounts(engine: Engine, query: AccountQuery): Promise<Placed[]> {
  const { host, developer, user, q } = query
  const filter = { server: host?.toLowerCase(), developerId: developer, userId: user, text: q }
  const places = await engine.store.accounts.places(filter)
  const known = factsById(engine)
  return places.map((place) => ({ place, facts: known.get(place.id) })).filter(({ facts }) => isLike(facts, query))
}

function isLike(facts: PoolFacts | undefined, { state, status, failure, older_than: age }: AccountQuery): boolean {
  if (state !== undefined && state !== (facts?.state ?? noActor)) return false
  if (status !== undefined && facts?.tags.includes(status === 'OK' ? 'ok' : 'disabled') !== true) return false
  if (failure !== undefined && failure !== facts?.lastError?.class) return false
  return age === undefined || (facts !== undefined && facts.since <= Date.now() - age * 1000)
}

function sinceOf({ facts }: Placed): number {
  return facts?.since ?? Infinity
}

/** `not_found` for an unknown id. */
export async function findAccount({ store }: Engine, id: string): Promise<AccountRecord> {
  const account = await store.accounts.get(id)
  if (account === null) throw notFound('email account', id)
  return account
}

export async function accountDetail(engine: Engine, id: string): Promise<AccountDetail> {
  const account = await findAccount(engine, id)
  const view = engine.accounts.view(id)
  const wire = engine.accounts.wire(id)
  const frozen = wire?.frozen() ?? null
  const folders = await engine.store.folders.list(id)
  const counted = folders.map(async (folder) => presentFolder(folder, await indexedIn(engine, folder)))
  const { port, useSsl, username, authType, createdAt, resume } = account
  return {
    ...presentAccount(account, view),
    ...{ port, username },
    use_ssl: useSsl,
    auth_type: authType,
    created: seconds(createdAt),
    last_connected: orNull(resume.lastConnectedAt),
    ...presentActor(view),
    explain: explainAccount(account, view),
    wire: wire?.lines() ?? [],
    frozen: frozen && { at: seconds(frozen.at), failure: frozen.failure, lines: [...frozen.lines] },
    folders: await Promise.all(counted),
    queues: engine.accounts.queues(id),
  }
}

function presentActor(view: ActorView | null): Pick<AccountDetail, 'tags' | 'active' | 'steps'> {
  return { tags: [...(view?.tags ?? [])], active: [...(view?.active ?? [])], steps: presentSteps(view) }
}

function indexedIn({ store }: Engine, { accountId, id, cursor }: FolderRecord): Promise<number> {
  return cursor === null ? Promise.resolve(0) : store.messages.count(accountId, { folderId: id })
}

function presentFolder(folder: FolderRecord, indexed: number): AccountDetail['folders'][number] {
  const { messages, unseen, cursor, selectable } = folder
  const complete = !selectable || (cursor !== null && cursor.backfillBelow <= 1)
  return { name: folderName(folder), messages, indexed, unseen, complete }
}
