/** The change logs of all email accounts of a user as one: each log in its own order, the logs among each other by time. */
import type { z } from 'zod'
import { folderNamer, type AccountRecord, type ChangeRecord, type Store } from '../../../engine/index.ts'
import { seconds, type LiteUrls } from '../urls.ts'
import type { Cursor } from './cursor.ts'
import type { changeView } from './schema.ts'

export interface Step {
  readonly change: ChangeRecord
  readonly account: AccountRecord
  /** Where a reader stands who has read this change. */
  readonly cursor: Cursor
}

export interface ChangePage {
  readonly steps: readonly Step[]
  /** Where a reader stands who has read the page. */
  readonly cursor: Cursor
  /** There are more right now. */
  readonly more: boolean
  /** Changes after the cursor were there once and are not kept any more. */
  readonly gap: boolean
}

/** The end of every log: what comes is new. */
export async function lastCursor(store: Store, accounts: readonly AccountRecord[]): Promise<Cursor> {
  return new Map(await Promise.all(accounts.map(async ({ id }) => [id, await store.changes.lastSeq(id)] as const)))
}

/** An account that the cursor does not know is read from the oldest change that is kept; one that is gone is left out. */
export async function readPage(
  store: Store,
  accounts: readonly AccountRecord[],
  after: Cursor,
  limit: number,
): Promise<ChangePage> {
  const logs = await Promise.all(
    accounts.map(async (account) => {
      const from = after.get(account.id) ?? 0
      const changes = await store.changes.since(account.id, from, limit + 1)
      const [first] = changes
      return { account, changes, gap: from > 0 && first !== undefined && first.seq > from + 1 }
    }),
  )
  const cursor = new Map(accounts.map(({ id }) => [id, after.get(id) ?? 0]))
  const steps = merged(logs, limit).map(({ account, change }) => {
    cursor.set(account.id, change.seq)
    return { account, change, cursor: new Map(cursor) }
  })
  const read = logs.reduce((sum, { changes }) => sum + changes.length, 0)
  return { steps, cursor, more: read > steps.length, gap: logs.some(({ gap }) => gap) }
}

interface Log {
  readonly account: AccountRecord
  readonly changes: readonly ChangeRecord[]
}

/** The log whose next change is oldest goes on, so that no log is ever read out of order. */
function merged(
  logs: readonly Log[],
  limit: number,
): { readonly account: AccountRecord; readonly change: ChangeRecord }[] {
  const heads = logs.map((log) => ({ log, next: 0 }))
  const out: { account: AccountRecord; change: ChangeRecord }[] = []
  while (out.length < limit) {
    let best: { readonly head: (typeof heads)[number]; readonly change: ChangeRecord } | null = null
    for (const head of heads) {
      const change = head.log.changes[head.next]
      if (change !== undefined && (best === null || change.at < best.change.at)) best = { head, change }
    }
    if (best === null) break
    best.head.next += 1
    out.push({ account: best.head.log.account, change: best.change })
  }
  return out
}

/** How the folders of an account are called: server path → name, by account id. */
export type FolderNamers = ReadonlyMap<string, (path: string) => string>

export async function folderNamersOf(store: Store, steps: readonly Step[]): Promise<FolderNamers> {
  const ids = [...new Set(steps.map(({ account }) => account.id))]
  return new Map(await Promise.all(ids.map(async (id) => [id, folderNamer(await store.folders.list(id))] as const)))
}

export function presentChange(
  { change, account }: Step,
  namers: FolderNamers,
  urls: LiteUrls,
): z.input<typeof changeView> {
  const nameOf = namers.get(account.id) ?? String
  return {
    id: change.id,
    sequence: change.seq,
    timestamp: seconds(change.at),
    account_id: change.userId,
    label: account.label,
    event: change.kind,
    first: change.first,
    message_id: change.messageId,
    folder: nameOf(change.path),
    uid: change.uid,
    flags: [...change.flags],
    folders: change.folders.map(nameOf),
    resource_url: urls.message(account, change.messageId),
  }
}
