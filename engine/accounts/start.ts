/**
 * Every account's actor at the start of the process. An account at whose work the process ended before is started when
 * the others are under way, alone; one at whose work it ended twice is set aside until a call asks for it. An account
 * without its user is what a creation leaves that was cut short by the end of its process: it is removed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Failure } from '../../machines/events.ts'
import { takeHeld } from '../observe/loop.ts'
import { pagesOf } from '../store/pages.ts'
import type { AccountRecord } from '../store/records.ts'
import type { Pool } from './pool.ts'
import type { SyncDeps } from './state.ts'
import type { Store } from '../store/port.ts'

const deathsAtMost = 2
/** The others may take longer, but not for ever: a host may hold its accounts back. */
const othersMs = 60_000
/** It is woken before, or a call asks for it. */
const latestMs = 600_000
const aloneMs = 10_000
const stepMs = 200

type StartDeps = Pick<SyncDeps, 'store' | 'config' | 'log' | 'now'>

/** Page by page, with a breath between two. Those that wait for the others go on by themselves. */
export async function startAll(deps: StartDeps, pool: Pool, signal: AbortSignal): Promise<void> {
  const { store } = deps
  await countDeath(deps)
  const last: string[] = []
  for await (const page of pagesOf((after, limit) => store.accounts.page(after, limit))) {
    for (const account of await withOwner(store, page, deps.now())) {
      const { deaths = 0 } = account.resume
      if (deaths >= deathsAtMost) setAside(deps, pool, account)
      else if (deaths === 0 || account.status === 'DISABLED') pool.start(account)
      else last.push(startWaiting(deps, pool, account))
    }
    await sleep(0)
  }
  startLast(deps, pool, last, signal).catch((error: unknown) => {
    if (!signal.aborted) deps.log.error({ err: error }, 'accounts that were to start last are still waiting')
  })
}

/** Before anything is started: a start that ends the process again must find the count. */
async function countDeath({ store, config, log }: StartDeps): Promise<void> {
  await takeHeld(config.MAILROOM_DATA_DIR, async (accountId) => {
    const account = await store.accounts.get(accountId)
    if (account === null) return
    const deaths = (account.resume.deaths ?? 0) + 1
    await store.accounts.edit(accountId, { resume: { ...account.resume, deaths } })
    log.error({ accountId, deaths }, 'the process ended while this account held the event loop')
  })
}

function startWaiting({ now }: StartDeps, pool: Pool, { resume, ...account }: AccountRecord): string {
  const retryAt = Math.max(resume.retryAt ?? 0, now() + latestMs)
  pool.start({ ...account, resume: { ...resume, retryAt } })
  return account.id
}

async function startLast(
  { now, log }: StartDeps,
  { registry }: Pool,
  accountIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (accountIds.length === 0) return
  await until(() => !registry.countTags().has('connecting'), othersMs, signal)
  for (const accountId of accountIds) {
    if (registry.snapshot(accountId)?.hasTag('waiting') !== true) continue
    log.warn({ accountId }, 'started alone: the process ended at its work before')
    registry.send(accountId, { type: 'WAKE', now: now(), jitter: Math.random() })
    await sleep(aloneMs, undefined, { signal })
  }
}

async function until(done: () => boolean, ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !done(); left -= stepMs) await sleep(stepMs, undefined, { signal })
}

function setAside({ now, log }: StartDeps, pool: Pool, account: AccountRecord): void {
  // Once it is asked for, it may start once more.
  const resume = { ...account.resume, deaths: deathsAtMost - 1 }
  log.error({ accountId: account.id }, 'set aside: the process ended at its work again')
  pool.start({ ...account, resume }, aside('the service ended twice while it read this mailbox', now()))
}

/** The message says what to do about it. */
export function aside(reason: string, at: number): Failure {
  return {
    class: 'set_aside',
    message: `set aside: ${reason}. Edit the account, or ask for a status check, to try it again`,
    at,
    retryAfterMs: null,
    jitter: Math.random(),
    decides: true,
  }
}

/** An account whose user is still missing after this is left over; a younger one may wait for its user. */
const orphanMs = 3_600_000
const pageSize = 500

/** Without those whose user is not there; what is left over of them is removed. */
async function withOwner(store: Store, page: readonly AccountRecord[], now: number): Promise<AccountRecord[]> {
  const users = new Set(await store.users.existing([...new Set(page.map((account) => account.userId))]))
  for (const { id, userId, createdAt } of page) {
    if (!users.has(userId) && createdAt < now - orphanMs) await store.accounts.remove(id)
  }
  return page.filter((account) => users.has(account.userId))
}

/** One page of all accounts: how many were removed, and where the next page starts; null = from the start. */
export async function removeOrphans(
  store: Store,
  after: string | null,
  now: number,
): Promise<{ readonly orphans: number; readonly next: string | null }> {
  const page = await store.accounts.page(after, pageSize)
  const owned = await withOwner(store, page, now)
  const next = page.length < pageSize ? null : (page.at(-1)?.id ?? null)
  return { orphans: page.length - owned.length, next }
}
