/**
 * The dry run: what the filters say of messages that are stored. Over every email account that a webhook covers it takes the last
 * stored messages of all of them together: each account is asked for its newest message, and only those whose newest may be among
 * the last ones for more.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { folderNamer } from '../messages/names.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, MessageRecord } from '../store/records.ts'
import { type Coverage, coveredAccounts, questionsAtOnce } from './coverage.ts'
import { type Asking, type JudgeDeps, arrivals, judgeBest, sentOf } from './judge.ts'
import type { Target } from './targets.ts'
import type { CoveredRow, DryRunRow, FilterVerdict } from './types.ts'

export interface StoredDeps extends JudgeDeps {
  readonly store: Pick<Store, 'messages' | 'changes' | 'folders'>
}

const nowhere: FilterVerdict = {
  filter: 'receive_all_changes',
  matched: false,
  why: 'the message is in no folder and has no event',
}

/**
 * The last `limit` stored messages, each with the words of the filters on every event that was seen of it, and besides those on its
 * arrival as if it came now: a message that was there before the account was added has none, and of an old one the log of changes
 * has forgotten it.
 */
export async function dryRun(
  deps: StoredDeps,
  target: Target,
  account: AccountRecord,
  limit: number,
  asking: Asking,
): Promise<DryRunRow[]> {
  const judging = { ...deps, beforeReading: () => asking.reads(account.userId) }
  const messages = await deps.store.messages.list(account.id, { order: 'desc' }, { limit, offset: 0 })
  const folders = await deps.store.folders.list(account.id)
  const sent = sentOf(folders)
  const known = { folderName: folderNamer(folders) }
  const rows: DryRunRow[] = []
  for (const message of messages) {
    asking.signal.throwIfAborted()
    const changes = await deps.store.changes.ofMessage(account.id, message.id)
    const judged = await judgeBest(judging, target, message, [...changes, ...arrivals(message, sent)], known)
    rows.push({ message, matched: judged?.outcome === 'match', verdicts: judged?.verdicts ?? [nowhere] })
  }
  return rows
}

export interface DryRunDeps {
  readonly store: Pick<Store, 'accounts' | 'messages'>
  /** The last `limit` messages of one account, each with the words of the filters. */
  readonly judge: (account: AccountRecord, limit: number) => Promise<readonly DryRunRow[]>
}

export async function dryRunAll(deps: DryRunDeps, coverage: Coverage, limit: number): Promise<CoveredRow[]> {
  const accounts = await coveredAccounts(deps.store, coverage, 'user_id')
  const shares = await sharesOf(deps.store, accounts, limit)
  const rows: CoveredRow[] = []
  for (const [account, share] of shares) {
    for (const row of await deps.judge(account, share)) rows.push({ ...row, account })
  }
  return rows.sort((left, right) => newestFirst(left.message, right.message)).slice(0, limit)
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
