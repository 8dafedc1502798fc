/** /lite/users/{id}/changes: the events that webhooks are told of, for those who would rather ask. Beyond the original. */
import { defineRoute, StreamAnswer, type Call, type Route } from '../../route.ts'
import type { UserRecord } from '../../../engine/index.ts'
import { findUser } from '../find.ts'
import { liteUrls } from '../urls.ts'
import { readCursor, writeCursor, type Cursor } from './cursor.ts'
import { folderNamersOf, lastCursor, presentChange, readPage } from './page.ts'
import { changesAnswer, changesQuery, userPath } from './schema.ts'
import { changeStream } from './stream.ts'

const streamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // For proxies that would rather collect the answer first.
  'X-Accel-Buffering': 'no',
}

const list = defineRoute({
  method: 'GET',
  path: '/lite/users/{id}/changes',
  auth: 'developer',
  tag: 'Changes',
  summary: 'Read the change log of a user, as a page or as a stream',
  description:
    'Messages received, sent, filed, flagged, deleted, through this API too, over all email accounts of the user, oldest first. Ask again with the answered ' +
    '`cursor`. With `Accept: text/event-stream` the answer is a stream of server-sent events that goes on with what happens: each has its ' +
    'event as its name and the cursor as its id; come back with `Last-Event-ID` and nothing is lost. Changes are kept for 30 days.',
  request: { path: userPath, query: changesQuery },
  response: changesAnswer,
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    if (wantsEvents(call)) return openStream(call, user, query.since)
    const { store } = call.engine
    const from = await startOf(call, user, 'since', query.since)
    const accounts = await store.accounts.listByUser(user.id)
    const page = await readPage(store, accounts, from, query.limit)
    const names = await folderNamersOf(store, page.steps)
    const urls = liteUrls(call.baseUrl)
    return {
      changes: page.steps.map((step) => presentChange(step, names, urls)),
      cursor: writeCursor(page.cursor),
      more: page.more,
      gap: page.gap,
    }
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
  return new StreamAnswer(changeStream({ engine, user, from, baseUrl, signal }), streamHeaders)
}

async function startOf(call: Call, user: UserRecord, parameter: string, text: string | undefined): Promise<Cursor> {
  if (text === undefined || text === '') return new Map()
  if (text !== 'now') return readCursor(parameter, text)
  const { store } = call.engine
  return lastCursor(store, await store.accounts.listByUser(user.id))
}

export const changeRoutes: readonly Route[] = [list]
