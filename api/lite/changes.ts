/**
 * /lite/users/{id}/changes: the events that webhooks report, for callers who would rather ask. The change logs of all
 * email accounts of a user are read as one, in pages or as a stream of server-sent events. Beyond the original.
 */
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import {
  type AccountRecord,
  badParameter,
  type ChangeRecord,
  type Engine,
  folderNamer,
  type Store,
  type UserRecord,
} from '../../engine/index.ts'
import { seconds, type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, eventStreamHeaders, StreamAnswer, tagged } from '../route.ts'
import { limitOf, optional, text } from '../values.ts'
import { findUser } from './find.ts'

const changeView = examples.view('Change', {
  id: [z.string(), 'c3d5e7f9a1b2c4d6e8f0a1b2', 'the same for the same event, however often it is read'],
  sequence: [z.int(), 1042, '1, 2, 3 … per email account, without gaps'],
  timestamp: [z.int(), examples.time],
  account_id: [z.string(), examples.ids.user],
  label: [z.string(), examples.label],
  event: [
    z.enum(['received', 'sent', 'draft', 'folder_added', 'folder_removed', 'flags_changed', 'deleted']),
    'received',
  ],
  first: [z.boolean(), true, "the message's first event"],
  message_id: [z.string(), examples.ids.message],
  folder: [z.string(), 'INBOX'],
  uid: [z.int(), 4711],
  flags: [z.array(z.string()), []],
  folders: [z.array(z.string()), ['INBOX'], 'of the message right after the event'],
  resource_url: [z.string(), examples.urls.message],
})

const changesQuery = z.object({
  since: optional(
    text,
    'cursor of an earlier answer; absent = from the oldest change that is kept, `now` = what is new from here on',
    'now',
  ),
  limit: limitOf(100, 1000),
})

const changesAnswer = examples.answer({
  changes: [z.array(changeView), [examples.exampleOf(changeView)]],
  cursor: [z.string(), 'eyJhIjoxMDQyfQ'],
  more: [z.boolean(), false, 'there are more right now'],
  gap: [z.boolean(), false, 'changes after the cursor are not kept any more'],
})

const list = defineRoute('GET /lite/users/{id}/changes', {
  summary: 'Read the change log of a user, as a page or as a stream',
  description:
    'Messages received, sent, filed, flagged, deleted, through this API too, over all email accounts of the user, oldest first. Ask again with the answered ' +
    '`cursor`. With `Accept: text/event-stream` the answer is a stream of server-sent events that goes on with what happens: each has its ' +
    'event as its name and the cursor as its id; come back with `Last-Event-ID` and nothing is lost. Changes are kept for 30 days.',
  query: changesQuery,
  response: changesAnswer,
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    if (wantsEvents(call)) return openStream(call, user, query.since)
    const { store } = call.engine
    const from = await startOf(call, user, 'since', query.since)
    const accounts = await store.accounts.listByUser(user.id)
    const { steps, cursor, more, gap } = await readPage(store, accounts, from, query.limit, urlsOf(call))
    return { changes: steps.map(({ view }) => view), cursor: writeCursor(cursor), more, gap }
  },
})

function wantsEvents(call: Call): boolean {
  return /(?:^|,)\s*text\/event-stream\b/i.test(call.header('accept') ?? '')
}

/** Last-Event-ID is where the client was when its connection broke: newer than the address it opened. */
async function openStream(call: Call, user: UserRecord, since: string | undefined): Promise<StreamAnswer> {
  const { engine, baseUrl, signal } = call
  const last = call.header('last-event-id') ?? ''
  const from =
    last === '' ? await startOf(call, user, 'since', since) : await startOf(call, user, 'Last-Event-ID', last)
  return new StreamAnswer(changeStream({ engine, user, from, baseUrl, signal }), eventStreamHeaders)
}

async function startOf(call: Call, user: UserRecord, parameter: string, text: string | undefined): Promise<Cursor> {
  if (text === undefined || text === '') return new Map()
  if (text !== 'now') return readCursor(parameter, text)
  const { store } = call.engine
  const accounts = await store.accounts.listByUser(user.id)
  return new Map(await Promise.all(accounts.map(async ({ id }) => [id, await store.changes.lastSeq(id)] as const)))
}

