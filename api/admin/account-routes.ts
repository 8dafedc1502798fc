/** /admin/overview and /admin/accounts. */
import { z } from 'zod'
import { failureClasses } from '../../engine/index.ts'
import { defineRoute, tagged } from '../route.ts'
import { accountStatus, choice, filledText, integer, limitOf, offset, optional } from '../values.ts'
import { accountDetail, findAccount, listAccounts } from './accounts.ts'
import { explainAccount } from './explain.ts'
import { adminOverview } from './overview.ts'
import * as views from './views.ts'

const overview = defineRoute('GET /admin/overview', {
  auth: 'operator',
  summary: 'How the installation is, and what in it needs a person',
  response: views.overviewView,
  handler: (_input, { engine }) => adminOverview(engine),
})

const accountQuery = z.object({
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

export const accountRoutes = tagged('Admin', [overview, list, get, explain])
