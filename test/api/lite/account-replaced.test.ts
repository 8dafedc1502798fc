/**
 * An edit that makes the account another mailbox: nothing of the former one is served from then on, and nothing is told
 * twice.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startReceiver, subjectOf, type CallbackReceiver } from '../../support/callbacks.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const shared = mail({ to: 'both@mail.example', subject: 'shared' })
const arrived = new Date(Date.now() - 3_600_000)

suite('edits of an email account', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  before(async () => {
    rig = await startLiteRig()
    receiver = await startReceiver()
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  /** A mailbox of two letters and the shared one, watched by a webhook that wants all changes. */
  async function watched(name: string): Promise<TestMailbox> {
    const mailbox = await rig.mailbox(name, { subjects: [`${name} 1`, `${name} 2`] })
    rig.imap.append(mailbox.email, 'INBOX', shared, [], arrived)
    await mailbox.indexed('shared')
    await until('the initial sync', async () => (await record(mailbox)).resume.initialSyncAt)
    await rig.ok('POST', `/lite/users/${mailbox.userId}/webhooks`, {
      callback_url: `${receiver.url}/${name}`,
      receive_all_changes: 1,
    })
    return mailbox
  }
  const record = async ({ accountId }: TestMailbox) =>
    (await rig.engine.store.accounts.get(accountId)) ?? assert.fail(accountId)
  const told = (name: string): string[] => receiver.all.filter(({ path }) => path === `/${name}`).map(subjectOf)
  const subjectsOf = (messages: readonly Json[]): unknown[] => messages.map((message) => message['subject']).sort()
  /** New mail, whose callback comes after whatever else there was to tell; the changes of the account, by now. */
  const changesAfter = async (mailbox: TestMailbox, name: string): Promise<string[]> => {
    await mailbox.deliver({ subject: `${name} new` })
    await until('its callback', () => told(name).includes(`${name} new`))
    return told(name)
  }

  test('another username is another mailbox, also with the same UIDVALIDITY and UIDs', async () => {
    const mailbox = await watched('first')
    const [other, former] = ['second@mail.example', await mailbox.indexed('first 1')]
    const known = await mailbox.indexed('shared')
    rig.imap.addUser(other)
    for (const subject of ['second 1', 'second 2']) {
      rig.imap.append(other, 'INBOX', mail({ to: other, subject }), [], arrived)
    }
    rig.imap.append(other, 'INBOX', shared, [], arrived)
    const [one, two] = [rig.imap.folder(mailbox.email, 'INBOX'), rig.imap.folder(other, 'INBOX')]
    two.uidValidity = one.uidValidity

    const edited = await rig.ok('POST', mailbox.path, { username: other, password: 'secret' })
    assert.equal(edited['success'], true)
    const list = async (): Promise<Json[] | undefined> => {
      const answer = await rig.call('GET', `${mailbox.path}/messages`)
      if (answer.status === 503) return undefined
      assert.equal(answer.status, 200, answer.text)
      const messages = JSON.parse(answer.text) as Json[]
      for (const subject of subjectsOf(messages)) assert.doesNotMatch(String(subject), /first/)
      return messages.length === 3 ? messages : undefined
    }
    const messages = await until('the other mailbox', list)
    assert.deepEqual(subjectsOf(messages), ['second 1', 'second 2', 'shared'])
    assert.equal(messages.find((message) => message['subject'] === 'shared')?.['message_id'], known)
    await until('the initial sync', async () => (await record(mailbox)).resume.initialSyncAt)
    assert.equal((await rig.call('POST', `${mailbox.path}/messages/${former}/read`)).status, 404)

    const id = await mailbox.indexed('second 1')
    await rig.ok('POST', `${mailbox.path}/messages/${id}/flags`, { flagged: 1 })
    assert.deepEqual([...(two.messages[0]?.flags ?? [])], ['\\Flagged'])
    assert.deepEqual(
      one.messages.flatMap((message) => [...message.flags]),
      [],
    )
    assert.deepEqual([two.messages.length, one.messages.length], [3, 3])
    rig.imap.append(other, 'INBOX', mail({ to: other, subject: 'second new' }))
    await until('its callback', () => told('first').includes('second new'))
    // The flag that we set, and the new mail; nothing of what was read anew.
    assert.deepEqual(told('first'), ['second 1', 'second new'])
  })

  test('another host with the same mail: all of it keeps its ids, and only what came meanwhile is told', async () => {
    const mailbox = await watched('moved')
    const ids = new Map(
      await Promise.all(
        ['moved 1', 'moved 2', 'shared'].map(async (subject) => [subject, await mailbox.indexed(subject)] as const),
      ),
    )
    await rig.engine.accounts.stop(mailbox.accountId)
    rig.imap.append(mailbox.email, 'INBOX', mail({ to: mailbox.email, subject: 'meanwhile' }))
    await rig.ok('POST', mailbox.path, { server: 'localhost', password: 'secret' })
    await until('what came meanwhile', () => told('moved').includes('meanwhile'))
    for (const [subject, id] of ids) assert.equal(await mailbox.indexed(subject), id)
    assert.deepEqual(await changesAfter(mailbox, 'moved'), ['meanwhile', 'moved new'])
  })

  test('another password, port or nothing new leaves what was read as it is', async () => {
    const mailbox = await watched('same')
    // What was read; HIGHESTMODSEQ and the times of comparisons go on meanwhile.
    const read = async () => {
      const { cursor } = (await rig.engine.store.folders.byPath(mailbox.accountId, 'INBOX')) ?? {}
      return [cursor?.uidValidity, cursor?.uidNext, cursor?.backfillBelow]
    }
    const before = await read()
    rig.imap.setPassword(mailbox.email, 'changed')
    await rig.ok('POST', mailbox.path, {
      password: 'changed',
      port: rig.imap.port,
      server: rig.imap.host,
      username: mailbox.email,
    })
    assert.deepEqual(await read(), before)
    assert.equal((await rig.list(`${mailbox.path}/messages`)).length, 3)
    assert.notEqual((await record(mailbox)).resume.initialSyncAt, null)
    assert.deepEqual(await changesAfter(mailbox, 'same'), ['same new'])
  })

  test('settings that another call has changed during the trial login stay: 409', async () => {
    const mailbox = await watched('slow')
    const other = 'slow.other@mail.example'
    rig.imap.addUser(other)
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    const held: string[] = []
    rig.imap.hooks = {
      send: async (response, call) => {
        if (call !== null && held.length === 0 && ['LOGIN', 'AUTHENTICATE'].includes(call.name)) {
          held.push(call.name)
          await released
        }
        return response
      },
    }
    try {
      const late = rig.call('POST', mailbox.path, { password: 'secret' })
      await until('its login hangs', () => held.length > 0)
      const edited = await rig.ok('POST', mailbox.path, { username: other, password: 'secret' })
      assert.equal(edited['success'], true)
      release(undefined)
      const answer = await late
      assert.equal(answer.status, 409, answer.text)
      assert.equal((await record(mailbox)).username, other)
    } finally {
      release(undefined)
      rig.imap.hooks = {}
    }
  })

  test('a refused login leaves all as it was', async () => {
    const mailbox = await watched('kept')
    const answer = await rig.ok('POST', mailbox.path, { username: 'nobody@mail.example', password: 'secret' })
    assert.equal(answer['success'], false)
    assert.equal((await rig.list(`${mailbox.path}/messages`)).length, 3)
    assert.deepEqual(await changesAfter(mailbox, 'kept'), ['kept new'])
  })
})
