/** Discovery on the wire. */
import { z } from 'zod'
import { email, flag } from '../../values.ts'

export const discoveryView = z
  .object({
    email: z.string(),
    found: z.literal(true),
    resource_url: z.string(),
    type: z.string(),
    imap: z.object({
      server: z.string(),
      username: z.string(),
      port: z.int(),
      use_ssl: z.boolean(),
      oauth: z.boolean(),
    }),
    documentation: z.array(z.string()),
  })
  .meta({ id: 'Discovery' })

export const discoveryQuery = z.object({ email, list: flag.optional() })
