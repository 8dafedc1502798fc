/** Threads of 2.0: messages linked by In-Reply-To and References, or by the hosted provider's thread ids. */
import { z } from 'zod'
import {
  type AccountRecord,
  type Conversation,
  conversationOf,
  conversationsOf,
  describeMail,
  folderNamer,
  type HiddenPlaces,
  type MessageQuery,
  type MessageRecord,
} from '../../engine/index.ts'
import { type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { findAccount } from '../lite/find.ts'
import { wantsContents } from '../lite/messages/contents.ts'
import { listingOf, textOf } from '../lite/messages/list.ts'
import { pathsOf, peopleOf } from '../lite/messages/present.ts'
import { messageFields } from '../lite/messages/schema.ts'
import { type Call, defineRoute, deprecated, JsonText, routesAt } from '../route.ts'
import { endOfSecond, limitOf, offsetOf, optional, sortOrder } from '../values.ts'
import { isIndexedWithin, isWithin, timesOf } from './filters.ts'
import { hiddenPlaces, isShownMessage, locateAnywhere, locateThread, messagePaths, threadPath } from './find.ts'
import { messageQuery, messageView, threadFilters, v2Form } from './messages/reads.ts'

const { person_info, subject, folders, mailhost_thread_id, gmail_thread_id } = messageFields

const threadView = examples.view('Thread', {
  ...{ person_info, subject, folders, mailhost_thread_id, gmail_thread_id },
  email_message_ids: [z.array(z.string()), [examples.ids.emailMessage], 'of all messages of the thread, oldest first'],
  messages: [z.array(messageView), [examples.exampleOf(messageView)]],
  resource_url: [z.string(), examples.v2Urls.thread],
})

const threadQuery = messageQuery.omit({ include_source: true, include_thread_size: true }).extend({
  sort_order: optional(sortOrder, 'of its messages: `asc` (the default) = oldest first, `desc` = newest first'),
  limit: limitOf(100),
  offset: offsetOf('messages of the thread to pass over'),
})
type ThreadQuery = z.output<typeof threadQuery>

function threadUrl(urls: Urls, account: AccountRecord, { threadId, hostedThreadId }: Conversation): string {
  const name = hostedThreadId === null ? threadId : `gm-${encodeURIComponent(hostedThreadId)}`
  return `${urls.user({ id: account.userId })}/threads/${name}`
}

async function showThread(
  call: Call,
  account: AccountRecord,
  message: MessageRecord,
  whole: Conversation,
  query: ThreadQuery,
): Promise<JsonText> {
  const all = await call.engine.store.folders.list(account.id)
  const hidden = hiddenPlaces(account, all)
  const messages = whole.messages.filter((one) => isShownMessage(one, hidden)).slice(0, mostShown)
  const ordered = query.sort_order === 'desc' ? messages.toReversed() : messages
  const page = ordered.slice(query.offset, query.offset + query.limit)
  const [first = message] = messages
  const thread = {
    ...describeMail(first, messages.flatMap(peopleOf), messages.flatMap(pathsOf), folderNamer(all)),
    email_message_ids: messages.flatMap(({ emailMessageId: id }) => (id === null ? [] : [`<${id}>`])),
    resource_url: threadUrl(urlsOf(call), account, whole),
  }
  if (wantsContents(query)) call.touchesImap({ id: account.userId })
  const texts = await textOf(call, { account, folders: all, folder: null }, page, query, v2Form)
  return new JsonText(`${JSON.stringify(thread).slice(0, -1)},"messages":${texts}}`)
}

/** A view of a thread has its first thousand messages. */
const mostShown = 1000

export const threadListQuery = z.object({
  ...threadFilters,
  ...timesOf('activity', 'threads whose newest message was sent'),
  ...timesOf('started', 'threads whose first message was sent'),
})

type ThreadListQuery = z.output<typeof threadListQuery>

/** Addresses of the threads with a wanted message, newest wanted message first. */
export async function listThreads(call: Call, id: string, wanted: ThreadListQuery): Promise<string[]> {
  const { account } = await findAccount(call, id, wanted.source ?? '0')
  const { query, mustBeWhole } = await listingOf(call, account, wanted.folder, wanted, v2Form)
  const { store } = call.engine
  const seen = new Set<string>()
  const isNew = (one: MessageRecord): boolean => !seen.has(one.threadId) && isIndexedWithin(one, wanted)
  let known: ReadonlyMap<string, Conversation> = new Map()
  const found = await store.messages.picked(account.id, within(query, wanted), wanted, async (message, step) => {
    call.signal.throwIfAborted()
    if (!isNew(message)) return []
    if (!known.has(message.id)) {
      const threads = Map.groupBy(step.slice(step.indexOf(message)).filter(isNew), ({ threadId }) => threadId)
      const next = [...threads.values()].flatMap(([first]) => first ?? []).slice(0, wanted.offset + wanted.limit)
      known = await conversationsOf(store, account.id, next)
    }
    const whole = known.get(message.id)
    if (whole === undefined) return []
    for (const name of whole.threadIds) seen.add(name)
    return isActive(whole, query.hidden, wanted) ? [{ message, whole }] : []
  })
  await mustBeWhole(found.length, found.at(-1)?.message)
  return found.map(({ whole }) => threadUrl(urlsOf(call), account, whole))
}

/** Compares the thread's first and newest shown message with the filters `started` and `activity`. */
function isActive({ messages }: Conversation, hidden: HiddenPlaces, wanted: ThreadListQuery): boolean {
  const shown = messages.filter((message) => isShownMessage(message, hidden))
  const [first, newest] = [shown[0]?.sentAt ?? 0, shown.at(-1)?.sentAt ?? 0]
  return (
    isWithin(first, wanted.started_after, wanted.started_before) &&
    isWithin(newest, wanted.activity_after, wanted.activity_before)
  )
}

/** Narrows the query: no message of a thread was sent before the thread started, or after its last activity. */
function within(query: MessageQuery, { started_after, activity_before }: ThreadListQuery): MessageQuery {
  const [from, until] = [started_after, endOfSecond(activity_before)]
  return {
    ...query,
    ...(from === undefined ? {} : { sentFrom: Math.max(from, query.sentFrom ?? from) }),
    ...(until === undefined ? {} : { sentUntil: Math.min(until, query.sentUntil ?? until) }),
  }
}

const base = '/2.0/accounts/{id}/threads'

const list = defineRoute(`GET ${base}`, {
  instead: '',
  summary: 'List the threads of one source of an account: their addresses',
  description: 'Threads with at least one such message, the one with the newest first.',
  query: threadListQuery,
  response: z.array(z.string()).meta({ examples: [[examples.v2Urls.thread]] }),
  handler: ({ path, query }, call) => listThreads(call, path.id, query),
})

const get = defineRoute(`GET ${threadPath}`, {
  instead: '',
  summary: 'Get a thread with its messages',
  query: threadQuery,
  response: threadView,
  async handler({ path, query }, call) {
    const { account, message, whole } = await locateThread(call, path)
    return showThread(call, account, message, whole, query)
  },
})

const ofMessage = routesAt('GET', messagePaths, '/thread', {
  instead: '',
  summary: 'Get the thread of a message, with its messages',
  query: threadQuery,
  response: threadView,
  async handler({ path, query }, call) {
    const { account, message } = await locateAnywhere(call, path)
    return showThread(call, account, message, await conversationOf(call.engine.store, message), query)
  },
})

export const threadRoutes = deprecated('threads', [list, get, ...ofMessage])
