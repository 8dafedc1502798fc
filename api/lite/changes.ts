/**
 * /lite/users/{id}/changes: the events that webhooks report, for callers that poll. The change logs of all email
 * accounts of a user are read as one log, in pages or as a stream of server-sent events. The original service has no
 * such call.
 */
import { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
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
import { boundedMap, createCounts } from '../limits.ts'
import { type Call, defineRoute, eventStreamHeaders, StreamAnswer, tagged } from '../route.ts'
import { limitOf, optional, text } from '../values.ts'
import { findUser } from './find.ts'
import { eventKind } from './webhooks/callbacks.ts'

const changeView = examples.view('Change', {
  id: [z.string(), 'c3d5e7f9a1b2c4d6e8f0a1b2', 'the same for the same event, however often it is read'],
  sequence: [z.int(), 1042, '1, 2, 3 … per email account, without gaps'],
  timestamp: [z.int(), examples.time],
  account_id: [z.string(), examples.ids.user],
  label: [z.string(), examples.label],
  event: [eventKind, 'received'],
  first: [z.boolean(), true, "the message's first event"],
  message_id: [z.string(), examples.ids.message],
  folder: [z.string(), 'INBOX'],
  uid: [z.int(), 4711],
  flags: [z.array(z.string()), []],
  folders: [z.array(z.string()), ['INBOX'], 'of the message right after the event'],
  resource_url: [z.string(), examples.urls.message],
})

const list = defineRoute('GET /lite/users/{id}/changes', {
  summary: 'Read the change log of a user, as a page or as a stream',
  description:
    'Messages received, sent, filed, flagged, deleted, through this API too, over all email accounts of the user, oldest first. Ask again with the answered ' +
    '`cursor`. With `Accept: text/event-stream` the answer is a stream of server-sent events that goes on with what happens: each has its ' +
    'event as its name and the cursor as its id; come back with `Last-Event-ID` and nothing is lost. A user has at most 16 streams at once, a developer 200; more are a 429. Changes are kept for 30 days.',
  query: z.object({
    since: optional(
      text,
      'cursor of an earlier answer; absent = from the oldest change that is kept, `now` = what is new from here on',
      'now',
    ),
    limit: limitOf(100, 1000),
  }),
  response: examples.answer({
    changes: [z.array(changeView), [examples.exampleOf(changeView)]],
    cursor: [z.string(), 'eyJhIjoxMDQyfQ'],
    more: [z.boolean(), false, 'there are more right now'],
    gap: [z.boolean(), false, 'changes after the cursor are not kept any more'],
  }),
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    const isStream = /(?:^|,)\s*text\/event-stream\b/i.test(call.header('accept') ?? '')
    // Last-Event-ID wins over `since`: a client that reconnects sends both, and `since` is older.
    const last = isStream ? call.header('last-event-id') : undefined
    const from = await (last ? startOf(call, user, 'Last-Event-ID', last) : startOf(call, user, 'since', query.since))
    if (isStream) {
      const { engine, baseUrl, signal } = call
      return new StreamAnswer(changeStream({ engine, user, from, baseUrl, signal }), eventStreamHeaders)
    }
    const { store } = call.engine
    const accounts = await store.accounts.listByUser(user.id)
    const { steps, cursor, more, gap } = await readPage(store, accounts, from, query.limit, urlsOf(call))
    return { changes: steps.map(({ view }) => view), cursor: writeCursor(cursor), more, gap }
  },
})

async function startOf(call: Call, user: UserRecord, parameter: string, text: string | undefined): Promise<Cursor> {
  if (text === undefined || text === '') return new Map()
  if (text !== 'now') return readCursor(parameter, text)
  const { store } = call.engine
  const accounts = await store.accounts.listByUser(user.id)
  return new Map(await Promise.all(accounts.map(async ({ id }) => [id, await store.changes.lastSeq(id)] as const)))
}

/** Account id → sequence number of the last change that was read. Callers see a cursor as one opaque text. */
type Cursor = ReadonlyMap<string, number>

function writeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(cursor))).toString('base64url')
}

/** The length bounds what is decoded; a user has fewer accounts than fit in. */
const cursorText = /^[A-Za-z0-9_-]{1,65536}$/
const cursorEntries = z.record(z.string().regex(/^[0-9a-f]{24}$/), z.int().min(0))

