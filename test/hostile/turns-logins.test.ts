/**
 * A developer who adds accounts at a host as fast as can be, half of them with wrong passwords: the others' share of
 * the host's pace is theirs.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import type { Client } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser, userBody } from '../support/users.ts'
import { neighbourOf } from './neighbour.ts'

const perMinute = 40
const many = Array.from({ length: 120 }, (_, n) => `many${n}@mail.example`)
const password = 'secret'

suite('a host whose logins are all asked for by one developer', () => {
  let stage: Stage
  let server: ImapServer
  let bob: Client
  before(async () => {
    const env = { MAILROOM_LOGINS_PER_MINUTE: String(perMinute), MAILROOM_CREATE_TIMEOUT: '6s' }
    stage = await openStage({ env })
    bob = await neighbourOf(stage.service)
    const users = [...many, 'bob@mail.example', 'new@mail.example'].map((name) => [name, {}] as const)
    server = await createImapServer({ users: Object.fromEntries(users) })
  })
  after(async () => {
    await stage.remove()
    await server.close()
  })

  const target = () => ({ host: server.host, port: server.port, password })
  const watched = (email: string): boolean => server.connections.some(({ user, idling }) => user === email && idling)

  test('leaves the others their logins: a reconnect, and a new account', async () => {
    await createUser(bob, target(), 'bob@mail.example')
    await until('watched', () => watched('bob@mail.example'))
    const flood = many.map((email, n) =>
      stage.service.api('POST', '/lite/users', userBody(target(), email, n % 2 === 0 ? {} : { password: 'wrong' })),
    )
    const answers = await Promise.all(flood)
    const refused = answers.filter(({ body }) => (body as { feedback_code?: string }).feedback_code === 'throttled')
    assert(refused.length > 0, 'more was asked for than the host gets')
    const started = performance.now()
    server.dropConnections('bob@mail.example')
    await until('away', () => !watched('bob@mail.example'))
    await until('back', () => watched('bob@mail.example'), { withinMs: 10_000 })
    await createUser(bob, target(), 'new@mail.example')
    assert(performance.now() - started < 10_000)
    const logins = server.log.filter(({ line }) => /^C: \S+ (?:LOGIN|AUTHENTICATE)/.test(line)).length
    assert(logins <= perMinute, `${logins} logins within a minute`)
  })
})
