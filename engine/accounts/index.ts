/** Email accounts: the pool of their actors, and the commands that the API sends to them. */
import { notFound } from '../errors.ts'
import { createFairQueue } from '../fair-queue.ts'
import { checkNow, liveAccount, settled } from './live.ts'
import { checkReconnect } from './explanation.ts'
import { createCommands } from './commands/index.ts'
import { createLane } from './link.ts'
import { createTriedSessions } from './login.ts'
import { createHosts } from './hosts.ts'
import { createLoginLimiter } from './login-limiter.ts'
import { type AccountNews, createPool, type Pool, type PoolDeps, startAll } from './pool.ts'
import { openSession } from './session/index.ts'
import { createProbe } from './trial.ts'
import type { SyncDeps } from './state.ts'
import type { FolderLooks } from './types.ts'
import type { AccountRecord } from '../store/records.ts'
import type { AccountEvent } from '../../machines/events.ts'
import { ownUses, type Uses } from '../uses.ts'

interface AccountsDeps extends Omit<SyncDeps, 'now' | 'writing'>, Pick<PoolDeps, 'sealer' | 'tokens'> {
  readonly now?: () => number
  readonly uses?: Uses
}

/** Enough to share a commit and to keep a remote store busy; each batch is in memory with its callbacks. */
const batchesAtOnce = 8

export type Accounts = ReturnType<typeof createAccounts>

export function createAccounts({ sealer, tokens, now = Date.now, uses = ownUses, ...rest }: AccountsDeps) {
  const sync: SyncDeps = { ...rest, now, writing: createLane(batchesAtOnce) }
  const deps = runtimeDeps(sync, { sealer, tokens }, uses)
  const pool = createPool(deps)
  const probe = createProbe(deps)
  const { registry } = pool
  const { send, ...owned } = createOwned(sync, pool)
  const { wake } = owned
  return {
    ...createCommands({ sync, live: (accountId) => liveAccount(pool, accountId, sync.store, now) }),
    probe,
    ...owned,
    async stopAll(): Promise<void> {
      deps.tried.close()
      await pool.stopAll()
    },
    /** Until `resume`, over restarts too. Rejects with `not_found`. */
    async pause(accountId: string): Promise<void> {
      await setPaused(sync, accountId, true)
      send(accountId, { type: 'PAUSE', at: now() })
    },
    async resume(accountId: string): Promise<void> {
      await setPaused(sync, accountId, false)
      send(accountId, { type: 'RESUME', now: now(), jitter: Math.random() })
    },
    /** Gives up the session and the back-off, and connects now. `not_found`, `conflict`: see checkReconnect. */
    async reconnect(accountId: string): Promise<void> {
      const account = await sync.store.accounts.get(accountId)
      if (account === null) throw notFound('email account', accountId)
      checkReconnect(account, registry.view(accountId))
      wake(accountId)
    },
    checkNow: (accountId: string) => checkNow({ sync, sealer, probe, registry }, accountId),
    settled: (account: AccountRecord) => settled({ sync, registry }, account),
    view: (accountId: string) => registry.view(accountId),
    /** While it is watched: what came into other folders than INBOX before `until` is in the index. */
    looks(accountId: string): FolderLooks | null {
      const state = pool.runtime(accountId)?.live()?.state
      if (state === undefined || registry.view(accountId)?.state !== 'watching') return null
      return { until: state.moved.settledAt, nextAt: state.nextLookAt() }
    },
    /** Old messages a second; null = none was read lately, or this node does not read the account. */
    pace: (accountId: string): number | null => pool.runtime(accountId)?.live()?.state.pace.perSecond() ?? null,
    /** Of all accounts of this node, or of these, without their steps. */
    facts: (ids?: readonly string[]) => registry.facts(ids),
    countTags: () => registry.countTags(),
    /** The last lines of the account's connections, and those of the last failure; null = it had no connection. */
    wire: (accountId: string) => pool.wire(accountId),
    /** Called with each step and line. Returns the function that ends the listening. */
    listen: (accountId: string, listener: (news: AccountNews) => void) => pool.listen(accountId, listener),
    /** Depths of the account's command queue, and of the queue of batches, which all accounts share. */
    queues: (accountId: string) => [
      { name: 'commands', ...(pool.runtime(accountId)?.live()?.link.depth() ?? { waiting: 0, running: 0 }) },
      { name: 'batches of all accounts', ...sync.writing.depth() },
    ],
    hosts: {
      /** Of the last minute, by outcome. */
      logins: (host: string) => deps.hosts.logins(host),
      pace: (host: string) => deps.limiter.pace(host),
      /** Those that have one. */
      paced: () => deps.limiter.paced(),
      setPace: (host: string, pace: number | null) => deps.limiter.setPace(host, pace),
    },
    waiting: () => ({ logins: deps.limiter.waiting + deps.dialing.waiting, backfill: deps.backfilling.waiting }),
  }
}

