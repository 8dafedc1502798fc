/** A message that lies in two folders has flags of its own in each. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

suite('flags of a message in two folders', () => {
  let rig: LiteRig
  let box: TestMailbox
  let id: string
  const folders = [
    ['INBOX', '\\Seen'],
    ['Archive', '\\Flagged'],
    ['Trash', '\\Answered'],
  ] as const

  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('twice')
    const raw = mail({ to: box.email, subject: 'twice' })
    const date = new Date(Date.now() - 60_000)
    for (const [path, flag] of folders) rig.imap.append(box.email, path, raw, [flag], date)
    id = await box.indexed('twice')
    const places = async () => (await rig.engine.store.messages.get(box.accountId, id))?.placements.length
    await until('in all folders', async () => (await places()) === folders.length)
  })
  after(() => rig.close())

  for (const [path, flag] of folders) {
    test(`${path} shows its own: ${flag}`, async () => {
      const list = `${box.path}/folders/${path}/messages`
      const [listed] = await rig.list(`${list}?include_flags=1`)
      assert.equal(listed?.['message_id'], id)
      assert.deepEqual((listed['flags'] as Json)['raw'], [flag])
      const alone = await rig.ok('GET', `${list}/${id}?include_flags=1`)
      assert.deepEqual((alone['flags'] as Json)['raw'], [flag])
      assert.deepEqual(((await rig.ok('GET', `${list}/${id}/flags`))['flags'] as Json)['raw'], [flag])
    })
  }

  test('our id with a folder in the path that the message is not in names no other mail of its Message-ID', async () => {
    const date = new Date()
    const here = await box.deliver({ subject: 'here', id: 'shared', date })
    const there = await box.deliver(
      { subject: 'there', id: 'shared', date: new Date(date.getTime() + 1000) },
      'Archive',
    )
    assert.notEqual(here, there)
    const at = (name: string): string => `${box.path}/folders/Archive/messages/${encodeURIComponent(name)}`
    assert.equal((await rig.ok('GET', at('<shared@sender.example>')))['message_id'], there)
    assert.equal((await rig.call('GET', at(here))).status, 404)
    assert.equal((await rig.call('POST', `${at(here)}/read`)).status, 404)
  })
})
