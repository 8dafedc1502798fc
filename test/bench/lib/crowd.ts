/** A process of its own: the scripted mail server with `u0@bench.example` to as many as the first argument says. */
import { createImapServer, fullCapabilities } from '../../support/imap-server/index.ts'
import { benchMail } from './mail.ts'

const names = Array.from({ length: Number(process.argv[2]) }, (_, index) => `u${index}@bench.example`)
const [first = ''] = names
const server = await createImapServer({
  users: Object.fromEntries(names.map((name) => [name, { password: 'secret' }])),
  capabilities: [...fullCapabilities, 'NOTIFY'],
})
for (const name of names) server.append(name, 'INBOX', benchMail(`old-${name}`, name))
// A host is trusted to push to IDLE once it has pushed: until then each INBOX is asked every ten seconds.
setInterval(() => server.append(first, 'INBOX', benchMail('push', first)), 5000)
process.on('disconnect', () => process.exit())
process.send?.({ host: server.host, port: server.port, password: 'secret' })
