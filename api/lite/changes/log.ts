/** The change logs of all email accounts of a user as one, read in pages or as a stream of server-sent events. */
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { z } from 'zod'
import {
  type AccountRecord,
  badParameter,
  type ChangeRecord,
  type Engine,
  folderNamer,
  type Store,
  type UserRecord,
} from '../../../engine/index.ts'
import { type LiteUrls, liteUrls, seconds } from '../../addresses.ts'
import type { changeView } from './handlers.ts'

/** How far a reader has come: account id → sequence number. For callers it is one opaque text. */
export type Cursor = ReadonlyMap<string, number>

/** More accounts than a user has, and a bound on what we read. */
const longest = 65_536

export function writeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(cursor))).toString('base64url')
}

/** Throws `bad_request` naming `parameter` for anything but a cursor of ours. */
export function readCursor(parameter: string, text: string): Cursor {
  const entries = text.length > longest ? null : entriesOf(text)
  if (entries === null) throw badParameter(parameter, 'not a cursor of this API')
  return new Map(entries)
}

function entriesOf(text: string): [string, number][] | null {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const entries = Object.entries(value)
  return entries.every(isEntry) ? entries : null
}

function isEntry(entry: [string, unknown]): entry is [string, number] {
  const [id, seq] = entry
  return /^[0-9a-f]{24}$/.test(id) && Number.isSafeInteger(seq) && Number(seq) >= 0
}

interface Step {
  readonly change: ChangeRecord
  readonly account: AccountRecord
  /** Where a reader stands who has read this change. */
  readonly cursor: Cursor
}

/** The end of every log: what comes is new. */
export async function lastCursor(store: Store, accounts: readonly AccountRecord[]): Promise<Cursor> {
  return new Map(await Promise.all(accounts.map(async ({ id }) => [id, await store.changes.lastSeq(id)] as const)))
}

/** An account that the cursor does not know is read from the oldest change kept; one that is gone is left out. */
export async function readPage(store: Store, accounts: readonly AccountRecord[], after: Cursor, limit: number) {
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
  return {
    steps,
    /** Where a reader stands who has read the page. */
    cursor,
    /** There are more right now. */
    more: read > steps.length,
    /** Changes after the cursor were there once and are not kept any more. */
    gap: logs.some(({ gap }) => gap),
  }
}

/** The log whose next change is oldest goes on, so that no log is ever read out of order. */
function merged(
  logs: readonly { readonly account: AccountRecord; readonly changes: readonly ChangeRecord[] }[],
  limit: number,
): Omit<Step, 'cursor'>[] {
  const heads = logs.map((log) => ({ log, next: 0 }))
  const out: Omit<Step, 'cursor'>[] = []
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
type FolderNamers = ReadonlyMap<string, (path: string) => string>

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

/*
 * The change logs as server-sent events. The id of each event is the cursor after it, so that a client which comes back
 * with Last-Event-ID goes on where it was. The store is read only as fast as the client takes the text, so a slow
 * client costs nothing but its socket; an idle stream is one subscription and one timer.
 */

/** Often enough for proxies that close silent connections. */
const heartbeatMs = 15_000
/** What the client should wait before it comes back. */
const retryMs = 3000
const pageSize = 100

interface StreamOptions {
  readonly engine: Engine
  readonly user: UserRecord
  readonly from: Cursor
  readonly baseUrl: string
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  readonly heartbeatMs?: number
}

export function changeStream(options: StreamOptions): Readable {
  return Readable.from(eventTexts(options), { objectMode: false })
}

async function* eventTexts(options: StreamOptions): AsyncGenerator<string> {
  const { engine, user, signal, from } = options
  // Aborted by a change; one that comes while nothing waits is kept: what was written during a read is read next.
  let news = new AbortController()
  signal.addEventListener('abort', () => news.abort(), { once: true })
  let cursor = from
  let accounts: readonly AccountRecord[] = []
  let unsubscribe = (): void => undefined
  try {
    // An id without data is remembered too: a client that is cut off before the first event comes back to where it
    // began.
    yield `retry: ${retryMs}\nid: ${writeCursor(from)}\n\n`
    while (!signal.aborted) {
      // Accounts come and go, and other processes write too: both are seen at the next heartbeat at the latest.
      const now = await engine.store.accounts.listByUser(user.id)
      if (now.length === 0 && (await engine.store.users.get(user.developerId, user.id)) === null) return
      if (!sameAccounts(now, accounts)) {
        unsubscribe()
        unsubscribe = engine.webhooks.subscribe(
          now.map(({ id }) => id),
          () => news.abort(),
        )
        accounts = now
      }
      cursor = yield* newEvents(options, now, cursor)
      await pause(options.heartbeatMs ?? heartbeatMs, undefined, { signal: news.signal }).catch(() => undefined)
      if (news.signal.aborted) news = new AbortController()
      else yield ': still here\n\n'
    }
  } finally {
    unsubscribe()
  }
}

/** All that the logs hold after the cursor; answers where they end. */
async function* newEvents(
  { engine, baseUrl, signal }: StreamOptions,
  accounts: readonly AccountRecord[],
  from: Cursor,
): AsyncGenerator<string, Cursor> {
  let cursor = from
  for (let more = true; more && !signal.aborted;) {
    const page = await readPage(engine.store, accounts, cursor, pageSize)
    const names = await folderNamersOf(engine.store, page.steps)
    if (page.gap) yield `event: gap\ndata: {}\n\n`
    for (const step of page.steps) {
      const view = presentChange(step, names, liteUrls(baseUrl))
      yield `id: ${writeCursor(step.cursor)}\nevent: ${step.change.kind}\ndata: ${JSON.stringify(view)}\n\n`
    }
    ;({ cursor, more } = page)
  }
  return cursor
}

function sameAccounts(left: readonly AccountRecord[], right: readonly AccountRecord[]): boolean {
  return left.length === right.length && left.every(({ id }, index) => id === right[index]?.id)
}
