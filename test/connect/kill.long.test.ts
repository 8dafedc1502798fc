/**
 * kill -9 while a mailbox is being stored: afterwards the token is used and the account is there, or neither, and then
 * the link works again.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createImapServer } from '../support/imap-server/index.ts'
import { startService } from '../support/service.ts'
import { createVisitor, type Visitor } from './visitor.ts'

const callback_url = 'https://app.example.com/done'

suite('kill -9 while the wizard stores a mailbox', { timeout: 300_000 }, () => {
  test('leaves no used token without its account, and no account without a used token', async (t) => {
    const imap = await createImapServer({ users: {} })
    t.after(() => imap.close())
    const service = await startService({ env: { MAILROOM_RATE_CONNECT_PER_MINUTE: '0' } })
    t.after(() => service.remove())
    const token = async (email: string): Promise<string> => {
      imap.addUser(email, { password: 'secret' })
      return String((await service.ok('POST', '/lite/connect_tokens', { callback_url, email }))['token'])
    }
    const login = async (visitor: Visitor, of: string, email: string) => {
      await visitor.open(`/connect/${of}`)
      const values = { password: 'secret', server: imap.host, port: String(imap.port), security: 'starttls' }
      return visitor.send(`/connect/${of}/login`, { ...values, username: email })
    }
    const outcomes = new Set<boolean>()
    // What is written after the last answer of the mail server takes a few milliseconds: each round a later moment.
    for (let round = 0; round < 12; round += 1) {
      const email = `round${round}@mail.example`
      const of = await token(email)
      const listed = Promise.withResolvers<undefined>()
      imap.hooks = {
        send: (response, call) => {
          if (call?.name === 'LIST' && /^\w+ OK/.test(response.toString('latin1'))) listed.resolve(undefined)
          return response
        },
      }
      await login(createVisitor(service.url), of, email)
      await listed.promise
      imap.hooks = {}
      if (round > 0) await new Promise((resolve) => setTimeout(resolve, round * 3))
      await service.kill9()
      await service.start()
      const view = await service.ok('GET', `/lite/connect_tokens/${of}`)
      const users = await service.list(`/lite/users?email=${email}`)
      const isUsed = view['expires'] === false
      assert.equal(users.length, isUsed ? 1 : 0, JSON.stringify({ round, view, users }))
      outcomes.add(isUsed)
      if (isUsed) assert.equal((view['user'] as { id: string }).id, users[0]?.['id'])
      else {
        const visitor = createVisitor(service.url)
        await login(visitor, of, email)
        assert.match((await visitor.open(`/connect/${of}/connecting`)).text, /Your mailbox is connected/)
        assert.equal((await service.list(`/lite/users?email=${email}`)).length, 1)
      }
    }
    t.diagnostic(`seen: ${[...outcomes].map((used) => (used ? 'used' : 'not used')).join(', ')}`)
  })
})
