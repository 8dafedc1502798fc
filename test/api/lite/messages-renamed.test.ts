/** A folder is renamed while a list is being read: what lacks its mail is never answered as if it were whole. */
import assert from 'node:assert/strict'
import { after, before, suite, test, type TestContext } from 'node:test'
import { until } from '../../support/until.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from './rig.ts'

suite('a folder that is renamed between two reads of a list', () => {
  let rig: LiteRig
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('renamer', { folders: { INBOX: [], P0: [] } })
    await box.deliver({ subject: 'kept', text: 'needle' }, 'P0')
  })
  after(() => rig.close())

  function rename(from: string, to: string): void {
    const { messages, uidNext } = rig.imap.folder(box.email, from)
    rig.imap.deleteFolder(box.email, from)
    const made = rig.imap.createFolder(box.email, to)
    made.messages.push(...messages)
    made.uidNext = uidNext
  }

  /** The call, with the folder renamed when the folders have been read and the messages have not. */
  async function callAcross(t: TestContext, from: string, to: string, path: string) {
    const { messages, folders } = rig.engine.store
    const { list } = messages
    // The new one is not read before the answer.
    const answered = Promise.withResolvers<null>()
    rig.imap.hooks = {
      async send(response, call) {
        if (call?.name === 'SELECT' && call.text.includes(to)) await answered.promise
        return response
      },
    }
    const late = async (...query: Parameters<typeof list>) => {
      rename(from, to)
      await until('its mail has left it', async () => (await folders.byPath(box.accountId, from)) === null)
      return list(...query)
    }
    t.mock.method(messages, 'list', late, { times: 1 })
    const answer = await rig.call('GET', path)
    answered.resolve(null)
    rig.imap.hooks = {}
    return answer
  }

  test('is a 503, and the list is whole soon', async (t) => {
    const folder = (name: string): string => `${box.path}/folders/${name}/messages`
    const { path } = box
    const v2 = `/2.0/accounts/${box.userId}`
    // None that was answered before.
    const calls = [
      `${path}/messages?limit=9`,
      `${folder('P1')}?limit=9`,
      `${path}/messages?body_search_string=needle`,
      `${v2}/threads`,
    ]
    for (const [n, call] of calls.entries()) {
      const { status, text, headers } = await callAcross(t, `P${n}`, `P${n + 1}`, call)
      assert.equal(status, 503, `${call}: ${text}`)
      assert(Number(headers['retry-after']) >= 1)
      await until('it is read', async () => (await rig.list(folder(`P${n + 1}`))).length === 1)
    }
    assert.equal((await rig.list(`${path}/messages`)).length, 1)
    assert.equal((await rig.call('GET', folder('P1'))).status, 404)
  })
})
