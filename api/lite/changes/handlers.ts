/** /lite/users/{id}/changes: the events that webhooks report, for callers who would rather ask. Beyond the original. */
import { z } from 'zod'
import type { UserRecord } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import { type Call, defineRoute, eventStreamHeaders, StreamAnswer, tagged } from '../../route.ts'
import { limitOf, optional, text } from '../../values.ts'
import { findUser } from '../find.ts'
import { liteUrls } from '../../addresses.ts'
import {
  changeStream,
  type Cursor,
  folderNamersOf,
  lastCursor,
  presentChange,
  readCursor,
  readPage,
  writeCursor,
} from './log.ts'

export const changeView = examples.view('Change', {
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
  return new StreamAnswer(changeStream({ engine, user, from, baseUrl, signal }), eventStreamHeaders)
}

async function startOf(call: Call, user: UserRecord, parameter: string, text: string | undefined): Promise<Cursor> {
  if (text === undefined || text === '') return new Map()
  if (text !== 'now') return readCursor(parameter, text)
  const { store } = call.engine
  return lastCursor(store, await store.accounts.listByUser(user.id))
}

export const changeRoutes = tagged('Changes', [list])
