/** /lite/discovery: IMAP settings from an email address. */
import { z } from 'zod'
import { AppError, type DiscoveredSettings } from '../../engine/index.ts'
import * as examples from '../examples.ts'
import { defineRoute, tagged } from '../route.ts'
import { email, flag, optional } from '../values.ts'

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

const discoveryQuery = z.object({
  email: email.meta({ description: 'address of the mailbox', examples: ['anna@example.com'] }),
  list: optional(flag, '1 = an array of all settings that were found, best first; 0 = the best alone'),
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
