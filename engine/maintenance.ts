/**
 * Maintenance of the store.
 *
 * Retention removes rows that are old enough, and rows of removed records, in small steps every ten minutes. Nonces and
 * connect tokens are not here: each store removes them by their own date.
 *
 * The recount counts contacts of email accounts from a version that counted only senders. It reads the index once more
 * per account. The store counts each message once, so an interrupted recount begins again.
 */
import { removeOrphans } from './accounts/pool.ts'
import { ownerOf } from './accounts/write.ts'
import type { Config } from './config.ts'
import { countsAsReceived, otherContacts, type Owner } from './messages/contacts.ts'
import type { Logger } from './observe/log.ts'
import { keptNames, retentionKeys } from './settings.ts'
import { pagesOf } from './store/keyed.ts'
import type { Store } from './store/port.ts'
import type { AccountRecord, MessageRecord, SpecialUse } from './store/records.ts'
import { pause } from './waits.ts'

const everyMs = 10 * 60_000
const step = 1000
const stepsPerRun = 50

interface Deps {
  readonly store: Store
  readonly config: Config
  readonly log: Logger
}

/** Starts the retention. Returns a function that stops it, and resolves when the current run has ended. */
export function startRetention(deps: Deps): () => Promise<void> {
  const stop = new AbortController()
  let orphansAfter: string | null = null
  let running: Promise<void> | null = null
  async function run(): Promise<void> {
    await sweep(deps, stop.signal)
    if (!stop.signal.aborted) orphansAfter = await tidyUp(deps, orphansAfter)
    running = null
  }
  // One node does it for all.
  const isOurs = (): boolean => deps.store.nodes.ownsSlot(0)
  const timer = setInterval(() => void (isOurs() && (running ??= run())), everyMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    stop.abort()
    await running
  }
}

/** Removes rows that are too old, in steps. Never rejects. */
async function sweep({ store, config, log }: Deps, signal: AbortSignal): Promise<void> {
  const { changes, outbox: deliveries, calls, audit } = store
  const kept = { changes, deliveries, calls, audit }
  try {
    for (const what of keptNames) {
      let rows = 0
      for (let run = 0; run < stepsPerRun && !signal.aborted; run += 1) {
        const count = await kept[what].expire(Date.now() - config[retentionKeys[what]], step)
        rows += count
        if (count < step) break
      }
      if (rows > 0) log.info({ what, rows }, 'retention')
    }
  } catch (error) {
    log.warn({ err: error }, 'retention stopped early; it goes on at the next round')
  }
}

/** Never rejects. Looks at one page of accounts, and returns the start of the next one. */
async function tidyUp({ store, log }: Deps, after: string | null): Promise<string | null> {
  try {
    const rows = await store.tidy()
    const { orphans, next } = await removeOrphans(store, after, Date.now())
    if (rows + orphans > 0) log.info({ rows, accounts: orphans }, 'tidied up')
    return next
  } catch (error) {
    log.warn({ err: error }, 'tidying up stopped early; it goes on at the next round')
    return after
  }
}

const pageSize = 200
/** Wait after a failure of the store. */
const againMs = 60_000

/** Starts the recount. Returns a function that stops it, and resolves when it has ended. */
export function startRecount(deps: Omit<Deps, 'config'>): () => Promise<void> {
  const stop = new AbortController()
  const done = recountAll(deps, stop.signal)
  return () => {
    stop.abort()
    return done
  }
}

/** Repeats the recount after failures, until it is done. Never rejects. */
async function recountAll(deps: Omit<Deps, 'config'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await recountOnce(deps, signal)
      return
    } catch (error) {
      deps.log.warn({ err: error }, 'counting contacts anew stopped early; it goes on in a minute')
      await pause(againMs, signal)
    }
  }
}

async function recountOnce(deps: Omit<Deps, 'config'>, signal: AbortSignal): Promise<void> {
  for await (const page of pagesOf((after, limit) => deps.store.accounts.page(after, limit))) {
    for (const account of page) {
      if (signal.aborted) return
      if (account.everybodyCounted !== true && deps.store.nodes.owns(account.userId))
        await recount(deps, account, signal)
    }
  }
}

async function recount(
  { store, log }: Omit<Deps, 'config'>,
  account: AccountRecord,
  signal: AbortSignal,
): Promise<void> {
  const owner = await ownerOf(store, account)
  const folders = await store.folders.list(account.id)
  const roles = new Map(folders.map(({ id, specialUse }) => [id, specialUse]))
  let rows: readonly MessageRecord[] = []
  let messages = 0
  do {
    rows = await store.messages.older(account.id, rows.at(-1) ?? null, pageSize)
    await store.contacts.count(account.id, deltasOf(owner, roles, rows))
    messages += rows.length
    if (signal.aborted) return
  } while (rows.length === pageSize)
  await store.accounts.edit(account.id, { everybodyCounted: true })
  if (messages > 0) log.info({ accountId: account.id, messages }, 'contacts counted anew')
}

function deltasOf(owner: Owner, roles: ReadonlyMap<string, SpecialUse | null>, rows: readonly MessageRecord[]) {
  return rows.flatMap((row) => {
    const found = row.placements.map(({ folderId }) => roles.get(folderId) ?? null)
    const role = found.includes('\\Sent') ? '\\Sent' : found.find(countsAsReceived)
    return role === undefined ? [] : otherContacts(owner, role, { id: row.id, facts: row })
  })
}
