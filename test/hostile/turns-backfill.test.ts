/**
 * Mailboxes that give their old mail a few bytes a second: each batch ends at its deadline. Another developer's old
 * mail does not wait for them; another mailbox of the same developer waits for one batch of each.
 */
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

const slow = Array.from({ length: 12 }, (_, n) => `slow${n}@mail.example`)
const others = ['fifth@mail.example', 'bob@mail.example']
const count = 10
/** 4 places, 2 spare ones for developers who hold none, and some that are being ended, which takes up to a second. */
const mostAtOnce = 10
const password = 'secret'

suite('old mail that comes a few bytes a second', () => {
  let stage: Stage
  let server: ImapServer
  let bob: Client
  let dripping: NodeJS.Timeout
  /** Connections with a FETCH that is never answered. */
  const stuck = new Set<number>()
  const stuckNow = (): number => server.connections.filter(({ id }) => stuck.has(id)).length
  before(async () => {
    // A batch ends after twice this time.
    stage = await openStage({ env: { MAILROOM_COMMAND_TIMEOUT: '2s' } })
    bob = await neighbourOf(stage.service)
    server = await createImapServer({ users: Object.fromEntries([...slow, ...others].map((name) => [name, {}])) })
    for (const email of [...slow, ...others]) {
      for (let n = 1; n <= count; n += 1) server.append(email, 'Archive', mail({ to: email, subject: `old ${n}` }))
    }
    server.hooks = {
      command: ({ connection, user, folder, text }) => {
        if (folder?.name !== 'Archive' || !slow.includes(user?.name ?? '') || !/UID FETCH 1:/i.test(text))
          return undefined
        stuck.add(connection)
        return {}
      },
    }
    dripping = setInterval(() => {
      for (const name of slow) server.say('* OK more is to come', name)
    }, 300)
  })
  after(async () => {
    clearInterval(dripping)
    await stage.remove()
    await server.close()
  })

  const archived = async (developer: Client, id: string): Promise<boolean> => {
    const path = `/lite/users/${id}/email_accounts/0/folders/Archive/messages`
    return (await developer.list(path)).length === count
  }
  const create = (developer: Client, email: string): Promise<string> =>
    createUser(developer, { host: server.host, port: server.port, password }, email)
  /** Resolves with the time that it took until all of Archive is listed. */
  const read = async (developer: Client, email: string): Promise<number> => {
    const id = await create(developer, email)
    const started = performance.now()
    const explain = (): string => stage.service.log().slice(-2000)
    await until(`all of ${email}`, () => archived(developer, id), { withinMs: 40_000, everyMs: 50, explain })
    return performance.now() - started
  }

  test('another developer is served at once, another mailbox of the same one after a batch of each, and they themselves when it comes', async () => {
    const ids = await Promise.all(slow.map((email) => create(stage.service, email)))
    await until('all places are taken', () => stuckNow() >= 4)
    let most = 0
    const counting = setInterval(() => (most = Math.max(most, stuckNow())), 20).unref()
    const waits = await beside(stage.service, async () => {
      const [own, neighbours] = await Promise.all([
        read(stage.service, 'fifth@mail.example'),
        read(bob, 'bob@mail.example'),
      ])
      assert(neighbours < 4000, `another developer waited ${neighbours} ms`)
      assert(own < 30_000, `another mailbox waited ${own} ms`)
    })
    clearInterval(counting)
    assert(most <= mostAtOnce, `${most} batches at once`)
    assertShort(waits, 100)
    server.hooks = {}
    for (const name of slow) server.dropConnections(name)
    const all = async (): Promise<boolean> =>
      (await Promise.all(ids.map((id) => archived(stage.service, id)))).every((whole) => whole)
    await until('all are read', all, {
      withinMs: 20_000,
      everyMs: 200,
      explain: () => stage.service.log().slice(-2000),
    })
  })
})
