/** /admin/hosts, /admin/developers and /admin/tokens. */
import { z } from 'zod'
import { operatorScopes } from '../../engine/index.ts'
import { defineRoute, tagged } from '../route.ts'
import { commaList, documented, filledText, integer, limitOf, nameText, offset } from '../values.ts'
import { adminHosts, setHostPace } from './hosts.ts'
import * as keys from './keys.ts'
import * as views from './views.ts'

const reading = { auth: 'operator', scope: 'read' } as const
const changing = { auth: 'operator', scope: 'keys' } as const

const hosts = defineRoute('GET /admin/hosts', {
  ...reading,
  summary: 'List mail servers: accounts by state, and the logins of the last minute',
  response: z.array(views.hostView),
  handler: (_input, { engine }) => adminHosts(engine),
})

const mostPace = 6000
const problem = `expected a whole number from 0 to ${mostPace}, or nothing`
const pace = documented(z.union([z.literal('').transform(() => null), z.null(), integer(0, mostPace)], problem), {
  type: 'integer',
  minimum: 0,
  maximum: mostPace,
  description: 'logins a minute at most; 0 = none, empty = as configured. Until the service is started again',
})

const setPace = defineRoute('PUT /admin/hosts/{host}', {
  auth: 'operator',
  scope: 'act',
  summary: 'Slow down or stop the logins at a mail server, or free them',
  body: z.object({ pace }),
  response: views.hostView,
  handler: ({ path, body }, { engine }) => setHostPace(engine, path.host, body.pace),
})

const developers = defineRoute('GET /admin/developers', {
  ...reading,
  summary: 'List developers with their users and accounts, oldest first',
  query: z.object({ limit: limitOf(50, 200), offset }),
  response: z.array(views.developerView),
  handler: ({ query }, { engine }) => keys.listDevelopers(engine, query),
})

const newDeveloper = defineRoute('POST /admin/developers', {
  ...changing,
  summary: 'Make a developer with an API key; its secret is shown this once',
  body: z.object({ name: nameText.meta({ description: 'for operators', examples: ['Example'] }) }),
  response: views.developerKey,
  handler: ({ body }, { engine }) => keys.createDeveloper(engine, body.name),
})

const rotate = defineRoute('POST /admin/developers/{id}/rotate', {
  ...changing,
  summary: 'Make a new secret for the API key of a developer; the old one is refused at once',
  response: views.developerKey,
  handler: ({ path }, { engine }) => keys.rotateDeveloper(engine, path.id),
})

const revoke = defineRoute('POST /admin/developers/{id}/revoke', {
  ...changing,
  summary: 'Refuse the API key of a developer; users and mail stay',
  response: views.developerView,
  handler: ({ path }, { engine }) => keys.setDeveloperRevoked(engine, path.id, true),
})

const restore = defineRoute('POST /admin/developers/{id}/restore', {
  ...changing,
  summary: 'Let the API key of a developer be used again',
  response: views.developerView,
  handler: ({ path }, { engine }) => keys.setDeveloperRevoked(engine, path.id, false),
})

const tokens = defineRoute('GET /admin/tokens', {
  ...reading,
  summary: 'List the tokens of the admin API, revoked ones too',
  response: z.array(views.tokenView),
  handler: (_input, { engine }) => keys.listTokens(engine),
})

const newToken = defineRoute('POST /admin/tokens', {
  ...changing,
  summary: 'Make a token of the admin API; it is shown this once',
  body: z.object({
    name: filledText.meta({ description: 'what it is for', examples: ['grafana'] }),
    scopes: documented(commaList.pipe(z.array(z.enum(operatorScopes)).min(1)), {
      type: 'string',
      description: 'comma-separated: `read`, `act` (on accounts, hosts, callbacks), `keys` (of developers, and tokens)',
    }).meta({ examples: ['read,act'] }),
  }),
  response: views.tokenMade,
  handler: ({ body }, { engine }) => keys.createToken(engine, body.name, body.scopes),
})

const noToken = defineRoute('DELETE /admin/tokens/{id}', {
  ...changing,
  summary: 'Revoke a token of the admin API',
  response: views.tokenView,
  handler: ({ path }, { engine }) => keys.revokeToken(engine, path.id),
})

export const keyRoutes = tagged('Admin', [
  ...[hosts, setPace],
  ...[developers, newDeveloper, rotate, revoke, restore],
  ...[tokens, newToken, noToken],
])
