/** A mailbox at whose work the process ends: it does not end every start, and the others are served. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'

const good = 'good@mail.example'
const bad = 'bad@mail.example'

suite('an account at whose work the process ends', () => {
  let stage: Stage
  const servers: Record<string, ImapServer> = {}
  const users: Record<string, string> = {}
  let accountId: string
  const heardBefore = new Map<ImapServer, number>()

  before(async () => {
    stage = await openStage()
    for (const email of [good, bad]) {
      const server = await createImapServer({ users: { [email]: {} } })
      server.append(email, 'INBOX', mail({ to: email, subject: 'old' }))
      servers[email] = server
      const callback = { status_callback_url: `${stage.receiver.url}/status` }
      users[email] = await createUser(stage.service, { ...server, password: 'secret' }, email, callback)
      await listed(stage.service, users[email], 'old')
    }
    await createWebhook(stage.service, users[good] ?? '', `${stage.receiver.url}/mail`)
    accountId = await idInLog()
  })
  after(async () => {
    await stage.remove()
    for (const server of Object.values(servers)) await server.close()
  })

  const serverOf = (email: string): ImapServer => {
    const server = servers[email]
    assert(server)
    return server
  }
  const logins = (email: string): number =>
    serverOf(email)
      .log.slice(heardBefore.get(serverOf(email)))
      .filter(({ line }) => /^C: \S+ (?:LOGIN|AUTHENTICATE)/.test(line)).length
  const account = (email: string) => stage.service.ok('GET', `/lite/users/${users[email]}/email_accounts/0`)

  /** The API tells no id of an account; the log names the one whose login fails. */
  async function idInLog(): Promise<string> {
    const server = serverOf(bad)
    const { hooks } = server
    server.hooks = {
      command: ({ name }) => (name === 'AUTHENTICATE' ? { tagged: 'NO [UNAVAILABLE] later' } : undefined),
    }
    server.dropConnections()
    const failed = /"accountId":"([0-9a-f]{24})".*"account attempt failed"/
    const id = await until('the failed login in the log', () => failed.exec(stage.service.log())?.[1])
    server.hooks = hooks
    await until('it is online again', async () => (await account(bad))['status_message'] === null)
    return id
  }

  /** What the thread beside the event loop leaves behind when the process ends at this account's work. */
  async function dieAtWork(): Promise<void> {
    await stage.service.kill9()
    writeFileSync(join(stage.service.dataDir, 'held'), accountId)
    for (const server of Object.values(servers)) heardBefore.set(server, server.log.length)
    await stage.service.start()
  }

  test('once: it is started when the others are online', async () => {
    await dieAtWork()
    await until('its login', () => logins(bad) > 0)
    assert(logins(good) >= 1)
    assert.match(stage.service.log(), new RegExp(`"accountId":"${accountId}","deaths":1`))
    await until('it is online', async () => (await account(bad))['status'] === 'OK')
  })

  test('twice: it is set aside and says so, the others go on, and no later start touches it', async () => {
    await dieAtWork()
    await until('the status callback', () => stage.receiver.accepted().some(({ path }) => path === '/status'))
    for (let start = 0; start < 2; start += 1) {
      const { status, status_message: message } = await account(bad)
      assert.equal(status, 'DISABLED')
      assert.match(String(message), /^set aside: the service ended twice while it read this mailbox\. Edit the account/)
      serverOf(good).append(good, 'INBOX', mail({ to: good, subject: `new ${start}` }))
      await listed(stage.service, users[good] ?? '', `new ${start}`)
      assert.equal(logins(bad), 0)
      await stage.service.kill9()
      await stage.service.start()
    }
  })

  test('whoever asks for it has it back; an orderly end forgets the deaths', async () => {
    const answer = await stage.service.ok('POST', `/lite/users/${users[bad]}/email_accounts/0`, {
      force_status_check: 1,
    })
    assert.equal(answer['status'], 'OK', JSON.stringify(answer) + stage.service.log().slice(-3000))
    await until('it is online', async () => (await account(bad))['status_message'] === null)
    await stage.service.stop()
    await dieAtWork()
    await until('its login', () => logins(bad) > 0)
    assert.equal((await account(bad))['status'], 'OK')
  })
})
