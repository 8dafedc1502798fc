/** What the service calls itself. */
import manifest from '../package.json' with { type: 'json' }

export const serviceName = 'Mailroom'
export const serviceVersion = manifest.version
