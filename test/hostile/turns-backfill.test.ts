/** Mailboxes that give their old mail a few bytes a second: they hold up no other developer's old mail, and no other mailbox's for long. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import type { Client } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser } from '../support/users.ts'
import { assertShort, beside } from './bystanders.ts'
import { neighbourOf } from './neighbour.ts'

const slow = ['s1', 's2', 's3', 's4'].map((name) => `${name}@mail.example`)
const others = ['fifth@mail.example', 'bob@mail.example']
const count = 10
const password = 'secret'

suite('old mail that comes a few bytes a second', () => {
  let stage: Stage
  let server: ImapServer
  let bob: Client
  let dripping: NodeJS.Timeout
  let stuck = 0
  before(async () => {
    stage = await openStage()
    bob = await neighbourOf(stage.service)
    server = await createImapServer({ users: Object.fromEntries([...slow, ...others].map((name) => [name, {}])) })
    for (const email of [...slow, ...others]) {
      for (let n = 1; n <= count; n += 1) server.append(email, 'Archive', mail({ to: email, subject: `old ${n}` }))
    }
    server.hooks = {
      command: ({ user, folder, text }) => {
        if (folder?.name !== 'Archive' || !slow.includes(user?.name ?? '') || !/UID FETCH 1:/i.test(text))
          return undefined
        stuck += 1
        return {}
      },
    }
    dripping = setInterval(() => {
      for (const name of slow) server.say('* OK more is to come', name)
    }, 500)
  })
  after(async () => {
    clearInterval(dripping)
    await stage.remove()
    await server.close()
  })

  /** Resolves with the time that it took until all of Archive is listed. */
  const read = async (developer: Client, email: string, withinMs: number): Promise<number> => {
    const id = await createUser(developer, { host: server.host, port: server.port, password }, email)
    const started = performance.now()
    const path = `/lite/users/${id}/email_accounts/0/folders/Archive/messages`
    const whole = async (): Promise<boolean> => (await developer.list(path)).length === count
    await until(`all of ${email}`, whole, { withinMs, everyMs: 50, explain: () => stage.service.log().slice(-2000) })
    return performance.now() - started
  }

  test('another developer is served at once, another mailbox of the same one soon', async () => {
    for (const email of slow) await createUser(stage.service, { host: server.host, port: server.port, password }, email)
    await until('all places are taken', () => stuck >= slow.length)
    const waits = await beside(stage.service, async () => {
      const [own, neighbours] = await Promise.all([
        read(stage.service, 'fifth@mail.example', 15_000),
        read(bob, 'bob@mail.example', 15_000),
      ])
      assert(neighbours < 4000, `another developer waited ${neighbours} ms`)
      assert(own < 12_000, `another mailbox waited ${own} ms`)
    })
    assertShort(waits, 100)
  })
})