/** Acts on the actors of this node's accounts; for others the owning node is told. */
function createOwned(sync: SyncDeps, pool: Pool) {
  const { now } = sync
  const { nodes, accounts } = sync.store
  /** Has the node that owns the account read its record again. */
  const tell = (accountId: string): void => void nodes.tell({ what: 'account', id: accountId })
  const send = (accountId: string, event: AccountEvent): void => {
    if (!pool.registry.send(accountId, event)) tell(accountId)
  }
  return {
    /** Sends to the account's actor; another node that owns it reads the record again. */
    send,
    start: (account: AccountRecord): void => (nodes.owns(account.userId) ? pool.start(account) : tell(account.id)),
    async stop(accountId: string): Promise<void> {
      if (pool.registry.view(accountId) === null) tell(accountId)
      await pool.stop(accountId)
    },
    /** status=1 or new credentials: forget the back-off and connect now. */
    wake(accountId: string): void {
      send(accountId, { type: 'WAKE', reconnect: true, now: now(), jitter: Math.random() })
    },
    /** Starts an actor for every account in these slots. Resolves when all are started, not when all are connected. */
    gained: (slots: readonly number[]) => startAll(sync, pool, slots),
    async shed(slots: readonly number[]): Promise<void> {
      await Promise.all(slots.flatMap((slot) => pool.placed.in(slot)).map((id) => pool.stop(id)))
    },
    /** Another node has created, changed or removed the account. */
    async reread(accountId: string): Promise<void> {
      const account = await accounts.get(accountId)
      if (account === null) await pool.stop(accountId)
      else if (nodes.owns(account.userId)) pool.start(account)
    },
    /** The number of accounts in the slot. */
    countIn: (slot: number): number => pool.placed.count(slot),
  }
}

async function setPaused({ store }: SyncDeps, accountId: string, paused: boolean): Promise<void> {
  if ((await store.accounts.edit(accountId, { paused })) === null) throw notFound('email account', accountId)
}

function runtimeDeps(sync: SyncDeps, secrets: Pick<PoolDeps, 'sealer' | 'tokens'>, uses: Uses): PoolDeps {
  const { config } = sync
  return {
    ...secrets,
    sync,
    openSession,
    tried: createTriedSessions(),
    limiter: createLoginLimiter({ perMinute: config.MAILROOM_LOGINS_PER_MINUTE, uses }),
    dialing: createFairQueue({
      places: config.MAILROOM_START_CONCURRENCY,
      deadlineMs: config.MAILROOM_OAUTH_TIMEOUT + config.MAILROOM_CONNECT_TIMEOUT + config.MAILROOM_LOGIN_TIMEOUT,
      late: 'the mail server did not answer the login in time',
    }),
    hosts: createHosts(sync.now),
    backfilling: createFairQueue({
      places: config.MAILROOM_BACKFILL_CONCURRENCY,
      deadlineMs: 2 * config.MAILROOM_COMMAND_TIMEOUT,
      late: 'the mail server gives old mail too slowly',
    }),
  }
}
