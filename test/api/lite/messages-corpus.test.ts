/**
 * The corpus of hard mail on real Dovecot, through the API: what must be found in each message is found, and every file
 * is the file.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { corpus, type CorpusMessage } from '../../support/corpus/index.ts'
import { needs } from '../../support/require.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig } from './messages-rig.ts'

interface WireBody {
  readonly body_section: string
  readonly type: string
  readonly charset?: string
  readonly content?: string
  readonly size: number
}

interface WireAttachment {
  readonly body_section: string
  readonly type: string
  readonly file_name: string
  readonly attachment_id: number
  readonly size: number
}

interface WireMessage extends Json {
  readonly message_id: string
  readonly subject: string
  readonly email_message_id: string
  readonly bodies: readonly WireBody[]
  readonly attachments: readonly WireAttachment[]
  readonly addresses: { readonly to?: readonly Json[] }
}

suite('the corpus through the API', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  const messages = corpus.filter(({ appendable }) => appendable)
  const byMessage = new Map<CorpusMessage, WireMessage>()

  before(async () => {
    rig = await startMessageRig()
    mailbox = await rig.mailbox(
      'corpus',
      messages.map(({ raw }) => raw),
    )
    const listed = new Map<string, WireMessage>()
    for (let offset = 0; offset < messages.length; offset += 50) {
      const page = (await rig.list(
        `${mailbox.path}/messages?include_body=1&limit=50&offset=${offset}`,
      )) as WireMessage[]
      for (const message of page) listed.set(message.message_id, message)
    }
    for (const [index, message] of messages.entries()) {
      const found = listed.get(await mailbox.idOf(index + 1))
      if (found !== undefined) byMessage.set(message, found)
    }
  })
  after(() => rig.close())

  const wire = (message: CorpusMessage): WireMessage => {
    const found = byMessage.get(message)
    assert(found, `${message.name} is not listed`)
    return found
  }

  for (const message of messages) {
    test(`${message.name}: headers and bodies`, () => {
      const { expected } = message
      const found = wire(message)
      assert.equal(found['body_error'], undefined)
      if (expected.subject !== undefined) assert.equal(found.subject, expected.subject)
      if (expected.emailMessageId) assert.equal(found.email_message_id, `<${expected.emailMessageId}>`)
      if (expected.emailMessageId === null) assert.equal(found.email_message_id, '')
      if (expected.toCount !== undefined) assert.equal(found.addresses.to?.length, expected.toCount)
      for (const body of found.bodies) assert.equal(body.charset, 'utf-8')
      if (expected.bodies === undefined) return
      const wanted = expected.bodies.map(({ section, type }) => ({ section, type }))
      assert.deepEqual(
        found.bodies.map(({ body_section: section, type }) => ({ section, type })),
        wanted,
      )
      for (const { section, text, size } of expected.bodies) {
        const body = found.bodies.find((one) => one.body_section === section)
        if (text !== undefined) assert.equal(body?.content, text)
        if (size !== undefined) assert.equal(body?.size, size)
      }
    })
  }

  for (const message of messages.filter(({ expected }) => (expected.attachments ?? []).length > 0)) {
    test(`${message.name}: attachments, byte for byte`, async () => {
      const found = wire(message)
      const wanted = message.expected.attachments ?? []
      const path = `${mailbox.path}/folders/INBOX/messages/${found.message_id}/attachments`
      const list = (await rig.list(path)) as unknown as WireAttachment[]
      assert.deepEqual(list, found.attachments)
      assert.deepEqual(
        list.map(({ body_section: section, type, file_name: fileName, attachment_id: id }) => ({
          section,
          type,
          fileName,
          id,
        })),
        wanted.map(({ section, type, fileName }, id) => ({ section, type, fileName, id })),
      )
      for (const [id, { content, type }] of wanted.entries()) {
        const answer = await rig.call('GET', `${path}/${id}`)
        assert.equal(answer.status, 200, answer.bytes.toString())
        assert.equal(answer.headers['content-type'], type)
        assert.match(answer.headers['content-disposition'] ?? '', /^attachment; filename="[ !#-.0-[\]-~]+"$/)
        if (content !== undefined) assert(answer.bytes.equals(content), `${message.name} ${id}`)
      }
    })
  }

  test('a multipart without parts, longer than what is read to find them, has its whole size', async () => {
    const text = 'just text, and much of it\r\n'.repeat(200_000)
    const headers = 'Subject: long\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed\r\n\r\n'
    const long = await rig.mailbox('long', [headers + text])
    const [found] = (await rig.list(`${long.path}/messages`)) as WireMessage[]
    assert(found)
    assert.deepEqual(
      found.bodies.map(({ body_section: section, type, size }) => ({ section, type, size })),
      [{ section: 'TEXT', type: 'text/plain', size: text.length }],
    )
    const { bodies } = (await rig.ok(`${long.path}/messages/${found.message_id}/body`)) as unknown as WireMessage
    assert(bodies[0]?.content === text.replaceAll('\r\n', '\n'))
  })

  test('every message is given raw as it was appended', async () => {
    for (const message of messages) {
      const answer = await rig.call('GET', `${mailbox.path}/messages/${wire(message).message_id}/raw`)
      assert.equal(answer.headers['content-type'], 'message/rfc822')
      assert.equal(answer.bytes.toString('latin1'), withCrlf(message.raw).toString('latin1'), message.name)
    }
  })
})

/** IMAP servers give lines with CRLF, whatever was appended. */
function withCrlf(raw: Buffer): Buffer {
  return Buffer.from(raw.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1')
}
