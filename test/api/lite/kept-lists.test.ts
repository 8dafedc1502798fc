/** Lists that are answered again as they were: only while nothing that they show has changed. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { nodeCount } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { basic, startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

// What is kept is counted in one engine.
suite('lists that were answered before', { skip: nodeCount > 1 }, () => {
  let rig: LiteRig
  let box: TestMailbox
  let reads = 0
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_REQUEST_TIMEOUT: '6s' } })
    box = await rig.mailbox('kept')
    await box.deliver({ subject: 'first' })
    const { messages } = rig.engine.store
    const { list, find } = messages
    Object.assign(messages, {
      list: (...input: Parameters<typeof list>) => {
        reads += 1
        return list(...input)
      },
      find: (...input: Parameters<typeof find>) => {
        reads += 1
        return find(...input)
      },
    })
  })
  after(() => rig.close())

  const listed = async (query = '', host?: string) => {
    const headers = host === undefined ? {} : { headers: { authorization: basic, host } }
    const { status, text } = await rig.call('GET', `${box.path}/messages${query}`, undefined, headers)
    assert.equal(status, 200, text)
    return text
  }

  const folders = async () => (await rig.call('GET', `${box.path}/folders`)).text

  const parsed = async (query = '') => JSON.parse(await listed(query)) as Json[]

  test('the same list is not read again from the embedded store', async () => {
    const first = await listed()
    await until('the folders rest', async () => {
      reads = 0
      assert.equal(await listed(), first)
      return reads === (rig.engine.store.kind === 'sqlite' ? 0 : 1)
    })
  })

  test('another page, other filters, flags and another name of the host are other lists', async () => {
    const first = await listed()
    assert.equal((await parsed('?offset=1')).length, 0)
    assert.equal((await parsed('?limit=1&subject=second')).length, 0)
    assert('flags' in ((await parsed('?include_flags=1'))[0] ?? {}))
    assert.notEqual(await listed('', 'other.example'), first)
    assert.equal(await listed(), first)
  })

  test('mail that comes and flags that change are in the next list', async () => {
    await listed()
    const counted = await folders()
    assert.equal(await folders(), counted)
    const id = await box.deliver({ subject: 'second' })
    assert.equal((await parsed()).length, 2)
    await until('the folder counts it', async () => (await folders()) !== counted)
    const before = await listed('?include_flags=1')
    await rig.ok('POST', `${box.path}/messages/${id}/flags`, { flagged: 1 })
    assert.notEqual(await listed('?include_flags=1'), before)
  })

  test('a message that is not there is not looked up again, and is found once it has come', async () => {
    const get = () => rig.call('GET', `${box.path}/messages/later@sender.example`)
    await until('the folders rest', async () => {
      reads = 0
      const { status, text } = await get()
      assert.equal(status, 404)
      assert.match(text, /message later@sender\.example is invalid/)
      return reads === (rig.engine.store.kind === 'sqlite' ? 0 : 1)
    })
    await box.deliver({ subject: 'later', id: 'later' })
    assert.equal((await get()).status, 200)
  })

  test('a long list is the same each time, byte for byte', async () => {
    for (const subject of ['Grüße', 'Grüße again', 'Grüße 3'])
      await box.deliver({ subject: `${subject} ${'é'.repeat(900)}` })
    const first = await listed()
    assert(first.length > 4096)
    assert.match(first, /Grüße again é/)
    assert.equal(await listed(), first)
    assert.equal((await parsed()).length, 6)
  })
})
