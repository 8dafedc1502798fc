/** A folder that is removed when it was read last. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill } from './stage.ts'
import { watchingAccounts } from './running.ts'

for (const [name, capabilities] of [
  ['LIST-STATUS', fullCapabilities],
  ['STATUS', fullCapabilities.filter((capability) => capability !== 'LIST-STATUS')],
] as const) {
  test(`the session that read it goes on, where ${name} gives counts`, async (t) => {
    const running = await watchingAccounts(t, { capabilities }, ({ server }) => fill(server, 'Archive', 2))
    const { server, accounts } = running
    // As Dovecot does it.
    server.hooks = {
      command: ({ name, folder }) => (name === 'NOOP' && folder?.name === 'Archive' ? { close: 'reset' } : undefined),
    }
    await accounts.syncFolder(accountId, 'Archive')
    server.deleteFolder('ann', 'Archive')
    const listed = await accounts.refreshFolders(accountId)
    assert(!listed.some(({ path }) => path === 'Archive'))
    await until('told', async () => (await running.story()).length === 2)
    assert.equal(new Set(server.log.map(({ connection }) => connection)).size, 1)
  })
}
