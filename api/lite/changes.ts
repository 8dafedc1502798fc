/**
 * /lite/users/{id}/changes: the events that webhooks report, for callers who would rather ask. The change logs of all
 * email accounts of a user are read as one, in pages or as a stream of server-sent events. Beyond the original.
 */
import { Readable } from 'node:stream'
import { z } from 'zod'
import {
  type AccountRecord,
  AppError,
  badParameter,
  type ChangeRecord,
  type Engine,
  folderNamer,
  type Store,
  type UserRecord,
  type Uses,
} from '../../engine/index.ts'
import { seconds, type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { BoundedMap, createCounts } from '../limits.ts'
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
    'event as its name and the cursor as its id; come back with `Last-Event-ID` and nothing is lost. A user has at most 16 streams at once, a developer 200; more are a 429. Changes are kept for 30 days.',
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
 * with Last-Event-ID goes on where it was. One reader per user reads the store for all its streams: those that stand at
 * the same cursor share a page. A page is read only when a client takes it, so a slow client costs its socket alone.
 */

/** Often enough for proxies that close silent connections. */
const heartbeatMs = 15_000
/** What the client should wait before it comes back. */
const retryMs = 3000
const pageSize = 100
/** Cursors whose page is kept until the next change. */
const pagesKept = 4
const streamsOfUser = 16
const streamsOfDeveloper = 200

interface StreamOptions {
  readonly engine: Engine
  readonly user: UserRecord
  readonly from: Cursor
  readonly baseUrl: string
  readonly signal: AbortSignal
  readonly heartbeatMs?: number
}

interface StreamPage {
  readonly text: string
  readonly cursor: Cursor
  readonly more: boolean
}

/** Reads the change logs of one user for all its streams. */
class UserReader {
  /** Of what may have been written: another one after each change and each heartbeat. */
  version = 0
  #streams = 0
  readonly #engine: Engine
  readonly #user: UserRecord
  readonly #pages = new BoundedMap<Promise<StreamPage | null>>(pagesKept)
  #accounts: readonly AccountRecord[] = []
  #next = Promise.withResolvers<undefined>()
  #unsubscribe = (): void => undefined
  readonly #heartbeat: NodeJS.Timeout

  constructor({ engine, user, heartbeatMs: everyMs = heartbeatMs }: StreamOptions) {
    this.#engine = engine
    this.#user = user
    this.#heartbeat = setInterval(() => this.wake(), everyMs)
  }

  join(): void {
    this.#streams += 1
  }

  /** Answers whether it was the last stream. */
  leave(): boolean {
    this.#streams -= 1
    this.wake()
    if (this.#streams > 0) return false
    clearInterval(this.#heartbeat)
    this.#unsubscribe()
    return true
  }

  /** Every stream looks again. */
  wake(): void {
    this.version += 1
    this.#pages.clear()
    this.#next.resolve(undefined)
    this.#next = Promise.withResolvers<undefined>()
  }

  /** Resolves when the version is another one. */
  async after(version: number): Promise<void> {
    if (version === this.version) await this.#next.promise
  }

  /** What the logs hold after the cursor; null = the user is gone. */
  page(from: Cursor, baseUrl: string): Promise<StreamPage | null> {
    const key = `${baseUrl} ${writeCursor(from)}`
    const page = this.#pages.get(key) ?? this.#read(from, baseUrl)
    this.#pages.set(key, page)
    return page
  }

  async #read(from: Cursor, baseUrl: string): Promise<StreamPage | null> {
    const { store } = this.#engine
    // Accounts come and go, and other processes write too: both are seen at the next heartbeat at the latest.
    const accounts = await store.accounts.listByUser(this.#user.id)
    if (accounts.length === 0 && (await store.users.get(this.#user.developerId, this.#user.id)) === null) return null
    this.#subscribe(accounts)
    const page = await readPage(store, accounts, from, pageSize, urlsOf({ baseUrl, version: 'lite' }))
    const events = page.steps.map(
      ({ view, cursor }) => `id: ${writeCursor(cursor)}\nevent: ${view.event}\ndata: ${JSON.stringify(view)}\n\n`,
    )
    const gap = page.gap ? `event: gap\ndata: {}\n\n` : ''
    return { text: gap + events.join(''), cursor: page.cursor, more: page.more }
  }

  #subscribe(accounts: readonly AccountRecord[]): void {
    if (this.#streams === 0 || sameAccounts(accounts, this.#accounts)) return
    this.#unsubscribe()
    this.#accounts = accounts
    this.#unsubscribe = this.#engine.webhooks.subscribe(
      accounts.map(({ id }) => id),
      () => this.wake(),
    )
  }
}

/** The open streams of one engine, by user and by developer. A user's are on one node, a developer's on all. */
class Streams {
  readonly #uses: Uses
  readonly #readers = new Map<string, UserReader>()
  readonly #counts = createCounts()
  /** Developer → node → how many are open there. */
  readonly #elsewhere = new BoundedMap<Map<string, number>>()

  constructor({ uses }: Engine) {
    this.#uses = uses
    uses.hear('streams', (developerId, open, from) => {
      const byNode = this.#elsewhere.get(developerId) ?? new Map<string, number>()
      for (const node of byNode.keys()) if (!uses.has(node)) byNode.delete(node)
      this.#elsewhere.set(developerId, byNode.set(from, open))
    })
  }

  #openElsewhere(developerId: string): number {
    const byNode = [...(this.#elsewhere.get(developerId) ?? [])]
    return byNode.reduce((sum, [node, open]) => sum + (this.#uses.has(node) ? open : 0), 0)
  }

  /** Throws `rate_limited` when the user or the developer has as many streams as may be. */
  join(options: StreamOptions): { readonly reader: UserReader; readonly leave: () => void } {
    const { id, developerId } = options.user
    this.#refuse(`user ${id}`, streamsOfUser, 'one user')
    const most = streamsOfDeveloper - this.#openElsewhere(developerId)
    this.#refuse(`developer ${developerId}`, most, 'one developer', streamsOfDeveloper)
    const reader = this.#readers.get(id) ?? new UserReader(options)
    this.#readers.set(id, reader)
    reader.join()
    const count = (by: 1 | -1): void => {
      this.#counts.change(`user ${id}`, by)
      this.#counts.change(`developer ${developerId}`, by)
      this.#uses.tell('streams', developerId, this.#counts.of(`developer ${developerId}`))
    }
    count(1)
    let isOpen = true
    const leave = (): void => {
      if (!isOpen) return
      isOpen = false
      count(-1)
      if (reader.leave()) this.#readers.delete(id)
    }
    return { reader, leave }
  }

  #refuse(name: string, most: number, whose: string, allowed = most): void {
    if (this.#counts.of(name) < most) return
    const words = `${allowed} event streams of ${whose} are open; close one, or read the changes in pages`
    throw new AppError('rate_limited', words, { retryAfterMs: retryMs })
  }
}

const streamsOf = new WeakMap<Engine, Streams>()

/** Throws `rate_limited` over the limits. */
export function changeStream(options: StreamOptions): Readable {
  const { engine, signal } = options
  const streams = streamsOf.get(engine) ?? new Streams(engine)
  streamsOf.set(engine, streams)
  const { reader, leave } = streams.join(options)
  const stream = Readable.from(eventTexts(options, reader), { objectMode: false })
  stream.once('close', leave)
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  return stream
}

async function* eventTexts({ from, baseUrl, signal }: StreamOptions, reader: UserReader): AsyncGenerator<string> {
  // An id without data is remembered too: a client that is cut off before the first event comes back to where it began.
  yield `retry: ${retryMs}\nid: ${writeCursor(from)}\n\n`
  let [cursor, isFirst] = [from, true]
  do {
    const { version } = reader
    let [more, isSilent] = [true, !isFirst]
    while (more) {
      const page = await reader.page(cursor, baseUrl)
      if (page === null) return
      if (page.text !== '') yield page.text
      isSilent &&= page.text === ''
      cursor = page.cursor
      more = page.more && !signal.aborted
    }
    if (isSilent) yield ': still here\n\n'
    isFirst = false
    await reader.after(version)
  } while (!signal.aborted)
}

function sameAccounts(left: readonly AccountRecord[], right: readonly AccountRecord[]): boolean {
  return left.length === right.length && left.every(({ id }, index) => id === right[index]?.id)
}

export const changeRoutes = tagged('Changes', [list])
