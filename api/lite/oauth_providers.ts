/** /lite/oauth_providers: consumer keys of the developer's own OAuth applications. */
import { z } from 'zod'
import { abbreviated, notFound, type OAuthProviderRecord, providerTypes } from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { defineRoute, tagged } from '../route.ts'
import { choice, lineText, success } from '../values.ts'
import { liteUrls } from '../addresses.ts'

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

const createAnswer = examples.answer({
  success: [z.boolean(), true],
  provider_consumer_key: [z.string(), 'my-consumer-key'],
  resource_url: [z.string(), examples.urls.provider],
})

const base = '/lite/oauth_providers'

function present(provider: OAuthProviderRecord, baseUrl: string): z.input<typeof providerView> {
  return {
    type: provider.type as z.input<typeof providerView>['type'],
    provider_consumer_key: provider.consumerKey,
    provider_consumer_secret: provider.shownSecret,
    resource_url: liteUrls(baseUrl).provider(provider.consumerKey),
  }
}

const list = defineRoute(`GET ${base}`, {
  summary: 'List the OAuth providers of the API key',
  response: z.array(providerView),
  async handler(_input, call) {
    const providers = await call.engine.store.providers.list(call.developer.id)
    return providers.map((provider) => present(provider, call.baseUrl))
  },
})

const create = defineRoute(`POST ${base}`, {
  summary: 'Register an OAuth provider, or replace its secret',
  description: 'The secret is kept sealed and shown abbreviated. The same consumer key again replaces type and secret.',
  body: createBody,
  response: createAnswer,
  async handler({ body }, { engine, developer, baseUrl }) {
    const { provider_consumer_key: consumerKey, provider_consumer_secret: secret } = body
    await engine.store.providers.put({
      developerId: developer.id,
      consumerKey,
      sealedSecret: engine.sealer.seal(secret, `${developer.id}:${consumerKey}`),
      shownSecret: abbreviated(secret),
      type: body.type,
      createdAt: Date.now(),
    })
    return {
      success: true,
      provider_consumer_key: consumerKey,
      resource_url: liteUrls(baseUrl).provider(consumerKey),
    }
  },
})

const get = defineRoute(`GET ${base}/{key}`, {
  summary: 'Get an OAuth provider by its consumer key',
  response: providerView,
  async handler({ path }, call) {
    const provider = await call.engine.store.providers.get(call.developer.id, path.key)
    if (provider === null) throw notFound('provider', path.key)
    return present(provider, call.baseUrl)
  },
})

const remove = defineRoute(`DELETE ${base}/{key}`, {
  summary: 'Remove an OAuth provider',
  description: 'Email accounts that use it cannot get access tokens any more and become DISABLED.',
  response: success,
  async handler({ path }, call) {
    if (!(await call.engine.store.providers.remove(call.developer.id, path.key))) throw notFound('provider', path.key)
    return { success: true }
  },
})

export const oauthProviderRoutes = tagged('OAuth providers', [list, create, get, remove])
