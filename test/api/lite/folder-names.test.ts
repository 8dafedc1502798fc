/**
 * A folder name goes to the mail server as it was meant, or not at all; and what the server says of it is told as what
 * it is.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { newServerPath } from '../../../api/lite/find.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

suite('the name of a new folder', () => {
  for (const [name, server, delimiter, path] of [
    ['a/b', '/', undefined, 'a/b'],
    ['a/b', '.', undefined, 'a.b'],
    ['a.b', '.', '.', 'a.b'],
    ['a.b/c', '/', undefined, 'a.b/c'],
    ['a|b', '/', '|', 'a/b'],
    ['inbox/x', '.', undefined, 'INBOX.x'],
  ] as const) {
    test(`${name} with delimiter ${delimiter ?? '(none)'} is ${path} on a server of ${server}`, () => {
      assert.equal(newServerPath(name, server, delimiter), path)
    })
  }

  for (const [name, server, delimiter, level] of [
    ['a.b', '.', undefined, 'a.b'],
    ['x/y.z', '.', undefined, 'y.z'],
    ['x/y|z', '/', '|', 'x/y'],
  ] as const) {
    test(`${name} with delimiter ${delimiter ?? '(none)'} would be split by a server of ${server}`, () => {
      assert.throws(
        () => newServerPath(name, server, delimiter),
        (error: Error) => error.message.startsWith(`folder: level "${level}" holds "${server}"`),
      )
    })
  }
})

suite('a server that refuses CREATE', () => {
  let rig: LiteRig
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('refused')
  })
  after(() => rig.close())
  afterEach(() => {
    rig.imap.hooks = {}
  })

  for (const [refusal, status] of [
    ["NO [CANNOT] Character not allowed in mailbox name: '.'", 400],
    ['NO Invalid mailbox name', 400],
    ['NO [NONEXISTENT] nonexistent namespace', 400],
    ['BAD Invalid characters in atom', 400],
    ['NO [OVERQUOTA] no room', 503],
    ['NO [NOPERM] not allowed', 503],
    ['NO [SERVERBUG] sorry', 503],
  ] as const) {
    test(`${refusal} is ${status} with its words, and no advice to try again`, async () => {
      rig.imap.hooks = { command: ({ name }) => (name === 'CREATE' ? { tagged: refusal } : undefined) }
      const answer = await rig.call('POST', `${box.path}/folders/a.b`)
      assert.equal(answer.status, status, answer.text)
      const words = refusal.replace(/^\w+ (\[\w+\] )?/, '')
      assert(String(answer.json['value']).endsWith(words), answer.text)
      assert.equal(String(answer.json['value']).startsWith('folder: '), status === 400)
      assert.equal(answer.headers['retry-after'], undefined)
      assert.equal(answer.headers['x-service-email-account-status'], `${rig.url}${box.path} OK`)
    })
  }
})

suite('a server with . between levels', () => {
  let rig: LiteRig
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig({ delimiter: '.' })
    box = await rig.mailbox('dotted')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
  })
  after(() => rig.close())

  test('a change tells its folder as the API names it, also when that folder is gone', async () => {
    const changes = async () => (await rig.ok('GET', `/lite/users/${box.userId}/changes`))['changes'] as Json[]
    rig.imap.createFolder(box.email, 'Work.Old')
    rig.imap.append(box.email, 'Work.Old', mail({ to: box.email, subject: 'filed' }))
    await box.indexed('filed')
    const [before] = await until('the change', async () => {
      const told = await changes()
      return told.length > 0 ? told : null
    })
    assert.deepEqual([before?.['folder'], before?.['folders']], ['Work/Old', ['Work/Old']])
    rig.imap.deleteFolder(box.email, 'Work.Old')
    const names = async () => (await rig.list(`${box.path}/folders`)).map((folder) => folder['name'])
    await until('the folder is gone', async () => !(await names()).includes('Work/Old'))
    assert.equal((await changes())[0]?.['folder'], 'Work/Old')
  })
})
