/** Parts of which the mail server gives less than its BODYSTRUCTURE says: never answered as if they were whole. */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { silentLogger, type Logger } from '../../../engine/observe/log.ts'
import { entity, multipart } from '../../support/corpus/build.ts'
import { part, startReceiver, subjectOf, type CallbackReceiver } from '../../support/callbacks.ts'
import type { Hooks } from '../../support/imap-server/index.ts'
import { replaced } from '../../support/imap-server/play.ts'
import { shortSection } from '../../support/imap-server/short-section.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const line = 'A line of the text that is long enough to be counted.\r\n'
const inner = mail({ to: 'x@mail.example', subject: 'inner', text: line.repeat(20) })
const large = Buffer.from(line.repeat(20_000)).subarray(0, 1_000_000)

/** A text, a message within the message, and a file of a megabyte. */
function nested(email: string, subject: string): Buffer {
  const disposition = 'Content-Disposition: attachment; filename=large.bin'
  const head = ['From: a@b.example', `To: ${email}`, `Subject: ${subject}`, 'MIME-Version: 1.0']
  const parts = [
    entity(['Content-Type: text/plain'], line.repeat(10)),
    entity(['Content-Type: message/rfc822'], inner),
    entity(['Content-Type: application/octet-stream', disposition], large),
  ]
  return multipart('multipart/mixed', 'outer', parts, head)
}

const text = line.repeat(10).replaceAll('\r\n', '\n')

