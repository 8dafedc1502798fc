/** Writes of 2.0 on a mail server that is slow, or that fails when it has the message already. */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { userBody } from '../../support/users.ts'
import { allRead, startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { v2Mailbox, type V2Mailbox } from './rig.ts'

const other = 'late-2@mail.example'

suite('late writes of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  let otherLabel = ''
  before(async () => {
    rig = await startLiteRig()
    box = await v2Mailbox(rig, 'late')
    rig.imap.addUser(other, {})
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    otherLabel = String((await rig.ok('POST', `${box.account}/sources`, userBody(server, other)))['label'])
    const accounts = await rig.engine.store.accounts.listByUser(box.userId)
    await allRead(rig.engine, accounts.find(({ email }) => email === other)?.id ?? '')
  })
  afterEach(() => {
    rig.imap.hooks = {}
  })
  after(async () => {
    await rig.close()
  })

  const held = (subject: string, email: string): string[] =>
    rig.imap
      .folder(email, 'Archive')
      .messages.map(({ raw }) => raw.toString())
      .filter((raw) => raw.includes(`Subject: ${subject}\r\n`))

  for (const [what, subject, answer] of [
    ['is not given', 'refusedlook', { tagged: 'NO [UNAVAILABLE] busy' }],
    ['breaks off', 'cutlook', { close: 'end' }],
  ] as const)
    test(`what the mail server has is added, also when a look at it ${what}`, async () => {
      const appended = new Set<number>()
      rig.imap.hooks = {
        command: ({ name, connection }) => {
          if (name === 'APPEND') appended.add(connection)
          return name === 'SELECT' && appended.delete(connection) ? answer : undefined
        },
      }
      const made: Json = await rig.ok('POST', `${box.account}/messages`, {
        dst_folder: 'Archive',
        message: mail({ to: box.email, subject }),
      })
      assert.equal(made['success'], true)
      const id = await box.indexed(subject)
      await rig.ok('POST', `${box.account}/messages/${id}`, { dst_folder: 'Archive', dst_source: otherLabel, move: 1 })
      assert.deepEqual([held(subject, box.email).length, held(subject, other).length], [0, 1])
    })
})
