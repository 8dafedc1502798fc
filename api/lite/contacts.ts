/** /lite/users/{id}/contacts: the people whom a user exchanges mail with. Arriving mail and backfills count them. */
import { z } from 'zod'
import {
  contactId,
  type ContactRecord,
  type ContactSort,
  notFound,
  type Page,
  type UserRecord,
} from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { type Call, defineRoute, tagged } from '../route.ts'
import { choice, limitOf, offset, sortOrder } from '../values.ts'
import { findUser } from './find.ts'
import { mustBeRead } from './unread.ts'
import { seconds } from '../addresses.ts'

export const contactFields = {
  email: [z.string(), 'ben@example.org'],
  name: [z.string(), 'Ben Lind'],
  total_count: [z.int(), 42, 'all messages with the contact: in From, To, Cc or Bcc, received or sent'],
  direct_count: [z.int(), 12, 'messages received from the contact and replied to'],
  indirect_count: [z.int(), 30, 'messages received from the contact'],
  last_received: [
    z.int(),
    examples.time,
    'Unix timestamp of the newest message received from the contact; 0 = none was',
  ],
  service_user_id: [z.string(), examples.ids.user],
  contact_id: [z.string(), 'd1e2f3a4b5c6d7e8f9a0b1c2'],
} as const

const contactView = examples.view('Contact', contactFields)

const base = '/lite/users/{id}/contacts'

export function presentContact(contact: ContactRecord): z.input<typeof contactView> {
  return {
    email: contact.email,
    name: contact.name,
    total_count: contact.totalCount,
    direct_count: contact.directCount,
    indirect_count: contact.indirectCount,
    last_received: seconds(contact.lastReceivedAt),
    service_user_id: contact.userId,
    contact_id: contact.id,
  }
}

const list = defineRoute(`GET ${base}`, {
  summary: 'List the contacts of a user',
  description:
    '`total_count`: all messages with the contact, in From, To, Cc or Bcc; `indirect_count`: received from the contact; ' +
    '`direct_count`: received and replied to. Drafts, junk and what lies in the trash when it is first seen count for nobody. The counts do not go down when mail is deleted; they lose the part of an email account when it is removed. They grow while the mail of an email account is read ' +
    'for the first time; until then an empty page and an unknown contact are a 503 that says how far the reading is.',
  query: z.object({
    sort_by: choice(['total_count', 'direct_count', 'indirect_count'])
      .default('total_count')
      .meta({
        description:
          'count to sort by: `total_count` of all messages with the contact, `indirect_count` of those received from the contact, ' +
          '`direct_count` of those received and replied to',
      }),
    sort_order: sortOrder.default('desc').meta({ description: '`desc` = highest count first, `asc` = lowest first' }),
    limit: limitOf(100),
    offset,
  }),
  response: examples.answer({ contacts: [z.array(contactView), [examples.exampleOf(contactView)]] }),
  async handler({ path, query }, call) {
    const user = await findUser(call, path.id)
    const contacts = await listContacts(call, user, query.sort_by, query.sort_order, query)
    if (contacts.length === 0) await mailMustBeRead(call, user.id)
    return { contacts: contacts.map(presentContact) }
  },
})

const get = defineRoute(`GET ${base}/{contactid}`, {
  summary: 'Get a contact by its id or email address',
  response: contactView,
  handler: async ({ path }, call) => presentContact(await findContact(call, path.id, path.contactid)),
})

export async function listContacts(
  { engine: { store } }: Call,
  { id }: UserRecord,
  sortBy: ContactSort,
  order: 'asc' | 'desc',
  page: Page,
): Promise<ContactRecord[]> {
  const { length } = await store.accounts.listByUser(id)
  return store.contacts.list(id, sortBy, order, page, length)
}

/** `name`: id or address of the contact. An unknown one is a 503 while mail of the user is read for the first time. */
export async function findContact(call: Call, userId: string, name: string): Promise<ContactRecord> {
  const user = await findUser(call, userId)
  const id = name.includes('@') ? contactId(user.id, name) : name
  const contact = await call.engine.store.contacts.get(user.id, id)
  if (contact !== null) return contact
  await mailMustBeRead(call, user.id)
  throw notFound('contact', name)
}

/** Throws `account_unavailable` while one of the user's email accounts is read for the first time. */
export async function mailMustBeRead(call: Call, userId: string): Promise<void> {
  for (const account of await call.engine.store.accounts.listByUser(userId)) await mustBeRead(call, account, null)
}

export const contactRoutes = tagged('Contacts', [list, get])