/** Throws `bad_request` naming `parameter` for a text that `writeCursor` cannot have written. */
function readCursor(parameter: string, text: string): Cursor {
  try {
    const json = cursorText.test(text) ? Buffer.from(text, 'base64url').toString('utf8') : ''
    return new Map(Object.entries(cursorEntries.parse(JSON.parse(json))))
  } catch {
    throw badParameter(parameter, 'not a cursor of this API')
  }
}

/**
 * An account that the cursor lacks is read from its oldest kept change; removed accounts drop out of the cursor. Each
 * step has the cursor after its change; `cursor` is the one after the page.
 */
async function readPage(store: Store, accounts: readonly AccountRecord[], after: Cursor, limit: number, urls: Urls) {
  const logs = await Promise.all(
    accounts.map(async (account) => {
      const from = after.get(account.id) ?? 0
      const changes = await store.changes.since(account.id, from, limit + 1)
      const [first] = changes
      return { account, changes, gap: from > 0 && first !== undefined && first.seq > from + 1 }
    }),
  )
  const changes = merged(logs)
  const page = changes.slice(0, limit)
  const concerned = [...new Set(page.map(({ account }) => account.id))]
  const namers = new Map(
    await Promise.all(concerned.map(async (id) => [id, folderNamer(await store.folders.list(id))] as const)),
  )
  const cursor = new Map(accounts.map(({ id }) => [id, after.get(id) ?? 0]))
  const steps = page.map(({ account, change }) => {
    cursor.set(account.id, change.seq)
    return { view: present(change, account, namers.get(account.id) ?? String, urls), cursor: new Map(cursor) }
  })
  return { steps, cursor, more: changes.length > limit, gap: logs.some(({ gap }) => gap) }
}

