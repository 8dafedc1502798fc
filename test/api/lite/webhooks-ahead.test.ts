/** What callbacks want of new mail is read by the session that found it; a body that ends it does so once. */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { part, startReceiver, subjectOf, type Callback, type CallbackReceiver } from '../../support/callbacks.ts'
import type { HookCall } from '../../support/imap-server/index.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

suite('what callbacks want of new mail', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let users = 0
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_COMMAND_IDLE_CLOSE: '200ms' } })
    receiver = await startReceiver()
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })
  afterEach(() => (rig.imap.hooks = {}))

  /** A mailbox that is watched over one connection, with a webhook at `/<name>`. */
  async function quiet(name: string, wishes: Json): Promise<TestMailbox> {
    const box = await rig.mailbox(`${name}${(users += 1)}`)
    await hook(box, name, wishes)
    await until('one connection is left', () => linksOf(box).length === 1)
    return box
  }

  const hook = (box: TestMailbox, name: string, wishes: Json) =>
    rig.ok('POST', `/lite/users/${box.userId}/webhooks`, { callback_url: `${receiver.url}/${name}`, ...wishes })

  const linksOf = ({ email }: TestMailbox) => rig.imap.connections.filter(({ user }) => user === email)

  const told = (name: string, subject: string): Promise<Callback> =>
    until(`${subject} is told to ${name}`, () =>
      receiver.all.find((one) => one.path === `/${name}` && subjectOf(one) === subject),
    )

  const deliver = (box: TestMailbox, subject: string) =>
    rig.imap.append(box.email, 'INBOX', mail({ to: box.email, subject, text: `${subject}: the needle` }))

  const textOf = (callback: Callback) => (part(callback.body, 'message_data')['bodies'] as Json[])[0]?.['content']

  const asksText = ({ name, text }: HookCall): boolean => name === 'UID FETCH' && text.includes('BODY.PEEK[1]')

  test('bodies, header blocks and a search need no second connection', async () => {
    const wishes = { include_body: 1, include_header: 1, body_search: 'needle' }
    const box = await quiet('all', wishes)
    await hook(box, 'none', { body_search: 'hay' })
    const before = rig.imap.accepted
    deliver(box, 'first')
    const callback = await told('all', 'first')
    assert.match(String(textOf(callback)), /^first: the needle/)
    assert.equal((part(callback.body, 'message_data')['headers'] as Json)['Subject']?.toString(), 'first')
    deliver(box, 'second')
    await told('all', 'second')
    assert.equal(rig.imap.accepted, before)
  })

  test('nothing is read for webhooks that want no text', async () => {
    const box = await quiet('facts', {})
    let asked = 0
    rig.imap.hooks = { command: (call) => void (asked += asksText(call) ? 1 : 0) }
    deliver(box, 'plain')
    await told('facts', 'plain')
    assert.equal(asked, 0)
  })

  test('what the session is refused is read over the command connection', async () => {
    const box = await quiet('refused', { include_body: 1 })
    let refused = 0
    rig.imap.hooks = {
      command: (call) => (asksText(call) && (refused += 1) === 1 ? { tagged: 'NO not now' } : undefined),
    }
    const [watching] = linksOf(box)
    deliver(box, 'later')
    assert.match(String(textOf(await told('refused', 'later'))), /^later: the needle/)
    assert(linksOf(box).some(({ id }) => id === watching?.id))
    assert(refused > 1)
  })

  test('a text that ends the session ends the watching one once: other mail is told', async () => {
    const box = await quiet('poison', { include_body: 1 })
    await hook(box, 'others', {})
    const asked: number[] = []
    rig.imap.hooks = {
      command: (call) => {
        if (!asksText(call) || !call.text.includes('FETCH 1 ')) return undefined
        asked.push(call.connection)
        return { close: 'reset' }
      },
    }
    const [watching] = linksOf(box).map(({ id }) => id)
    deliver(box, 'poison')
    await told('others', 'poison')
    deliver(box, 'healthy')
    await told('others', 'healthy')
    const idled = new Set(rig.imap.log.filter(({ line }) => /IDLE$/.test(line)).map(({ connection }) => connection))
    assert.deepEqual(
      asked.filter((connection) => idled.has(connection)),
      [watching],
    )
  })
})
