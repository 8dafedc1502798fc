/** A second developer of the same service, who does nothing wrong. */
import { createClient, type Client, type Service } from '../support/service.ts'

const key = 'neighbour-key'
const secret = 'neighbour-secret-0123456789'

/** Restarts the service; the first developer's key goes on to be good. */
export async function neighbourOf(service: Service): Promise<Client> {
  await service.stop()
  await service.start({ MAILROOM_API_KEY: key, MAILROOM_API_SECRET: secret })
  return createClient(() => service.url, `${key}:${secret}`)
}
