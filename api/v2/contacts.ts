/** /2.0/accounts/{id}/contacts: the contacts of lite, and the files, messages and threads exchanged with a contact. */
import { z } from 'zod'
import { type ContactRecord, thumbnail } from '../../engine/index.ts'
import { type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { contactFields, findContact, listContacts, mailMustBeRead, presentContact } from '../lite/contacts.ts'
import { findUser } from '../lite/find.ts'
import { listMessages } from '../lite/messages/list.ts'
import { defineRoute, deprecated } from '../route.ts'
import { choice, documented, filledText, limitOf, offset, optional, sortOrder } from '../values.ts'
import { fileListQuery, fileView, listFiles } from './files.ts'
import { liteAccount } from './find.ts'
import { listQuery as messageListQuery, messageView, v2Form } from './messages/reads.ts'
import { listThreads, threadListQuery } from './threads.ts'

const fields = {
  ...contactFields,
  count: [z.int(), 42, 'the same as total_count'],
  received_count: [z.int(), 30, 'the same as indirect_count'],
  sent_count: [z.int(), 12, 'the others: sent to the contact, or to both of you by somebody else'],
  thumbnail: [z.string(), examples.thumbnail],
  resource_url: [z.string(), examples.v2Urls.contact],
} as const
const matchView = examples.view('Match', fields)
const contactView = examples.view('Contact20', { ...fields, emails: [z.array(z.string()), ['ben@example.org']] })

/** Count of 2.0 → the count of lite that the store sorts by. */
const sorts = {
  count: 'total_count',
  total_count: 'total_count',
  received_count: 'indirect_count',
  indirect_count: 'indirect_count',
  direct_count: 'direct_count',
} as const

/** Of a contact's times the store has only that of the newest message received: too little for a filter by time. */
const refused = documented(
  z.undefined({ error: 'contacts are not filtered by time; list the messages of that time' }).optional(),
  { type: 'string', not: {}, description: 'not served: a 400' },
)

function present(contact: ContactRecord, urls: Urls): z.input<typeof matchView> {
  const { email, totalCount, indirectCount, userId } = contact
  return {
    ...presentContact(contact),
    count: totalCount,
    received_count: indirectCount,
    sent_count: totalCount - indirectCount,
    thumbnail: thumbnail(email),
    resource_url: `${urls.user({ id: userId })}/contacts/${encodeURIComponent(email)}`,
  }
}

const base = '/2.0/accounts/{id}/contacts'
const one = `${base}/{email}` as const

const list = defineRoute(`GET ${base}`, {
  summary: 'List the contacts of an account',
  query: z.object({
    search: optional(
      filledText,
      'only contacts whose name or address holds this text; those with the most mail first',
      'ben',
    ),
    sort_by: choice(Object.keys(sorts) as (keyof typeof sorts)[])
      .default('count')
      .meta({ description: 'count to sort by, without `search`' }),
    sort_order: sortOrder.default('desc').meta({ description: '`desc` = highest count first, `asc` = lowest first' }),
    active_before: refused,
    active_after: refused,
    limit: limitOf(100),
    offset,
  }),
  response: examples.answer({
    query: [
      z.object({
        search: z.string().optional(),
        sort_by: z.string(),
        sort_order: z.string(),
        limit: z.int(),
        offset: z.int(),
      }),
      { sort_by: 'count', sort_order: 'desc', limit: 100, offset: 0 },
    ],
    matches: [z.array(matchView), [examples.exampleOf(matchView)]],
  }),
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    const found =
      query.search === undefined
        ? await listContacts(call, user, sorts[query.sort_by], query.sort_order, query)
        : await call.engine.store.contacts.search(user.id, query.search, query)
    if (found.length === 0) await mailMustBeRead(call, user.id)
    const urls = urlsOf(call)
    return { query, matches: found.map((contact) => present(contact, urls)) }
  },
})

const get = defineRoute(`GET ${one}`, {
  instead: 'GET /lite/users/{id}/contacts/{contactid}',
  summary: 'Get a contact by its email address',
  response: contactView,
  async handler({ path }, call) {
    const contact = await findContact(call, path.id, path.email)
    return { ...present(contact, urlsOf(call)), emails: [contact.email] }
  },
})

const files = defineRoute(`GET ${one}/files`, {
  instead: `GET ${liteAccount}/messages`,
  summary: 'List the files that are exchanged with a contact',
  query: fileListQuery.omit({ email: true }),
  response: z.array(fileView),
  async handler({ path, query }, call) {
    const { email } = await findContact(call, path.id, path.email)
    return listFiles(call, path.id, { ...query, email: [email] })
  },
})

const messages = defineRoute(`GET ${one}/messages`, {
  instead: `GET ${liteAccount}/messages`,
  summary: 'List the messages that are exchanged with a contact',
  query: messageListQuery.omit({ email: true }),
  response: z.array(messageView),
  async handler({ path, query }, call) {
    const { email } = await findContact(call, path.id, path.email)
    const at = { id: path.id, label: query.source ?? '0', folder: query.folder }
    return listMessages(call, at, { ...query, email: [email] }, v2Form)
  },
})

const threads = defineRoute(`GET ${one}/threads`, {
  instead: '',
  summary: 'List the threads with mail that is exchanged with a contact: their addresses',
  query: threadListQuery.omit({ email: true }),
  response: z.array(z.string()).meta({ examples: [[examples.v2Urls.thread]] }),
  async handler({ path, query }, call) {
    const { email } = await findContact(call, path.id, path.email)
    return listThreads(call, path.id, { ...query, email: [email] })
  },
})

export const v2ContactRoutes = deprecated('contacts', [list, get, files, messages, threads])
