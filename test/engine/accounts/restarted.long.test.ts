/** A mail server that comes back with another UIDVALIDITY: new mail is told soon, and what was there before is not. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createImapServer, fullCapabilities, plainCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { fill, letter } from './stage.ts'
import { watchingAccounts } from './running.ts'

/** As they are where nobody sets them. */
const settings = {
  MAILROOM_FOLDER_POLL: '45s',
  MAILROOM_FOLDER_POLL_COLD: '5m',
  MAILROOM_FOLDER_LIST: '10m',
  MAILROOM_GONE_HOLD: '90s',
  MAILROOM_BACKOFF_FIRST: '1s',
  MAILROOM_BACKOFF_MAX: '5m',
}
const awayMs = 2000

suite('restarted', { concurrency: true }, () => {
  for (const [name, capabilities] of [
    ['of today', fullCapabilities],
    ['plain', plainCapabilities],
  ] as const) {
    for (const [when, step] of [
      ['before we are back', 1],
      ['while we watch again', -1],
    ] as const) {
      test(`a server that is ${name}: mail that comes ${when} is told within 30 s`, async (t) => {
        const running = await watchingAccounts(t, { capabilities, settings }, ({ server }) => {
          fill(server, 'INBOX', 5)
          server.folder('ann', 'INBOX').uidValidity = 1000
        })
        const { uidValidity, messages } = running.server.folder('ann', 'INBOX')
        await running.server.close()
        await new Promise((resolve) => setTimeout(resolve, awayMs))
        const server = await createImapServer({ users: { ann: {} }, capabilities, port: running.server.port })
        t.after(() => server.close())
        server.folder('ann', 'INBOX').uidValidity = uidValidity + step
        // It has lost some of the mail.
        for (const { raw, internalDate } of messages.slice(0, 3))
          server.append('ann', 'INBOX', raw, [], new Date(internalDate))
        const isBack = () => server.connections.some(({ folder }) => folder === 'INBOX')
        if (step < 0) await until('back', isBack, { withinMs: 20_000 })
        server.append('ann', 'INBOX', letter('new'))
        const isTold = async () => (await running.story()).includes('received new INBOX')
        await until('told', isTold, { withinMs: 30_000 })
        assert.deepEqual(await running.story(), ['received new INBOX'])
      })
    }
  }
})