suite('a server that gives less of a part than it says', () => {
  const warnings: { readonly message: string; readonly fields: Json }[] = []
  const warn = (fields: unknown, message?: string): void =>
    void warnings.push({ message: message ?? '', fields: fields as Json })
  const log: Logger = { ...silentLogger, warn }
  let rig: LiteRig
  let box: TestMailbox
  let receiver: CallbackReceiver
  let path: string

  before(async () => {
    rig = await startLiteRig({ log })
    receiver = await startReceiver()
    box = await rig.mailbox('short')
    const id = await box.deliverRaw(nested(box.email, 'nested'), 'nested')
    path = `${box.path}/messages/${id}`
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })
  afterEach(() => {
    rig.imap.hooks = {}
    warnings.length = 0
  })

  type Change = (response: Buffer) => Buffer
  const whole = (size: number): Change => shortSection('', size)
  const both =
    (one: Change, other: Change): Change =>
    (response) =>
      other(one(response))
  const file = async (index: number) => {
    const answer = await rig.call('GET', `${path}/attachments/${index}`)
    assert.equal(answer.status, 200)
    return { bytes: answer.text, notice: answer.headers['x-service-notice'] }
  }
  const told = (): string[] => warnings.map(({ message }) => message).filter((message) => /a part/.test(message))

  test('nothing is said, and nothing more is asked, where all is whole', async () => {
    const asked = rig.imap.log.length
    assert.deepEqual(await file(0), { bytes: inner, notice: undefined })
    assert.equal((await file(1)).bytes, large.toString())
    assert(!rig.imap.log.slice(asked).some(({ line: said }) => /BODY\.PEEK\[\]/.test(said)))
    assert.deepEqual(told(), [])
  })

  test('a file within a message: read from the whole message', async () => {
    rig.imap.hooks = { send: shortSection('2', 100) }
    assert.deepEqual(await file(0), { bytes: inner, notice: undefined })
    assert.deepEqual(told(), ['a part was cut out of the whole message'])
  })

  test('a file longer than one piece: likewise', async () => {
    rig.imap.hooks = { send: shortSection('3', 700_000) }
    const { bytes, notice } = await file(1)
    assert.equal(bytes.length, large.length)
    assert(bytes === large.toString())
    assert.equal(notice, undefined)
  })

  test('what the whole message lacks too is given as it is, and the answer and the log say so', async () => {
    rig.imap.hooks = { send: both(shortSection('2', 100), whole(900)) }
    const { bytes, notice } = await file(0)
    assert(bytes.length < inner.length && inner.startsWith(bytes))
    assert.match(String(notice), /^truncated: /)
    assert.deepEqual(told(), ['the mail server gives less of a part than it says'])
    rig.imap.hooks = { send: both(shortSection('3', 700_000), whole(900)) }
    const long = await file(1)
    assert.equal(long.bytes, large.toString('latin1', 0, 700_000))
    assert.match(String(long.notice), /^truncated: /)
  })

  test('bodies, alone and in a list: from the whole message, else marked as truncated', async () => {
    const bodyOf = async () => ((await rig.ok('GET', `${path}/body`))['bodies'] as Json[])[0] ?? {}
    const listed = async () => {
      const [message] = await rig.list(`${box.path}/messages?include_body=1&subject=nested`)
      return ((message?.['bodies'] ?? []) as Json[])[0] ?? {}
    }
    for (const read of [bodyOf, listed]) {
      rig.imap.hooks = { send: shortSection('1', 60) }
      const mended = await read()
      assert.deepEqual([mended['content'], mended['truncated']], [text, undefined])
      rig.imap.hooks = { send: both(shortSection('1', 60), whole(300)) }
      const short = await read()
      assert(text.startsWith(String(short['content'])) && String(short['content']).length < text.length)
      assert.equal(short['truncated'], true)
    }
  })

  test('an answer that lacks one of two bodies: it is asked for alone, and both are shown', async () => {
    const message = multipart(
      'multipart/alternative',
      'outer',
      [entity(['Content-Type: text/plain'], 'plain'), entity(['Content-Type: text/html'], '<b>html</b>')],
      ['From: a@b.example', `To: ${box.email}`, 'Subject: two bodies', 'MIME-Version: 1.0'],
    )
    const id = await box.deliverRaw(message, 'two bodies')
    const lacked: string[] = []
    const lacking = (response: Buffer): Buffer => {
      const said = response.toString('latin1')
      const second = / BODY\[2\]<0> \{11\}\r\n<b>html<\/b>/
      if (!said.includes('BODY[1]') || !second.test(said)) return response
      lacked.push(said)
      return Buffer.from(said.replace(second, ''), 'latin1')
    }
    rig.imap.hooks = { send: lacking }
    const contents = (bodies: unknown): unknown[] => (bodies as Json[]).map((body) => body['content'])
    const wanted = ['plain', '<b>html</b>']
    assert.deepEqual(contents((await rig.ok('GET', `${box.path}/messages/${id}/body`))['bodies']), wanted)
    assert.equal(lacked.length, 1)
    const [listed] = await rig.list(`${box.path}/messages?include_body=1&subject=two%20bodies`)
    assert.deepEqual(contents(listed?.['bodies']), wanted)
    assert.notEqual(lacked.at(1), undefined)
  })

  test('a size that is wrong makes nothing truncated: the whole message has no more', async () => {
    rig.imap.hooks = {
      send: (response) => {
        const said = response.toString('latin1')
        return Buffer.from(said.replace(/"7bit" 550 10\b/, '"7bit" 5500 10'), 'latin1')
      },
    }
    const id = await box.deliverRaw(nested(box.email, 'miscounted'), 'miscounted')
    const [body] = (await rig.ok('GET', `${box.path}/messages/${id}/body`))['bodies'] as Json[]
    assert.deepEqual([body?.['size'], body?.['content'], body?.['truncated']], [5500, text, undefined])
    assert.deepEqual(told(), [])
  })

  test('NIL for an empty part: the text and the file are empty, and the callback is sent', async () => {
    rig.imap.hooks = { send: replaced(/ \{0\}\r\n/g, ' NIL') }
    const disposition = 'Content-Disposition: attachment; filename=empty.bin'
    const message = (subject: string): Buffer =>
      multipart(
        'multipart/mixed',
        'outer',
        [entity(['Content-Type: text/plain'], ''), entity(['Content-Type: image/png', disposition], '')],
        ['From: a@b.example', `To: ${box.email}`, `Subject: ${subject}`, 'MIME-Version: 1.0'],
      )
    const id = await box.deliverRaw(message('empty'), 'empty')
    const [body] = (await rig.ok('GET', `${box.path}/messages/${id}/body`))['bodies'] as Json[]
    assert.deepEqual([body?.['content'], body?.['truncated']], ['', undefined])
    const answer = await rig.call('GET', `${box.path}/messages/${id}/attachments/0`)
    assert.deepEqual([answer.status, answer.text, answer.headers['x-service-notice']], [200, '', undefined])
    const url = { callback_url: receiver.url, include_body: 1, filter_subject: 'empty, called back' }
    await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, url)
    rig.imap.append(box.email, 'INBOX', message('empty, called back'))
    const callback = await until('the callback', () =>
      receiver.all.find((one) => subjectOf(one) === 'empty, called back'),
    )
    const [sent] = part(callback.body, 'message_data')['bodies'] as Json[]
    assert.deepEqual([sent?.['content'], sent?.['truncated']], ['', undefined])
  })

  test('the body of a callback: from the whole message, else cut and said so', async () => {
    await rig.ok('POST', `/lite/users/${box.userId}/webhooks`, {
      callback_url: receiver.url,
      include_body: 1,
      body_type: 'text/plain',
    })
    const received = async (subject: string, hooks: Hooks): Promise<Json> => {
      rig.imap.hooks = hooks
      rig.imap.append(box.email, 'INBOX', nested(box.email, subject))
      const callback = await until('the callback', () => receiver.all.find((one) => subjectOf(one) === subject))
      return (part(callback.body, 'message_data')['bodies'] as Json[])[0] ?? {}
    }
    const mended = await received('mended', { send: shortSection('1', 60) })
    assert.deepEqual([mended['content'], mended['truncated']], [text, undefined])
    const short = await received('cut short', { send: both(shortSection('1', 60), whole(300)) })
    assert(text.startsWith(String(short['content'])) && String(short['content']).length < text.length)
    assert.equal(short['truncated'], true)
  })
})
