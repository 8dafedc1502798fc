/**
 * Mail providers, in lite and 2.0: finds the IMAP settings of an email address (discovery), and keeps the developer's
 * OAuth applications (oauth_providers).
 */
import { z } from 'zod'
import {
  abbreviated,
  AppError,
  checkLimit,
  type DiscoveredSettings,
  notFound,
  type OAuthProviderRecord,
  providerTypes,
} from '../../engine/index.ts'
import { type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { deprecated, type Route, routesAt, tagged } from '../route.ts'
import { choice, email, flag, limitOfWhole, lineText, offset, optional, success } from '../values.ts'

const discoveryView = examples.view('Discovery', {
  email: [z.string(), examples.address],
  found: [z.literal(true), true],
  resource_url: [z.string(), 'https://mail.example.com/lite/discovery?email=anna%40example.com'],
  type: [z.string(), 'generic'],
  imap: examples.answer({
    server: [z.string(), 'imap.example.com'],
    username: [z.string(), examples.address],
    port: [z.int().min(1).max(65_535), 993],
    use_ssl: [z.boolean(), true],
    oauth: [z.boolean(), false],
  }),
  documentation: [
    z.array(z.object({ description: z.string(), url: z.string() })),
    [{ description: 'Set up your mail program', url: 'https://help.example.com/imap' }],
    'pages of the provider about its settings',
  ],
})

const discovery = routesAt('GET', ['/lite/discovery', '/2.0/discovery'], '', {
  summary: 'Find the IMAP settings of an email address',
  description:
    'Looks in a table of known providers, at what the domain publishes for mail clients, and in DNS; then at the usual hosts of the domain. ' +
    '404 when nothing is known; the ' +
    'mailbox may still be connected with settings of your own. 503 when that is because a name server did not say. `list=1` answers an array of all that was found, best first.',
  query: z.object({
    email: email.meta({ description: 'address of the mailbox', examples: ['anna@example.com'] }),
    list: optional(flag, '1 = an array of all settings that were found, best first; 0 = the best alone'),
  }),
  response: z.union([discoveryView, z.array(discoveryView)]),
  async handler({ query }, call) {
    const found = await call.engine.discovery.discover(query.email)
    const views = found.map((settings) =>
      presentSettings(settings, query.email, `${call.baseUrl}/${call.version}/discovery`),
    )
    const [best] = views
    if (best === undefined) throw new AppError('not_found', `email: no IMAP settings are known for ${query.email}`)
    return query.list === true ? views : best
  },
})

function presentSettings(settings: DiscoveredSettings, email: string, url: string): z.input<typeof discoveryView> {
  const { server, username, port, useSsl, oauth } = settings
  return {
    email,
    found: true,
    resource_url: `${url}?email=${encodeURIComponent(email)}`,
    type: settings.type,
    imap: { server, username, port, use_ssl: useSsl, oauth },
    documentation: settings.documentation.map(({ description, url }) => ({ description, url })),
  }
}

const providerView = examples.view('OAuthProvider', {
  type: [z.enum(providerTypes), 'GMAIL_OAUTH2'],
  provider_consumer_key: [z.string(), 'my-consumer-key'],
  /** First three characters, `[...]`, last three. */
  provider_consumer_secret: [z.string(), 'my-[...]ret'],
  resource_url: [z.string(), examples.urls.provider],
})

const createBody = z.object({
  type: choice(providerTypes).meta({
    description:
      '`GMAIL_OAUTH2`, `GMAIL` and `PROVIDER_A_OAUTH2` are the same provider, `MSLIVECONNECT` and `PROVIDER_B_CONNECT` too. ' +
      'The provider is answered under the name that was registered, in capitals',
    examples: ['GMAIL_OAUTH2'],
  }),
  provider_consumer_key: lineText.meta({
    description: 'client id of your application at the provider; email accounts name it by this key',
    examples: ['my-consumer-key'],
  }),
  provider_consumer_secret: lineText.meta({
    description: 'client secret of your application at the provider',
    examples: ['my-consumer-secret'],
  }),
})

const lite = '/lite/oauth_providers'
/** 2.0 also has the path in the singular. */
const bases = [lite, '/2.0/oauth_providers', '/2.0/oauth_provider'] as const

function present(provider: OAuthProviderRecord, urls: Urls): z.input<typeof providerView> {
  return {
    type: provider.type as z.input<typeof providerView>['type'],
    provider_consumer_key: provider.consumerKey,
    provider_consumer_secret: provider.shownSecret,
    resource_url: urls.provider(provider.consumerKey),
  }
}

const list = routesAt('GET', bases, '', {
  summary: 'List the OAuth providers of the API key',
  query: z.object({ limit: limitOfWhole, offset }),
  response: z.array(providerView),
  async handler({ query }, call) {
    const { limit, offset } = query
    const providers = await call.engine.store.providers.list(call.developer.id)
    return providers.slice(offset, offset + limit).map((provider) => present(provider, urlsOf(call)))
  },
})

const create = routesAt('POST', bases, '', {
  summary: 'Register an OAuth provider, or replace its secret',
  description: 'The secret is kept sealed and shown abbreviated. The same consumer key again replaces type and secret.',
  body: createBody,
  response: examples.answer({
    success: [z.boolean(), true],
    provider_consumer_key: [z.string(), 'my-consumer-key'],
    resource_url: [z.string(), examples.urls.provider],
  }),
  async handler({ body }, call) {
    const { developer } = call
    const { config, store, sealer } = call.engine
    const { provider_consumer_key: consumerKey, provider_consumer_secret: secret } = body
    const others = (await store.providers.list(developer.id)).filter((one) => one.consumerKey !== consumerKey)
    checkLimit(config, 'MAILROOM_PROVIDERS_PER_DEVELOPER', 'OAuth providers of one developer', others.length)
    await store.providers.put({
      developerId: developer.id,
      consumerKey,
      sealedSecret: sealer.seal(secret, `${developer.id}:${consumerKey}`),
      shownSecret: abbreviated(secret),
      type: body.type,
      createdAt: Date.now(),
    })
    return { success: true, provider_consumer_key: consumerKey, resource_url: urlsOf(call).provider(consumerKey) }
  },
})

const get = routesAt('GET', bases, '/{key}', {
  summary: 'Get an OAuth provider by its consumer key',
  response: providerView,
  async handler({ path }, call) {
    const provider = await call.engine.store.providers.get(call.developer.id, path.key)
    if (provider === null) throw notFound('provider', path.key)
    return present(provider, urlsOf(call))
  },
})

const remove = routesAt('DELETE', bases, '/{key}', {
  summary: 'Remove an OAuth provider',
  description: 'Email accounts that use it cannot get access tokens any more and become DISABLED.',
  response: success,
  async handler({ path }, call) {
    if (!(await call.engine.store.providers.remove(call.developer.id, path.key))) throw notFound('provider', path.key)
    return { success: true }
  },
})

const providers = [list, create, get, remove].flat()
const isLite = ({ path }: Route): boolean => path.startsWith('/lite')
const isV2 = (route: Route): boolean => !isLite(route)
const replaced = (route: Route): Route => ({
  ...route,
  instead: `${route.method} ${route.path.replace(/^.*_providers?/, lite)}`,
})

export const providerRoutes = [
  ...tagged('Discovery', discovery.filter(isLite)),
  ...tagged('OAuth providers', providers.filter(isLite)),
]

export const v2ProviderRoutes = [
  ...deprecated('discovery', discovery.filter(isV2)),
  ...deprecated('OAuth providers', providers.filter(isV2).map(replaced)),
]
