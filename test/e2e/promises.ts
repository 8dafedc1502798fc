/**
 * The promises of the service, kept end to end against any mail server: the same tests for Dovecot and for the one in
 * this process.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { part, subjectOf } from '../support/callbacks.ts'
import { mail } from '../support/mail.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, listed, userBody } from '../support/users.ts'
import {
  acceptedFor,
  assertSigned,
  openStage,
  settled,
  subjects,
  watchedUser,
  type Stage,
  type TestMailServer,
} from './stage.ts'

export function promisesOn(name: string, options: { skip?: string }, startServer: () => Promise<TestMailServer>): void {
  suite(`end to end on ${name}, ${chosenStore().kind} store`, options, () => {
    let server: TestMailServer
    let stage: Stage
    const parts = new AsyncDisposableStack()
    before(async () => {
      server = await startServer()
      parts.defer(() => server.remove())
      stage = await openStage()
      parts.defer(() => stage.remove())
    })
    after(() => parts.disposeAsync())
    const send = (email: string, subject: string) => server.append(email, 'INBOX', mail({ to: email, subject }))

    test('append → callback with two valid signatures, and the message over the API', async () => {
      const user = await watchedUser(stage, server, 'jane')
      await send(user.email, 'first news')
      await settled(stage, () => acceptedFor(stage, user).length, 1)
      const [callback, ...more] = acceptedFor(stage, user)
      assert(callback)
      assert.equal(more.length, 0)
      assertSigned(callback)
      const message = part(callback.body, 'message_data')
      assert.equal(message['subject'], 'first news')
      assert.equal(message['email_message_id'], '<first-news@sender.example>')
      assert.equal(callback.body['user_id'], user.id)
      const path = `/lite/users/${user.id}/email_accounts/0/messages/${String(message['message_id'])}`
      const fetched = await stage.service.ok('GET', path)
      assert.equal(fetched['subject'], 'first news')
      assert.deepEqual(part(fetched, 'addresses')['from'], [{ name: 'Ada Sender', email: 'ada@sender.example' }])
    })

    test('a changed body does not pass either signature', async () => {
      const user = await watchedUser(stage, server, 'mallory')
      await send(user.email, 'genuine')
      await settled(stage, () => acceptedFor(stage, user).length, 1)
      const [genuine] = acceptedFor(stage, user)
      assert(genuine)
      assert.throws(() => assertSigned({ ...genuine, raw: genuine.raw.replace('genuine', 'forged!') }))
      assert.throws(() => assertSigned({ ...genuine, body: { ...genuine.body, token: 'other' } }))
    })

    test('the receiver is down for three attempts, then up: told once, failure told and taken back', async () => {
      const user = await watchedUser(stage, server, 'paul')
      const attempts = () => stage.receiver.all.filter((callback) => callback.path === '/paul')
      const notices = () => stage.receiver.all.filter((callback) => callback.path === '/failed')
      const webhook = () => stage.service.ok('GET', `/lite/users/${user.id}/webhooks/${user.webhookId}`)
      let up = false
      stage.receiver.behave(({ path }) => (path === '/paul' && !up ? 503 : 200))
      await send(user.email, 'stubborn')
      await until('the third attempt', () => attempts().length >= 3)
      await until('failure', async () => (await webhook())['failure'] === true)
      up = true
      await settled(stage, () => acceptedFor(stage, user).length, 1)
      stage.receiver.behave(() => 200)
      assert.deepEqual(subjects(acceptedFor(stage, user)), ['stubborn'])
      assert.equal(new Set(attempts().map(({ headers }) => headers['webhook-id'])).size, 1)
      attempts().forEach(assertSigned)
      assert.equal((await webhook())['failure'], false)
      assert.equal(notices().length, 1)
      notices().forEach(assertSigned)
    })

    test('kill -9 between append and delivery: nothing lost, nothing twice, in order', async () => {
      const user = await watchedUser(stage, server, 'kim')
      const wanted = ['one', 'two', 'three', 'four', 'five', 'six'].map((word) => `kill ${word}`)
      stage.receiver.behave(() => 503)
      for (const subject of wanted.slice(0, 4)) await send(user.email, subject)
      await until('an attempt', () => stage.receiver.all.some((callback) => callback.path === '/kim'))
      await stage.service.kill9()
      for (const subject of wanted.slice(4)) await send(user.email, subject)
      stage.receiver.behave(() => 200)
      await stage.service.start()
      await settled(stage, () => acceptedFor(stage, user).length, wanted.length)
      assert.deepEqual(subjects(acceptedFor(stage, user)), wanted)
    })

    test('kill -9 at any moment, again and again: every message under one webhook-id', async () => {
      const user = await watchedUser(stage, server, 'rex')
      const wanted: string[] = []
      for (let round = 0; round < 4; round++) {
        const batch = [`round ${round} a`, `round ${round} b`]
        for (const subject of batch) await send(user.email, subject)
        wanted.push(...batch)
        await pause(randomInt(700))
        await stage.service.kill9()
        await stage.service.start()
      }
      await settled(stage, () => new Set(subjects(acceptedFor(stage, user))).size, wanted.length)
      const ids = new Map<string, Set<unknown>>()
      for (const callback of acceptedFor(stage, user)) {
        const seen = ids.get(subjectOf(callback)) ?? new Set()
        ids.set(subjectOf(callback), seen.add(callback.headers['webhook-id']))
      }
      assert.deepEqual([...ids.keys()], wanted, 'all, in order')
      assert.deepEqual(
        [...ids.values()].map((seen) => seen.size),
        wanted.map(() => 1),
        'one webhook-id each',
      )
      assert(acceptedFor(stage, user).length <= wanted.length + 4, 'a kill repeats at most what was under way')
    })

    test('the mail server goes away and comes back: OK all the time, and nothing is lost', async () => {
      const user = await watchedUser(stage, server, 'olga')
      const account = () => stage.service.ok('GET', `/lite/users/${user.id}/email_accounts/0`)
      await server.stop()
      await until('a word about it', async () => (await account())['status_message'] !== null)
      assert.equal((await account())['status'], 'OK')
      await server.start()
      await send(user.email, 'after the pause')
      await settled(stage, () => acceptedFor(stage, user).length, 1, 30_000)
      assert.deepEqual(subjects(acceptedFor(stage, user)), ['after the pause'])
      await until('status without a message', async () => (await account())['status_message'] === null)
    })

    test('a wrong password is a soft failure, and nothing is created', async () => {
      const before = await stage.service.list('/lite/users?limit=100')
      const body = userBody(server, 'eve@mail.example', { password: 'not-the-password' })
      const answer = await stage.service.ok('POST', '/lite/users', body)
      assert.equal(answer['success'], false)
      assert.equal(answer['feedback_code'], 'invalid_credentials')
      assert.equal(answer['connectionLog'], answer['connection_log'])
      assert.match(String(answer['connection_log']), /LOGIN|AUTHENTICATE/i)
      assert(!String(answer['connection_log']).includes('not-the-password'))
      assert.equal((await stage.service.list('/lite/users?limit=100')).length, before.length)
      assert.deepEqual(await stage.service.list('/lite/users?email=eve@mail.example'), [])
    })

    test('after a removal nobody is told anything, and the user is gone', async () => {
      const user = await watchedUser(stage, server, 'gone')
      assert.equal((await stage.service.ok('DELETE', `/lite/users/${user.id}`))['success'], true)
      await send(user.email, 'too late')
      const witness = await createUser(stage.service, server, user.email)
      await listed(stage.service, witness, 'too late')
      assert.equal((await stage.service.api('GET', `/lite/users/${user.id}`)).status, 404)
      assert.deepEqual(acceptedFor(stage, user), [])
    })

    test('a clean stop answers 0, and a start on the same data goes on', async () => {
      const user = await watchedUser(stage, server, 'nora')
      assert.equal(await stage.service.stop(), 0)
      await send(user.email, 'while away')
      await stage.service.start()
      await settled(stage, () => acceptedFor(stage, user).length, 1)
      assert.deepEqual(subjects(acceptedFor(stage, user)), ['while away'])
    })
  })
}
