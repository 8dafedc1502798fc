/** Developers with their API keys, users, accounts, pending callbacks and brand; and the tokens of the admin API. */
import { z } from 'zod'
import {
  type Authenticated,
  checkScope,
  type DeveloperRecord,
  type Engine,
  isColor,
  logoOrigin,
  type OperatorRecord,
  operatorScopes,
  type Page,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { address, answer, ids, time, view } from '../examples.ts'
import { commaList, documented, filledText, integer, nameText, optional } from '../values.ts'
import { accountRow, presentAccount } from './accounts.ts'
import { adminRoute, count, countBy, developerId, factsById, found, nextView, paging, presentNext } from './shared.ts'

/** A part of the brand. A part that is missing or empty is null. */
function brandPart(expected: string, example: string, isRight: (text: string) => boolean) {
  const problem = { error: `expected ${expected}, or nothing` }
  const schema = nameText.transform((text) => text.trim()).refine((text) => text === '' || isRight(text), problem)
  const part = schema.transform((text) => (text === '' ? null : text)).default(null)
  const wire = { type: 'string', maxLength: 1000, default: '' }
  return documented(part, wire).meta({ description: `${expected}; empty = none`, examples: [example] })
}

export const brandBody = z.object({
  name: brandPart('at most 100 characters', 'Example', (text) => text.length <= 100),
  logo: brandPart(
    'an https:// URL without user and password',
    'https://cdn.example.com/logo.svg',
    (text) => logoOrigin(text) !== null,
  ),
  color: brandPart('a colour such as #2457d6', '#2457d6', isColor),
})

const textOrNull = z.string().nullable()
const brandView = view('AdminBrand', {
  name: [textOrNull, 'Example'],
  logo: [textOrNull, 'https://cdn.example.com/logo.svg'],
  color: [textOrNull, '#2457d6'],
})
const noBrand = { name: null, logo: null, color: null }

const keyFields = {
  id: developerId,
  name: [z.string(), 'Example'],
  api_key: [z.string(), 'k3v9x1m7q2w8e5r4'],
  revoked: [z.int().nullable(), null],
  old_secret_until: [z.int().nullable(), null, 'the secret before is accepted until then'],
  brand: [brandView, noBrand, 'in the connect wizard; null = as the settings of this service have it'],
  created: [z.int(), time],
} as const
const developerFields = { ...keyFields, users: [count, 12], accounts: [count, 14] } as const

export const developerView = view('AdminDeveloper', developerFields)
export type DeveloperRow = z.input<typeof developerView>

const lateView = answer({
  id: [z.string(), ids.webhook, 'of the webhook; u… = status callbacks and notices to a bare URL'],
  callback_url: [z.string().nullable(), 'https://app.example.com/callback'],
  pending: [count, 3],
  oldest: [z.int().nullable(), time, 'the oldest of them is of then'],
  next: [nextView, null],
  message: [z.string().nullable(), 'HTTP 503', 'the last failure'],
})

const developerDetail = view('AdminDeveloperDetail', {
  ...developerFields,
  late: [z.array(lateView), [], 'where callbacks wait, the oldest first, at most a hundred'],
  page: [
    z.array(
      answer({
        id: [z.string(), ids.user],
        email: [z.string().nullable(), address],
        accounts: [z.array(accountRow), []],
      }),
    ),
    [],
    'its users with their email accounts, oldest first, by limit and offset',
  ],
})
export type DeveloperDetail = z.input<typeof developerDetail>

const developerKey = answer({ ...keyFields, api_secret: [z.string(), '8f2k4m6n8p0q2r4s6t8v', 'shown this once'] })

function present({ developers }: Engine, developer: DeveloperRecord) {
  const { id, name = '', brand = noBrand, apiKey, revokedAt, createdAt } = developer
  const old_secret_until = secondsOrNull(developers.replacedUntil(developer))
  const revoked = secondsOrNull(revokedAt)
  return { old_secret_until, id, name, brand, api_key: apiKey, revoked, created: seconds(createdAt) }
}

function presentKey(engine: Engine, { developer, secret }: Authenticated): z.input<typeof developerKey> {
  return { ...present(engine, developer), api_secret: secret }
}

/** `known`: the number of its accounts, when the caller has counted them. */
async function presentDeveloper(engine: Engine, developer: DeveloperRecord, known?: number): Promise<DeveloperRow> {
  const { users, accounts } = engine.store
  const count = known ?? (await accounts.places({ developerId: developer.id })).length
  return { ...present(engine, developer), users: await users.count(developer.id), accounts: count }
}

/** A page of the developers, oldest first. */
export async function listDevelopers(engine: Engine, page: Page): Promise<DeveloperRow[]> {
  const { developers, accounts } = engine.store
  const all = await developers.list(page)
  const counts = countBy(await accounts.places({}), (place) => place.developerId)
  return Promise.all(all.map((developer) => presentDeveloper(engine, developer, counts[developer.id] ?? 0)))
}

/** Throws `not_found` for an unknown id. */
export const findDeveloper = ({ store }: Engine, id: string): Promise<DeveloperRecord> =>
  found('developer', id, store.developers.get(id))

/** A developer in full, with a page of its users. Throws `not_found` for an unknown id. */
export async function developerOf(engine: Engine, id: string, page: Page): Promise<DeveloperDetail> {
  const { store } = engine
  const developer = await findDeveloper(engine, id)
  const users = await store.users.list(id, {}, page)
  const all = await store.accounts.listByUsers(users.map((user) => user.id))
  const owned = Map.groupBy(all, ({ userId }) => userId)
  const accountIds = all.map((account) => account.id)
  const { facts } = await factsById(engine, 'accounts', accountIds)
  return {
    ...(await presentDeveloper(engine, developer)),
    late: await lateOf(engine, id),
    page: users.map((user) => ({
      id: user.id,
      email: user.emailAddresses[0] ?? null,
      accounts: (owned.get(user.id) ?? []).map((account) => presentAccount(account, facts.get(account.id))),
    })),
  }
}

/** Webhooks and bare URLs of a developer with pending callbacks, at most a hundred; the oldest callback comes first. */
async function lateOf(engine: Engine, developer: string): Promise<DeveloperDetail['late']> {
  const { outbox } = engine.store
  const late = await outbox.late(developer, 100)
  const ids = late.map(({ channelId }) => channelId)
  const known = await engine.webhooks.several(ids)
  const { facts } = await factsById(engine, 'webhooks', ids)
  const rows = late.map(async ({ channelId: id, pending, oldestAt }) => {
    const seen = facts.get(id)
    const shown = { next: presentNext(seen), message: seen?.lastError?.message ?? null }
    // A bare URL has no webhook record: its pending callbacks have the URL.
    const callback_url = (known.get(id)?.callbackUrl ?? (await outbox.waiting(id, 1))[0]?.url) || null
    return { id, callback_url, pending, oldest: secondsOrNull(oldestAt), ...shown }
  })
  return Promise.all(rows)
}

/** The route of an action on a developer without further parameters. */
const changing = (
  name: string,
  summary: string,
  change: (of: Engine['developers'], id: string) => Promise<DeveloperRecord>,
) =>
  adminRoute(`POST /admin/developers/{id}/${name}`, {
    ...{ scope: 'keys', summary, response: developerView },
    handler: async ({ path: { id } }, { engine }) => presentDeveloper(engine, await change(engine.developers, id)),
  })

export const developerRoutes = [
  adminRoute('GET /admin/developers', {
    summary: 'List developers with their users and accounts, oldest first',
    query: z.object(paging),
    response: z.array(developerView),
    handler: ({ query }, { engine }) => listDevelopers(engine, query),
  }),
  adminRoute('GET /admin/developers/{id}', {
    summary: 'Get a developer: its users and email accounts, and where its callbacks wait',
    query: z.object(paging),
    response: developerDetail,
    handler: ({ path, query }, { engine }) => developerOf(engine, path.id, query),
  }),
  adminRoute('POST /admin/developers', {
    scope: 'keys',
    summary: 'Make a developer with an API key; its secret is shown this once',
    body: z.object({ name: nameText.meta({ description: 'for operators', examples: ['Example'] }) }),
    response: developerKey,
    async handler({ body }, call) {
      const made = await call.engine.developers.create(body.name)
      call.made(made.developer.id)
      return presentKey(call.engine, made)
    },
  }),
  adminRoute('POST /admin/developers/{id}/rotate', {
    scope: 'keys',
    summary: 'Make a new secret for the API key of a developer; the old one is accepted for a while',
    body: z.object({
      overlap: optional(
        integer(0, 30 * 86_400),
        'seconds, 0 = it is refused at once; not given = MAILROOM_API_SECRET_OVERLAP',
      ),
    }),
    response: developerKey,
    handler: async ({ path, body: { overlap } }, { engine }) =>
      presentKey(engine, await engine.developers.rotate(path.id, overlap === undefined ? undefined : overlap * 1000)),
  }),
  adminRoute('PUT /admin/developers/{id}/brand', {
    scope: 'keys',
    summary: 'Set name, logo and colour that the connect wizard shows for a developer',
    body: brandBody,
    response: developerView,
    handler: async ({ path, body }, { engine }) =>
      presentDeveloper(engine, await engine.developers.setBrand(path.id, body)),
  }),
  changing('end-overlap', 'Refuse the secret that was replaced, at once', (of, id) => of.endReplaced(id)),
  changing('revoke', 'Refuse the API key of a developer; users and mail stay', (of, id) => of.setRevoked(id, true)),
  changing('restore', 'Let the API key of a developer be used again', (of, id) => of.setRevoked(id, false)),
]

const tokenFields = {
  id: [z.string(), '5e8d7c6b5a4938271605f4e3'],
  name: [z.string(), 'grafana'],
  scopes: [z.array(z.enum(operatorScopes)), ['read']],
  created: [z.int(), time],
  revoked: [z.int().nullable(), null],
} as const
export const tokenView = view('AdminToken', tokenFields)
type TokenRow = z.input<typeof tokenView>

function presentToken({ id, name, scopes, createdAt, revokedAt }: OperatorRecord): TokenRow {
  return { id, name, scopes: [...scopes], created: seconds(createdAt), revoked: secondsOrNull(revokedAt) }
}

/** A page of the tokens, oldest first, with the revoked ones. */
export async function listTokens({ operators }: Engine, page: Page): Promise<TokenRow[]> {
  return (await operators.tokens(page)).map(presentToken)
}

export const tokenRoutes = [
  adminRoute('GET /admin/tokens', {
    summary: 'List the tokens of the admin API, revoked ones too, oldest first',
    query: z.object(paging),
    response: z.array(tokenView),
    handler: ({ query }, { engine }) => listTokens(engine, query),
  }),
  adminRoute('POST /admin/tokens', {
    scope: 'keys',
    summary: 'Make a token of the admin API, with scopes of the own token; it is shown this once',
    body: z.object({
      name: filledText.meta({ description: 'what it is for', examples: ['grafana'] }),
      scopes: documented(commaList.pipe(z.array(z.enum(operatorScopes)).min(1)), {
        type: 'string',
        description:
          'comma-separated: `read`, `act` (on accounts, hosts, callbacks), `keys` (of developers, and tokens)',
      }).meta({ examples: ['read,act'] }),
    }),
    response: answer({ ...tokenFields, token: [z.string(), 'mra_5e8d7c6b_x3v9', 'shown this once'] }),
    async handler({ body: { name, scopes } }, call) {
      const { engine } = call
      const maker = await engine.operators.token(call.caller)
      for (const scope of scopes) checkScope(maker, scope)
      const { record, token } = await engine.operators.createToken(name, scopes)
      call.made(record.id)
      return { ...presentToken(record), token }
    },
  }),
  adminRoute('DELETE /admin/tokens/{id}', {
    scope: 'keys',
    summary: 'Revoke a token of the admin API',
    response: tokenView,
    handler: async ({ path }, { engine }) => presentToken(await engine.operators.revokeToken(path.id)),
  }),
]
