/** Discovery on the wire. */
import { z } from 'zod'
import * as examples from '../../examples.ts'
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
      port: z.int().min(1).max(65_535),
      use_ssl: z.boolean(),
      oauth: z.boolean(),
    }),
    documentation: z
      .array(z.object({ description: z.string(), url: z.string() }))
      .meta({ description: 'pages of the provider about its settings' }),
  })
  .meta({ id: 'Discovery', examples: [examples.discovery] })

export const discoveryQuery = z.object({
  email: email.meta({ description: 'address of the mailbox', examples: ['anna@example.com'] }),
  list: flag
    .optional()
    .meta({ description: '1 = an array of all settings that were found, best first; 0 = the best alone' }),
})
