/** /admin/overview and /admin/accounts. */
import { z } from 'zod'
import { failureClasses } from '../../engine/index.ts'
import { defineRoute, tagged } from '../route.ts'
import { accountStatus, choice, filledText, integer, limitOf, offset, optional } from '../values.ts'
import * as actions from './account-actions.ts'
import { accountDetail, findAccount, listAccounts } from './accounts.ts'
import { accountEvents } from './events.ts'
import { explainAccount } from './explain.ts'
import { adminOverview } from './overview.ts'
import * as views from './views.ts'

const overview = defineRoute('GET /admin/overview', {
  auth: 'operator',
  summary: 'How the installation is, and what in it needs a person',
  response: views.overviewView,
  handler: (_input, { engine }) => adminOverview(engine),
})

export const accountQuery = z.object({
  state: optional(filledText, 'only accounts whose actor does this', 'waiting'),
  status: optional(accountStatus, 'only accounts of this status'),
  host: optional(filledText, 'only accounts at this mail server'),
  developer: optional(filledText, 'only accounts of this developer, by id', '4a1b2c3d4e5f60718293a4b5'),
  user: optional(filledText, 'only accounts of this user, by id'),
  failure: optional(choice(failureClasses), 'only accounts whose last failure is of this class'),
  older_than: optional(integer(0), 'only accounts that are in their state for at least so many seconds', 600),
  q: optional(filledText, 'part of the email address, or a whole id or label', 'anna@'),
  limit: limitOf(50, 200),
  offset,
})

const list = defineRoute('GET /admin/accounts', {
  auth: 'operator',
  summary: 'List email accounts, those first that are in their state for longest',
  query: accountQuery,
  response: views.accountList,
  handler: ({ query }, { engine }) => listAccounts(engine, query),
})

const get = defineRoute('GET /admin/accounts/{id}', {
  auth: 'operator',
  summary: 'Get an email account: states, steps, the last lines of its connections, folders, queues',
  response: views.accountView,
  handler: ({ path }, { engine }) => accountDetail(engine, path.id),
})

const explain = defineRoute('GET /admin/accounts/{id}/explain', {
  auth: 'operator',
  summary: 'Why an email account is in its state, since when, and what would change it',
  response: views.explanationView,
  handler: async ({ path }, { engine }) =>
    explainAccount(await findAccount(engine, path.id), engine.accounts.view(path.id)),
})

const events = defineRoute('GET /admin/accounts/{id}/events', {
  auth: 'operator',
  summary: 'Watch an email account: each step and each line of its connections, as server-sent events',
  description: '`step` has a step as GET /admin/accounts/{id} shows it, `line` a text. It does not end by itself.',
  response: 'events',
  async handler({ path }, { engine, signal }) {
    await findAccount(engine, path.id)
    return accountEvents(engine, path.id, signal)
  },
})

const acting = { auth: 'operator', scope: 'act', response: views.accountRow } as const

const reconnect = defineRoute('POST /admin/accounts/{id}/reconnect', {
  ...acting,
  summary: 'Give up the session and any wait of an email account, and connect now',
  errors: [409],
  handler: ({ path }, { engine }) => actions.reconnectAccount(engine, path.id),
})

const pause = defineRoute('POST /admin/accounts/{id}/pause', {
  ...acting,
  summary: 'Close the connections of an email account until it is resumed, over restarts too',
  handler: ({ path }, { engine }) => actions.pauseAccount(engine, path.id),
})

const resume = defineRoute('POST /admin/accounts/{id}/resume', {
  ...acting,
  summary: 'End the pause of an email account',
  handler: ({ path }, { engine }) => actions.resumeAccount(engine, path.id),
})

const check = defineRoute('POST /admin/accounts/{id}/check', {
  auth: 'operator',
  scope: 'act',
  summary: 'Try the login of an email account now, beside its own; a rejection makes it DISABLED',
  response: views.checkView,
  handler: ({ path }, { engine }) => actions.checkAccount(engine, path.id),
})

const readAnew = defineRoute('POST /admin/accounts/{id}/read-anew', {
  ...acting,
  summary: 'Compare a folder with the mail server from end to end, and read what is missing',
  body: z.object({ folder: filledText.meta({ description: 'name of the folder', examples: ['INBOX'] }) }),
  handler: ({ path, body }, { engine }) => actions.readFolderAnew(engine, path.id, body.folder),
})

export const accountRoutes = tagged('Admin', [
  ...[overview, list, get, explain, events],
  ...[reconnect, pause, resume, check, readAnew],
])
