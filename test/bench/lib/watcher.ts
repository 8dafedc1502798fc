/** The floor of a latency: a bare imapflow connection in IDLE that hears of new mail and does nothing else. */
import { ImapFlow } from 'imapflow'
import type { Dovecot } from '../../support/dovecot.ts'

export interface BareWatcher {
  /** Messages in INBOX as last heard. */
  readonly exists: number
  /** Called with the number of messages in INBOX as soon as the server says it. */
  onExists(listener: (count: number, at: number) => void): void
  close(): Promise<void>
}

export async function watchBare(dovecot: Dovecot, user: string): Promise<BareWatcher> {
  const auth = { user, pass: dovecot.password }
  const client = new ImapFlow({ host: dovecot.host, port: dovecot.port, secure: false, auth, logger: false })
  let exists = 0
  let closing = false
  let listener: (count: number, at: number) => void = () => undefined
  client.on('error', () => undefined)
  client.on('exists', (event: { count: number }) => {
    const at = performance.now()
    exists = event.count
    listener(exists, at)
  })
  await client.connect()
  exists = (await client.mailboxOpen('INBOX', { readOnly: true })).exists
  const idle = async (): Promise<void> => {
    while (!closing && client.usable) await client.idle()
  }
  const idling = idle()
  return {
    get exists() {
      return exists
    },
    onExists: (next) => (listener = next),
    async close() {
      closing = true
      client.close()
      await idling.catch(() => undefined)
    },
  }
}