/** Sorts by time without reordering any log: a change counts as no older than the changes before it in its log. */
function merged(logs: readonly { readonly account: AccountRecord; readonly changes: readonly ChangeRecord[] }[]) {
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
 * The change logs as server-sent events. The id of each event is the cursor after it, so a client that reconnects with
 * Last-Event-ID misses nothing. One reader per user reads the store for all streams of the user: streams at the same
 * cursor share a page. A page is read only when a client takes it, so a slow client costs only its socket.
 */

/** Shorter than the idle timeout of usual proxies. */
const heartbeatMs = 15_000
/** The client should wait this long before it reconnects. */
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

/** Reads the change logs of one user for all streams of the user. */
class UserReader {
  /** How many streams read from here. */
  streams = 0
  readonly #engine: Engine
  readonly #user: UserRecord
  readonly #pages = boundedMap<Promise<StreamPage | null>>(pagesKept)
  #accountIds: readonly string[] = []
  #woken = Promise.withResolvers<undefined>()
  #unsubscribe = (): void => undefined
  readonly #heartbeat: NodeJS.Timeout

  constructor({ engine, user, heartbeatMs: everyMs = heartbeatMs }: StreamOptions) {
    this.#engine = engine
    this.#user = user
    this.#heartbeat = setInterval(() => this.#wake(), everyMs)
  }

  /** Resolves at the next change or heartbeat, or when a stream leaves. */
  get woken(): Promise<undefined> {
    return this.#woken.promise
  }

  leave(): void {
    this.streams -= 1
    this.#wake()
    if (this.streams > 0) return
    clearInterval(this.#heartbeat)
    this.#unsubscribe()
  }

  /** Makes every stream read again. */
  #wake(): void {
    this.#pages.clear()
    this.#woken.resolve(undefined)
    this.#woken = Promise.withResolvers<undefined>()
  }

  /** The changes after the cursor; null = the user is gone. */
  page(from: Cursor, baseUrl: string): Promise<StreamPage | null> {
    const key = `${baseUrl} ${writeCursor(from)}`
    const page = this.#pages.get(key) ?? this.#read(from, baseUrl)
    this.#pages.set(key, page)
    return page
  }

  async #read(from: Cursor, baseUrl: string): Promise<StreamPage | null> {
    const { store } = this.#engine
    // New and removed accounts, and changes that other nodes write, are seen at the next heartbeat at the latest.
    const accounts = await store.accounts.listByUser(this.#user.id)
    if (accounts.length === 0 && (await store.users.get(this.#user.developerId, this.#user.id)) === null) return null
    this.#subscribe(accounts.map(({ id }) => id))
    const page = await readPage(store, accounts, from, pageSize, urlsOf({ baseUrl, version: 'lite' }))
    const events = page.steps.map(
      ({ view, cursor }) => `id: ${writeCursor(cursor)}\nevent: ${view.event}\ndata: ${JSON.stringify(view)}\n\n`,
    )
    const gap = page.gap ? `event: gap\ndata: {}\n\n` : ''
    return { text: gap + events.join(''), cursor: page.cursor, more: page.more }
  }

  #subscribe(accountIds: readonly string[]): void {
    if (this.streams === 0 || isDeepStrictEqual(accountIds, this.#accountIds)) return
    this.#unsubscribe()
    this.#accountIds = accountIds
    this.#unsubscribe = this.#engine.webhooks.subscribe(accountIds, () => this.#wake())
  }
}

/** The open streams of one engine. The streams of a user are on one node, those of a developer on all nodes. */
class Streams {
  readonly #uses: Uses
  readonly #readers = new Map<string, UserReader>()
  /** Developer → how many streams are open on this node. */
  readonly #open = createCounts()
  /** Other node → developer → how many streams are open there. */
  readonly #elsewhere = new Map<string, ReturnType<typeof boundedMap<number>>>()

  constructor({ uses }: Engine) {
    this.#uses = uses
    uses.hear('streams', (developerId, open, node) => {
      this.#elsewhere.getOrInsertComputed(node, () => boundedMap()).set(developerId, open)
    })
  }

  #openElsewhere(developerId: string): number {
    for (const node of this.#elsewhere.keys()) if (!this.#uses.has(node)) this.#elsewhere.delete(node)
    return this.#elsewhere.values().reduce((sum, open) => sum + (open.get(developerId) ?? 0), 0)
  }

  /** Throws `rate_limited` when the user or the developer has too many streams. `leave` may be called twice. */
  join(options: StreamOptions): { readonly reader: UserReader; readonly leave: () => void } {
    const { id, developerId } = options.user
    mayOpen(this.#readers.get(id)?.streams ?? 0, streamsOfUser, 'one user')
    mayOpen(this.#open.of(developerId) + this.#openElsewhere(developerId), streamsOfDeveloper, 'one developer')
    const reader = this.#readers.getOrInsertComputed(id, () => new UserReader(options))
    reader.streams += 1
    const count = (by: 1 | -1): void => {
      this.#open.change(developerId, by)
      this.#uses.tell('streams', developerId, this.#open.of(developerId))
    }
    count(1)
    const joined = new DisposableStack()
    joined.defer(() => {
      count(-1)
      reader.leave()
      if (reader.streams === 0) this.#readers.delete(id)
    })
    return { reader, leave: () => joined.dispose() }
  }
}

function mayOpen(open: number, most: number, whose: string): void {
  if (open < most) return
  const words = `${most} event streams of ${whose} are open; close one, or read the changes in pages`
  throw new AppError('rate_limited', words, { retryAfterMs: retryMs })
}

const streamsOf = new WeakMap<Engine, Streams>()

/** Throws `rate_limited` over the limits. */
export function changeStream(options: StreamOptions): Readable {
  const { engine, signal } = options
  const { reader, leave } = streamsOf.getOrInsertComputed(engine, () => new Streams(engine)).join(options)
  const stream = Readable.from(eventTexts(options, reader), { objectMode: false })
  stream.once('close', leave)
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  return stream
}

async function* eventTexts({ from, baseUrl, signal }: StreamOptions, reader: UserReader): AsyncGenerator<string> {
  // Clients remember an id without data too: one that is cut off before the first event resumes from the beginning.
  yield `retry: ${retryMs}\nid: ${writeCursor(from)}\n\n`
  let cursor = from
  let isFirstRead = true
  while (!signal.aborted) {
    const { woken } = reader
    const page = await reader.page(cursor, baseUrl)
    if (page === null) return
    cursor = page.cursor
    if (page.text !== '') yield page.text
    else if (!isFirstRead) yield ': still here\n\n'
    isFirstRead = false
    if (!page.more) await woken
  }
}

export const changeRoutes = tagged('Changes', [list])
