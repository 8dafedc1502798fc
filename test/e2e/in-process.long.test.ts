/** End to end on the IMAP server of test/support: runs wherever Node does. */
import { createImapServer, fullCapabilities } from '../support/imap-server/index.ts'
import { promisesOn } from './promises.ts'
import type { TestMailServer } from './stage.ts'

async function startInProcess(capabilities: readonly string[]): Promise<TestMailServer> {
  const password = 'correct-horse'
  const known = new Set<string>()
  const server = await createImapServer({ users: {}, capabilities })
  return {
    host: server.host,
    port: server.port,
    password,
    append(user, folder, raw) {
      if (!known.has(user)) server.addUser(user, { password })
      known.add(user)
      server.append(user, folder, raw)
      return Promise.resolve()
    },
    // Away, but with its mail kept: whoever comes is told BYE.
    stop() {
      server.hooks = { greeting: () => '* BYE closed for a while' }
      server.dropConnections()
      return Promise.resolve()
    },
    start() {
      server.hooks = {}
      return Promise.resolve()
    },
    remove: () => server.close(),
  }
}

promisesOn('the server in this process', {}, () => startInProcess(fullCapabilities))
