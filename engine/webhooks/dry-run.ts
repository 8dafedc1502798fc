/**
 * The dry run over every email account that a webhook covers: the last stored messages of all of them together. Each account
 * is asked for its newest message, and only those whose newest may be among the last ones for more.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { badParameter } from '../errors.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, MessageRecord } from '../store/records.ts'
import type { CoveredRow, DryRunRow } from './types.ts'

export interface DryRunDeps {
  readonly store: Pick<Store, 'accounts' | 'messages'>
  /** The last `limit` messages of one account, each with the words of the filters. */
  readonly judge: (account: AccountRecord, limit: number) => Promise<readonly DryRunRow[]>
}

export interface Coverage {
  readonly developerId: string
  /** null = every user of the developer. */
  readonly userId: string | null
}

const accountsAtOnce = 500
const questionsAtOnce = 20
/** One question to the store for each account: more would keep the call, and the store, for too long. */
const mostAccounts = 10_000

export async function dryRunAll(deps: DryRunDeps, coverage: Coverage, limit: number): Promise<CoveredRow[]> {
  const accounts = await coveredAccounts(deps.store, coverage)
  const shares = await sharesOf(deps.store, accounts, limit)
  const rows: CoveredRow[] = []
  for (const [account, share] of shares) {
    for (const row of await deps.judge(account, share)) rows.push({ ...row, account })
  }
  return rows.sort((left, right) => newestFirst(left.message, right.message)).slice(0, limit)
}

async function coveredAccounts(
  store: Pick<Store, 'accounts'>,
  { developerId, userId }: Coverage,
): Promise<AccountRecord[]> {
  if (userId !== null) return store.accounts.listByUser(userId)
  const covered: AccountRecord[] = []
  for (let after: string | null = null; ;) {
    const page: AccountRecord[] = await store.accounts.page(after, accountsAtOnce)
    covered.push(...page.filter((account) => account.developerId === developerId))
    if (covered.length > mostAccounts) {
      throw badParameter('user_id', `the webhook covers more than ${mostAccounts} email accounts: name one user`)
    }
    after = page.at(-1)?.id ?? null
    if (page.length < accountsAtOnce) return covered
  }
}

/** How many of the last `limit` messages over all accounts are of each. */
async function sharesOf(
  store: Pick<Store, 'messages'>,
  accounts: readonly AccountRecord[],
  limit: number,
): Promise<Map<AccountRecord, number>> {
  const [only, ...others] = accounts
  if (only !== undefined && others.length === 0) return new Map([[only, limit]])
  const newest = (await newestOf(store, accounts)).slice(0, limit)
  const oldest = newest[limit - 1]?.message.sentAt
  const query = { order: 'desc', ...(oldest === undefined ? {} : { sentFrom: oldest }) } as const
  let last: readonly Candidate[] = []
  for (const { account } of newest) {
    const messages = await store.messages.list(account.id, query, { limit, offset: 0 })
    const own = messages.map(({ id, sentAt }) => ({ account, message: { id, sentAt } }))
    last = [...last, ...own].sort(byAge).slice(0, limit)
    await nextTurn()
  }
  const shares = new Map<AccountRecord, number>()
  for (const { account } of last) shares.set(account, (shares.get(account) ?? 0) + 1)
  return shares
}

type Place = Pick<MessageRecord, 'id' | 'sentAt'>

interface Candidate {
  readonly account: AccountRecord
  readonly message: Place
}

/** The newest message of each account that has one, newest first. */
async function newestOf(store: Pick<Store, 'messages'>, accounts: readonly AccountRecord[]): Promise<Candidate[]> {
  const found: Candidate[] = []
  for (let start = 0; start < accounts.length; start += questionsAtOnce) {
    const some = accounts.slice(start, start + questionsAtOnce)
    const lists = await Promise.all(
      some.map(async (account) => {
        const [message] = await store.messages.list(account.id, { order: 'desc' }, { limit: 1, offset: 0 })
        return message === undefined ? [] : [{ account, message: { id: message.id, sentAt: message.sentAt } }]
      }),
    )
    found.push(...lists.flat())
    await nextTurn()
  }
  return found.sort(byAge)
}

function byAge(left: Candidate, right: Candidate): number {
  return newestFirst(left.message, right.message)
}

/** The order of a list of messages. */
function newestFirst(left: Place, right: Place): number {
  return right.sentAt - left.sentAt || (left.id < right.id ? 1 : -1)
}
