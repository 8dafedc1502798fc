/** The search over accounts, users, developers, webhooks, callbacks and messages. */
import { z } from 'zod'
import { find, foundKinds } from '../../engine/index.ts'
import { address, answer, exampleOf, view } from '../examples.ts'
import { filledText } from '../values.ts'
import { adminRoute } from './shared.ts'

const foundView = view('AdminFound', {
  kind: [z.enum(foundKinds), 'account'],
  id: [z.string(), '7c9e6679f81d4b1c8a2e3d4f'],
  name: [z.string(), address, 'address, name, URL, event or subject'],
  detail: [z.string(), 'imap.example.com', 'mail server, addresses, API key, state, or the mailbox of a message'],
  exact: [z.boolean(), true, 'it is what was asked for; false = only like it'],
  account_id: [z.string().nullable(), null, 'of a message or callback: id of its email account'],
})

const words = 'email address, message id, Message-ID, callback id, webhook id or URL, user or developer (id or name)'

export const searchQuery = z.object({ q: filledText.meta({ description: words, examples: ['anna@'] }) })

export const searchRoute = adminRoute('GET /admin/search', {
  summary: 'Find accounts, users, developers, webhooks, callbacks and messages',
  description:
    'By a whole id, Message-ID or URL, or by a part of an address, a name or a URL; of each kind at most 20, and how many more of ' +
    'the 200 that are looked at.',
  query: searchQuery,
  response: answer({
    found: [z.array(foundView), [exampleOf(foundView)]],
    more: [z.partialRecord(z.enum(foundKinds), z.int()), { webhook: 12 }, 'by kind: others that match'],
  }),
  handler: async ({ query }, { engine }) => {
    const kinds = await find(engine, query.q)
    const found = kinds.flatMap((kind) => kind.found)
    return {
      found: found.map(({ accountId, ...one }) => ({ ...one, account_id: accountId })),
      more: Object.fromEntries(kinds.flatMap(({ kind, more }) => (more === 0 ? [] : [[kind, more]]))),
    }
  },
})
