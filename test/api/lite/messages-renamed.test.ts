/**
 * A folder is renamed or numbered anew while a call reads the index: what lacks its mail is never answered as if it
 * were whole, and none of it is said to be gone.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { aroundNextCall } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from './rig.ts'

suite('a folder that changes between two reads of a call', () => {
  let rig: LiteRig
  let box: TestMailbox
  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('renamer', { folders: { INBOX: [], P0: [] } })
    await box.deliver({ subject: 'kept', text: 'needle' }, 'P0')
  })
  after(() => rig.close())

  const stores = () => rig.engines.map(({ store }) => store.messages)

  function rename(from: string, to: string): void {
    const { messages, uidNext } = rig.imap.folder(box.email, from)
    rig.imap.deleteFolder(box.email, from)
    const made = rig.imap.createFolder(box.email, to)
    made.messages.push(...messages)
    made.uidNext = uidNext
  }

  /** The call, with the folder renamed when the folders have been read and the messages have not. */
  async function callAcross(from: string, to: string, path: string) {
    const { folders } = rig.engine.store
    // The new one is not read before the answer.
    const answered = Promise.withResolvers<null>()
    rig.imap.hooks = {
      async send(response, call) {
        if (call?.name === 'SELECT' && call.text.includes(to)) await answered.promise
        return response
      },
    }
    const undo = aroundNextCall(stores(), 'list', async (call) => {
      rename(from, to)
      await until('its mail has left it', async () => (await folders.byPath(box.accountId, from)) === null)
      return call()
    })
    const answer = await rig.call('GET', path)
    undo()
    answered.resolve(null)
    rig.imap.hooks = {}
    return answer
  }

  test('renamed: a list is a 503, and whole soon', async () => {
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
      const { status, text, headers } = await callAcross(`P${n}`, `P${n + 1}`, call)
      assert.equal(status, 503, `${call}: ${text}`)
      assert(Number(headers['retry-after']) >= 1)
      await until('it is read', async () => (await rig.list(folder(`P${n + 1}`))).length === 1)
    }
    assert.equal((await rig.list(`${path}/messages`)).length, 1)
    assert.equal((await rig.call('GET', folder('P1'))).status, 404)
  })

  test('numbered anew when the message is looked for: a 503 too, though it lies elsewhere as well', async () => {
    const placesOf = async () => (await rig.engine.store.messages.byIds(box.accountId, [id]))[0]?.placements
    const raw = mail({ to: box.email, subject: 'twin' })
    const id = await box.deliverRaw(raw, 'twin')
    rig.imap.createFolder(box.email, 'Twins')
    rig.imap.append(box.email, 'Twins', raw)
    const path = `${box.path}/folders/Twins/messages/${id}`
    const isThere = async (): Promise<boolean> => (await rig.call('GET', path)).status === 200
    await until('it lies in both', isThere)
    const answered = Promise.withResolvers<null>()
    rig.imap.hooks = {
      async send(response, call) {
        if (call?.name === 'UID FETCH' && call.folder?.name === 'Twins') await answered.promise
        return response
      },
    }
    const undo = aroundNextCall(stores(), 'find', async (call) => {
      rig.imap.renumber(box.email, 'Twins')
      await until('its place is forgotten', async () => (await placesOf())?.length === 1)
      return call()
    })
    // Another answer than the one that was given before.
    const { status, text } = await rig.call('GET', `${path}?include_flags=1`)
    undo()
    answered.resolve(null)
    rig.imap.hooks = {}
    assert.equal(status, 503, text)
    await until('it is there again', isThere)
  })
})
