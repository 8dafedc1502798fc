/**
 * The change logs of a user as server-sent events. Each event's id is the cursor after it, so that a client which comes back with
 * Last-Event-ID goes on where it was. The store is read only as fast as the client takes the text, so a slow client costs nothing but
 * its socket; an idle stream is one subscription and one timer.
 */
import { Readable } from 'node:stream'
import type { AccountRecord, Engine, UserRecord } from '../../../engine/index.ts'
import { liteUrls } from '../urls.ts'
import { writeCursor, type Cursor } from './cursor.ts'
import { folderNamersOf, presentChange, readPage } from './page.ts'

/** Often enough for proxies that close silent connections. */
const heartbeatMs = 15_000
/** What the client should wait before it comes back. */
const retryMs = 3000
const pageSize = 100

export interface StreamOptions {
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
  const bell = createBell(signal)
  let cursor = from
  let accounts: readonly AccountRecord[] = []
  let leave = (): void => undefined
  try {
    // An id without data is remembered too: a client that is cut off before the first event comes back to where it began.
    yield `retry: ${retryMs}\nid: ${writeCursor(from)}\n\n`
    while (!signal.aborted) {
      // Accounts come and go, and other processes write too: both are seen at the next heartbeat at the latest.
      const now = await engine.store.accounts.listByUser(user.id)
      if (now.length === 0 && (await engine.store.users.get(user.developerId, user.id)) === null) return
      if (!sameAccounts(now, accounts)) {
        leave()
        leave = engine.webhooks.subscribe(
          now.map(({ id }) => id),
          bell.ring,
        )
        accounts = now
      }
      cursor = yield* news(options, now, cursor)
      if (!(await bell.heard(options.heartbeatMs ?? heartbeatMs))) yield ': still here\n\n'
    }
  } finally {
    leave()
    bell.silence()
  }
}

/** All that the logs hold after the cursor; answers where they end. */
async function* news(
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

interface Bell {
  readonly ring: () => void
  /** true when it rang since it was last heard, or rings within the time; false when time is up or the client is gone. */
  heard(ms: number): Promise<boolean>
  silence(): void
}

/** A ring while nobody listens is kept: what was written during a read is read next. */
function createBell(signal: AbortSignal): Bell {
  let rung = false
  let wake = (): void => undefined
  const stop = (): void => wake()
  signal.addEventListener('abort', stop, { once: true })
  return {
    ring() {
      rung = true
      wake()
    },
    async heard(ms) {
      if (!rung && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<undefined>()
        const timer = setTimeout(() => resolve(undefined), ms)
        wake = () => resolve(undefined)
        await promise
        clearTimeout(timer)
      }
      const was = rung
      rung = false
      return was
    },
    silence: () => signal.removeEventListener('abort', stop),
  }
}
