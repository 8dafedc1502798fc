/** OAuth providers on the wire. */
import { z } from 'zod'
import { providerTypes } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import { choice, lineText } from '../../values.ts'

export const providerView = z
  .object({
    type: z.enum(providerTypes),
    provider_consumer_key: z.string(),
    /** First three characters, `[...]`, last three. */
    provider_consumer_secret: z.string(),
    resource_url: z.string(),
  })
  .meta({ id: 'OAuthProvider', examples: [examples.provider] })

export const createBody = z.object({
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

export const createAnswer = z
  .object({
    success: z.boolean(),
    provider_consumer_key: z.string(),
    resource_url: z.string(),
  })
  .meta({
    examples: [
      {
        success: true,
        provider_consumer_key: examples.provider.provider_consumer_key,
        resource_url: examples.urls.provider,
      },
    ],
  })

export const providerPath = z.object({ key: z.string() })
