/** What a mail server writes in another case than others do reads the same through the API. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { lowerCase } from '../../support/imap-server/lower-case.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from './rig.ts'

suite('a server that writes in lower case', () => {
  let rig: LiteRig
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig()
    rig.imap.hooks = lowerCase
    box = await rig.mailbox('small', { folders: { INBOX: [], 'Inbox/Work': [] } })
  })
  after(() => rig.close())

  test('mail that is marked as read is shown as read, and so is the list of it', async () => {
    const id = await box.deliver({ subject: 'to be read' })
    const path = `${box.path}/folders/INBOX/messages`
    const written = await rig.ok('POST', `${path}/${id}/flags`, { seen: 1, flagged: 1 })
    assert.deepEqual(written, {
      success: true,
      flags: { read: true, answered: false, flagged: true, deleted: false, draft: false },
    })
    const flags = { read: true, answered: false, flagged: true, draft: false, raw: ['\\Flagged', '\\Seen'] }
    assert.deepEqual((await rig.ok('GET', `${path}/${id}/flags`))['flags'], flags)
    assert.deepEqual((await rig.list(`${path}?include_flags=1`))[0]?.['flags'], flags)
  })

  test('a folder below INBOX is found in each spelling of INBOX', async () => {
    const id = await box.deliver({ subject: 'below' }, 'Inbox/Work')
    for (const name of ['Inbox/Work', 'INBOX/Work', 'inbox/Work']) {
      const [message] = await rig.list(`${box.path}/folders/${encodeURIComponent(name)}/messages`)
      assert.equal(message?.['message_id'], id, name)
    }
    assert.equal((await rig.call('GET', `${box.path}/folders/INBOX%2Fwork/messages`)).status, 404)
  })
})
