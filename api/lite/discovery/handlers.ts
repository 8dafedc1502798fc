/** /lite/discovery: IMAP settings from an email address. */
import { z } from 'zod'
import { AppError, type DiscoveredSettings } from '../../../engine/index.ts'
import { defineRoute, type Route } from '../../route.ts'
import { discoveryQuery, discoveryView } from './schema.ts'

const path = '/lite/discovery'

const discover = defineRoute({
  method: 'GET',
  path,
  auth: 'developer',
  tag: 'Discovery',
  summary: 'Find the IMAP settings of an email address',
  description:
    'Looks in a table of known providers, at what the domain publishes for mail clients, and in DNS. 404 when nothing is known; the ' +
    'mailbox may still be connected with settings of your own. `list=1` answers an array of all that was found, best first.',
  request: { query: discoveryQuery },
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

export const discoveryRoutes: readonly Route[] = [discover]
