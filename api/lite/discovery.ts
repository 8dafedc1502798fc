/** /lite/discovery: IMAP settings from an email address. */
import { z } from 'zod'
import { AppError, type DiscoveredSettings } from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { defineRoute, tagged } from '../route.ts'
import { email, flag } from '../values.ts'

const discoveryView = z
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

const discoveryQuery = z.object({
  email: email.meta({ description: 'address of the mailbox', examples: ['anna@example.com'] }),
  list: flag
    .optional()
    .meta({ description: '1 = an array of all settings that were found, best first; 0 = the best alone' }),
})

const path = '/lite/discovery'

const discover = defineRoute(`GET ${path}`, {
  summary: 'Find the IMAP settings of an email address',
  description:
    'Looks in a table of known providers, at what the domain publishes for mail clients, and in DNS. 404 when nothing is known; the ' +
    'mailbox may still be connected with settings of your own. `list=1` answers an array of all that was found, best first.',
  query: discoveryQuery,
  response: z.union([discoveryView, z.array(discoveryView)]),
  async handler({ query }, call) {
    const found = await call.engine.discovery.discover(query.email)
    const views = found.map((settings) => present(settings, query.email, call.baseUrl))
    const [best] = views
    if (best === undefined) throw new AppError('not_found', `email: no IMAP settings are known for ${query.email}`)
    return query.list === true ? views : best
  },
})

function present(settings: DiscoveredSettings, email: string, baseUrl: string): z.input<typeof discoveryView> {
  const { server, username, port, useSsl, oauth } = settings
  return {
    email,
    found: true,
    resource_url: `${baseUrl}${path}?email=${encodeURIComponent(email)}`,
    type: settings.type,
    imap: { server, username, port, use_ssl: useSsl, oauth },
    documentation: settings.documentation.map(({ description, url }) => ({ description, url })),
  }
}

export const discoveryRoutes = tagged('Discovery', [discover])