/** How far a reader has come: account id → sequence number. For callers it is one opaque text. */
type Cursor = ReadonlyMap<string, number>

function writeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(cursor))).toString('base64url')
}

/** More accounts than a user has, and a bound on what we read. */
const cursorText = /^[A-Za-z0-9_-]{1,65536}$/
const cursorEntries = z.record(z.string().regex(/^[0-9a-f]{24}$/), z.int().min(0))

/** Throws `bad_request` naming `parameter` for anything but a cursor of ours. */
function readCursor(parameter: string, text: string): Cursor {
  try {
    const json = cursorText.test(text) ? Buffer.from(text, 'base64url').toString('utf8') : ''
    return new Map(Object.entries(cursorEntries.parse(JSON.parse(json))))
  } catch {
    throw badParameter(parameter, 'not a cursor of this API')
  }
}

interface Log {
  readonly account: AccountRecord
  readonly changes: readonly ChangeRecord[]
}

/** An account that the cursor does not know is read from the oldest change kept; one that is gone is left out. */
async function readPage(store: Store, accounts: readonly AccountRecord[], after: Cursor, limit: number, urls: Urls) {
  const logs = await Promise.all(
    accounts.map(async (account) => {
      const from = after.get(account.id) ?? 0
      const changes = await store.changes.since(account.id, from, limit + 1)
      const [first] = changes
      return { account, changes, gap: from > 0 && first !== undefined && first.seq > from + 1 }
    }),
  )
  const page = merged(logs).slice(0, limit)
  const concerned = [...new Set(page.map(({ account }) => account.id))]
  const namers = new Map(
    await Promise.all(concerned.map(async (id) => [id, folderNamer(await store.folders.list(id))] as const)),
  )
  const cursor = new Map(accounts.map(({ id }) => [id, after.get(id) ?? 0]))
  const steps = page.map(({ account, change }) => {
    cursor.set(account.id, change.seq)
    const view = present(change, account, namers.get(account.id) ?? String, urls)
    return { view, /** Where a reader stands who has read this change. */ cursor: new Map(cursor) }
  })
  return {
    steps,
    /** Where a reader stands who has read the page. */
    cursor,
    more: logs.reduce((sum, { changes }) => sum + changes.length, 0) > steps.length,
    gap: logs.some(({ gap }) => gap),
  }
}

/** By time, and no log is ever out of order: a change goes with the latest that stands before it in its log. */
function merged(logs: readonly Log[]) {
  const all = logs.flatMap(({ account, changes }) => {
    let at = 0
    return changes.map((change) => {
      at = Math.max(at, change.at)
      return { account, change, at }
    })
  })
  return all.toSorted((one, other) => one.at - other.at)
}

function present(
  change: ChangeRecord,
  account: AccountRecord,
  folderName: (path: string) => string,
  urls: Urls,
): z.input<typeof changeView> {
  return {
    id: change.id,
    sequence: change.seq,
    timestamp: seconds(change.at),
    account_id: change.userId,
    label: account.label,
    event: change.kind,
    first: change.first,
    message_id: change.messageId,
    folder: folderName(change.path),
    uid: change.uid,
    flags: [...change.flags],
    folders: change.folders.map(folderName),
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
  const urls = urlsOf({ baseUrl, version: 'lite' })
  let cursor = from
  for (let more = true; more && !signal.aborted;) {
    const page = await readPage(engine.store, accounts, cursor, pageSize, urls)
    if (page.gap) yield `event: gap\ndata: {}\n\n`
    for (const { view, cursor: after } of page.steps)
      yield `id: ${writeCursor(after)}\nevent: ${view.event}\ndata: ${JSON.stringify(view)}\n\n`
    ;({ cursor, more } = page)
  }
  return cursor
}

function sameAccounts(left: readonly AccountRecord[], right: readonly AccountRecord[]): boolean {
  return left.length === right.length && left.every(({ id }, index) => id === right[index]?.id)
}

export const changeRoutes = tagged('Changes', [list])
