/** OAuth providers on the wire. */
import { z } from 'zod'
import { providerTypes } from '../../../engine/index.ts'
import { lineText } from '../../values.ts'

export const providerView = z
  .object({
    type: z.enum(providerTypes),
    provider_consumer_key: z.string(),
    /** First three characters, `[...]`, last three. */
    provider_consumer_secret: z.string(),
    resource_url: z.string(),
  })
  .meta({ id: 'OAuthProvider' })

export const createBody = z.object({
  type: z.enum(providerTypes, { error: `expected ${providerTypes.join(', ')}` }),
  provider_consumer_key: lineText,
  provider_consumer_secret: lineText,
})

export const createAnswer = z.object({
  success: z.boolean(),
  provider_consumer_key: z.string(),
  resource_url: z.string(),
})

export const providerPath = z.object({ key: z.string() })
