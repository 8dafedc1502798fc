/** A mailbox over a restart of its server and a change of its password: the same on every real mail server. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../support/mail.ts'
import type { Json } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { invoice, lunch, report } from './letters.ts'
import { openDay, openMailbox, type Day, type Mailbox, type ServerKind } from './mailbox.ts'
import { assertSigned, subjects } from './stage.ts'

/** What is there before this was pushed. */
const env = { MAILROOM_FOLDER_POLL: '2m', MAILROOM_BACKOFF_AUTH: '200ms', MAILROOM_COMMAND_IDLE_CLOSE: '100ms' }

export function watchedOn(kind: ServerKind, options: { skip?: string }): void {
  suite(`watched on ${kind.name}, ${chosenStore().kind} store`, options, () => {
    let day: Day
    before(async () => {
      day = await openDay(kind, env)
    })
    after(() => day.close())
    const open = (name: string): Promise<Mailbox> => openMailbox(day, name, [report, lunch, invoice])

    test('new mail is pushed, and told once', async () => {
      const box = await open('pia')
      const told = await box.webhook()
      for (const subject of ['pushed one', 'pushed two', 'pushed three']) {
        const count = told().length
        await box.send('INBOX', subject)
        await until(subject, () => told().length > count, { explain: () => day.service.log().slice(-3000) })
      }
      assert.deepEqual(subjects(told()), ['pushed one', 'pushed two', 'pushed three'])
      told().forEach(assertSigned)
    })

    test('a restart of the mail server: the account stays OK, and what comes after it is told once', async () => {
      const box = await open('ron')
      const told = await box.webhook()
      const message = `${box.path}/messages/${await box.messageId('Lunch')}`
      const status = async (): Promise<Json> => day.service.ok('GET', box.path)
      await day.server.restart()
      assert.equal((await status())['status'], 'OK')
      await day.server.append(box.email, 'INBOX', mail({ to: box.email, subject: 'after' }))
      await box.lists('INBOX', kind.keepsMail ? ['Bericht März', 'Lunch', 'Invoice', 'after'] : ['after'])
      await until('told', () => told().length > 0)
      await until('no word of it any more', async () => (await status())['status_message'] === null)
      const raw = kind.keepsMail ? 200 : 404
      await until(`${raw}`, async () => (await day.service.api('GET', `${message}/raw`)).status === raw)
      assert.deepEqual(subjects(told()), ['after'])
    })

    test('a crash of the service: what comes meanwhile is told once', async () => {
      const box = await open('sue')
      const told = await box.webhook()
      await day.service.kill9()
      await box.send('INBOX', 'while away')
      await day.service.start()
      await until('told', () => told().length > 0)
      await box.send('INBOX', 'back again')
      await until('told again', () => told().length > 1)
      assert.deepEqual(subjects(told()), ['while away', 'back again'])
      await box.lists('INBOX', ['Bericht März', 'Lunch', 'Invoice', 'while away', 'back again'])
    })

    test('a changed password: DISABLED, and OK with the new one, each told once', async () => {
      const box = await open('pam')
      const { service, server, stage } = day
      await service.ok('POST', box.path, { status_callback_url: `${stage.receiver.url}/status` })
      const status = async (): Promise<Json> => service.ok('GET', box.path)
      const statuses = (): unknown[] =>
        stage.receiver.accepted().flatMap(({ path, body }) => (path === '/status' ? [body['failure']] : []))
      const told = await box.webhook()
      const message = `${box.path}/messages/${await box.messageId('Lunch')}`
      await server.setPassword('another-one')
      // A connection that is logged in may live on: the next login decides.
      const disabled = async (): Promise<boolean> => {
        await service.api('GET', `${message}/raw`)
        return (await status())['status'] === 'DISABLED'
      }
      await until('DISABLED', disabled, { withinMs: 30_000, everyMs: 300, explain: () => service.log().slice(-3000) })
      assert.match(String((await status())['status_message']), /password|credential|login/i)
      assert.equal((await service.ok('POST', box.path, { password: 'still-wrong' }))['success'], false)
      assert.equal((await status())['status'], 'DISABLED')
      assert.equal((await service.ok('POST', box.path, { password: 'another-one' }))['success'], true)
      await until('OK', async () => (await status())['status'] === 'OK')
      await server.append(box.email, 'INBOX', mail({ to: box.email, subject: 'welcome back' }))
      await until('new mail', () => told().length > 0)
      await until('both', () => statuses().length >= 2)
      assert.deepEqual(statuses(), ['permanent', 'cleared'])
      stage.receiver.all.forEach(assertSigned)
    })
  })
}
