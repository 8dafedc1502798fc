/**
 * Contacts of email accounts from before everybody in a message was counted: at that time only senders were. The mail
 * that is in the index is gone through once more, beside all else. The store counts each message once, so what is cut
 * short begins again.
 */
import { ownerOf } from './accounts/write.ts'
import { countsAsReceived, otherContacts, type Owner } from './messages/contacts.ts'
import type { Logger } from './observe/log.ts'
import { pagesOf } from './store/pages.ts'
import type { Store } from './store/port.ts'
import type { AccountRecord, MessageRecord, SpecialUse } from './store/records.ts'
import { pause } from './waits.ts'

const pageSize = 200
/** After a failure of the store. */
const againMs = 60_000

interface Deps {
  readonly store: Pick<Store, 'accounts' | 'contacts' | 'folders' | 'messages' | 'users'>
  readonly log: Logger
}

/** Starts it; answers the way to stop it, which resolves when nothing is under way. */
export function startRecount(deps: Deps): () => Promise<void> {
  const stop = new AbortController()
  const done = run(deps, stop.signal)
  return () => {
    stop.abort()
    return done
  }
}

/** Never rejects. */
async function run(deps: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await recountAll(deps, signal)
      return
    } catch (error) {
      deps.log.warn({ err: error }, 'counting contacts anew stopped early; it goes on in a minute')
      await pause(againMs, signal)
    }
  }
}

async function recountAll(deps: Deps, signal: AbortSignal): Promise<void> {
  for await (const page of pagesOf((after, limit) => deps.store.accounts.page(after, limit))) {
    for (const account of page) {
      if (signal.aborted) return
      if (account.everybodyCounted !== true) await recount(deps, account, signal)
    }
  }
}

async function recount({ store, log }: Deps, account: AccountRecord, signal: AbortSignal): Promise<void> {
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
