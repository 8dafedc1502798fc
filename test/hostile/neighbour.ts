/** A second developer of the same service, who does nothing wrong. */
import { createClient, type Client, type Service } from '../support/service.ts'

const neighbourKey = 'neighbour-key'
const neighbourSecret = 'neighbour-secret-0123456789'

/** Restarts the service; the first developer's key goes on to be good. */
export async function neighbourOf(service: Service): Promise<Client> {
  await service.stop()
  await service.start({ MAILROOM_API_KEY: neighbourKey, MAILROOM_API_SECRET: neighbourSecret })
  return createClient(() => service.url, `${neighbourKey}:${neighbourSecret}`)
}
