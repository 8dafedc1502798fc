/**
 * Bodies in callbacks and the search in them, with a real mail server behind: what is sent, what is found, and that all
 * agree.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import iconv from 'iconv-lite'
import { part, startReceiver, type Callback, type CallbackReceiver } from '../../support/callbacks.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

const payloadMax = 300_000
const searchMax = 600_000

interface Part {
  readonly type: string
  readonly text: string | Buffer
  readonly encoding?: string
  readonly charset?: string
  readonly file?: string
}

/** A message of several parts, as they are transferred. */
function multipart(parts: readonly Part[]): Buffer {
  const head = ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary="=_b"']
  const pieces = parts.flatMap(({ type, text, encoding = '8bit', charset = 'utf-8', file }) => [
    Buffer.from(
      [
        '--=_b',
        `Content-Type: ${type}; charset=${charset}`,
        `Content-Transfer-Encoding: ${encoding}`,
        ...(file === undefined ? [] : [`Content-Disposition: attachment; filename=${file}`]),
        '\r\n',
      ].join('\r\n'),
    ),
    Buffer.from(text as string),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), ...pieces, Buffer.from('--=_b--\r\n')])
}

/** Lines of prose, about so many bytes. */
function prose(bytes: number, line = 'Lorem ipsum dolor sit amet, consetetur sadipscing elitr.'): string {
  return `${line}\r\n`.repeat(Math.ceil(bytes / (Buffer.byteLength(line) + 2)))
}

suite('bodies of callbacks', () => {
  let rig: LiteRig
  let receiver: CallbackReceiver
  let box: TestMailbox
  before(async () => {
    const env = {
      MAILROOM_WEBHOOK_PAYLOAD_MAX: String(payloadMax),
      MAILROOM_BODY_SEARCH_MAX: String(searchMax),
    }
    rig = await startLiteRig({ env })
    receiver = await startReceiver()
    box = await rig.mailbox('bodo')
  })
  after(async () => {
    await rig.close()
    await receiver.close()
  })

  let hooks = 0
  /** A webhook of its own, the message, and what became of it. */
  async function told(
    what: string,
    message: Buffer,
    wishes: Json,
  ): Promise<{ readonly row: Json; readonly callback: Callback | undefined; readonly verdicts: readonly Json[][] }> {
    const path = `/hook${(hooks += 1)}`
    const subject = `${what} ${hooks}`
    const head = `From: Ada <ada@sender.example>\r\nSubject: ${subject}\r\nMessage-ID: <hook${hooks}@sender.example>\r\n`
    const base = `/lite/users/${box.userId}/webhooks`
    const body = { callback_url: receiver.url + path, filter_subject: subject, ...wishes }
    const webhook = String((await rig.ok('POST', base, body))['webhook_id'])
    const id = await box.deliverRaw(Buffer.concat([Buffer.from(head), message]), subject)
    const row = await until('the row has ended', async () => {
      const [only] = await rig.list(`${base}/${webhook}/deliveries`)
      return only?.['state'] === 'pending' ? null : only
    })
    const dry = (await rig.list(`${base}/${webhook}/dry_run?limit=100`)).find((one) => one['message_id'] === id)
    assert(dry)
    const explained = await rig.ok('GET', `${box.path}/messages/${id}/explain?webhook_id=${webhook}`)
    await rig.ok('DELETE', `${base}/${webhook}`)
    const verdicts = [dry, explained].map((one) => one['filters'] as Json[])
    return { row, callback: receiver.all.find((one) => one.path === path), verdicts }
  }

  const searchVerdict = (verdicts: readonly Json[]) => verdicts.find(({ filter }) => filter === 'body_search')
  const bodiesOf = (callback: Callback | undefined) => {
    assert(callback)
    return part(callback.body, 'message_data')['bodies'] as Json[]
  }

  suite('body_search', () => {
    test('finds what stands at the end of a large body', async () => {
      const raw = multipart([{ type: 'text/plain', text: `${prose(468_000)}the needle\r\n` }])
      const { row, verdicts } = await told('long one', raw, { body_search: 'needle' })
      assert.deepEqual([row['state'], row['reason']], ['delivered', null])
      for (const one of verdicts) assert.equal(searchVerdict(one)?.['matched'], true)
    })

    test('looks through every text part, whatever body_type says', async () => {
      const raw = multipart([
        { type: 'text/plain', text: 'only hay' },
        { type: 'text/html', text: '<p>the <b>need</b>le</p>' },
      ])
      const wishes = { body_search: 'needle', include_body: 1, body_type: 'text/plain' }
      const { row, callback, verdicts } = await told('two types', raw, wishes)
      assert.equal(row['state'], 'delivered')
      for (const one of verdicts) assert.equal(searchVerdict(one)?.['matched'], true)
      assert.deepEqual(
        bodiesOf(callback).map(({ type, content }) => [type, content]),
        [['text/plain', 'only hay']],
      )
    })

    test('and through attached text files, in their own charset', async () => {
      const raw = multipart([
        { type: 'text/plain', text: 'see the file' },
        { type: 'text/csv', text: iconv.encode('имя;иголка\r\n', 'koi8-r'), charset: 'koi8-r', file: 'names.csv' },
        { type: 'image/png', text: 'иголка', file: 'x.png' },
      ])
      const { row, verdicts } = await told('attached', raw, { body_search: 'иголка' })
      assert.equal(row['state'], 'delivered')
      for (const one of verdicts) assert.equal(searchVerdict(one)?.['matched'], true)
      const other = await told('attached', raw, { body_search: 'PNG' })
      assert.match(String(other.row['reason']), /^body_search: none of 2 text parts matches PNG$/)
    })

    test('what lies beyond the limit is too large to search, which is no "no match"; all say the same', async () => {
      const raw = multipart([
        { type: 'text/plain', text: prose(100_000) },
        { type: 'text/html', text: `${prose(searchMax)}needle` },
      ])
      // Also when the callback would carry less, or other, text.
      for (const more of [{}, { include_body: 1 }, { include_body: 1, body_type: 'text/html' }]) {
        const { row, callback, verdicts } = await told('too long', raw, { body_search: 'needle', ...more })
        assert.deepEqual([row['state'], row['reason']], ['skipped', 'body_search: too large to search'])
        assert.equal(callback, undefined)
        for (const one of verdicts) {
          assert.deepEqual(searchVerdict(one), {
            filter: 'body_search',
            matched: false,
            why: 'too large to search',
          })
        }
        const before = await told('too long', raw, { body_search: 'lorem', ...more })
        assert.equal(before.row['state'], 'delivered', 'what lies before it is found')
      }
    })

    test('and no match is no match, up to the last byte of the limit', async () => {
      const text = Buffer.alloc(searchMax, 'hay ')
      const fits = await told('fits', multipart([{ type: 'text/plain', text }]), { body_search: 'needle' })
      assert.deepEqual(
        [fits.row['state'], fits.row['reason']],
        ['skipped', 'body_search: none of 1 text parts matches needle'],
      )
      for (const one of fits.verdicts) assert.match(String(searchVerdict(one)?.['why']), /^none of 1 text parts/)
    })
  })

  suite('include_body', () => {
    test('what fits is whole, however long its encoding', async () => {
      const dozen = Array.from(Buffer.from('Ж'.repeat(12)), (byte) => `=${byte.toString(16)}`).join('')
      const raw = multipart([
        { type: 'text/plain', text: `${dozen}=\r\n${dozen}\r\n`.repeat(4000), encoding: 'quoted-printable' },
      ])
      assert(raw.length > payloadMax * 1.5)
      const { callback } = await told('printable', raw, { include_body: 1 })
      const content = `${'Ж'.repeat(24)}\n`.repeat(4000)
      assert.deepEqual(bodiesOf(callback), [{ type: 'text/plain', charset: 'utf-8', body_section: '1', content }])
    })

    test('a part that does not fit is cut at a character, says so, and leads to the whole; none is left out', async () => {
      const html = prose(2 * payloadMax, '<p>"Grüße" & 漢字 😀</p>')
      const raw = multipart([
        { type: 'text/html', text: html },
        { type: 'text/plain', text: 'the short form' },
      ])
      const { row, callback } = await told('large', raw, { include_body: 1 })
      assert.equal(row['state'], 'delivered')
      assert(callback)
      const size = Buffer.byteLength(callback.raw)
      assert(size <= payloadMax && size > payloadMax - 300, `${size} bytes`)
      const [short, long, ...others] = bodiesOf(callback)
      assert.equal(others.length, 0)
      assert.deepEqual(short, { type: 'text/plain', charset: 'utf-8', body_section: '2', content: 'the short form' })
      assert(long)
      const { content, link, ...rest } = long
      assert.deepEqual(rest, {
        type: 'text/html',
        charset: 'utf-8',
        body_section: '1',
        truncated: true,
        size: Buffer.byteLength(html),
      })
      assert.equal(part(callback.body, 'message_data')['truncated'], true)
      const { pathname, search } = new URL(String(link))
      const [whole] = (await rig.ok('GET', pathname + search))['bodies'] as Json[]
      const text = html.replaceAll('\r\n', '\n')
      assert.equal(whole?.['content'], text)
      assert(text.startsWith(String(content)) && !String(content).endsWith('\ufffd'))
    })

    test('two that are large both come, text/plain as whole as it may be', async () => {
      const plain = prose(payloadMax * 0.8)
      const raw = multipart([
        { type: 'text/html', text: prose(payloadMax) },
        { type: 'text/plain', text: plain },
      ])
      const { callback } = await told('both large', raw, { include_body: 1 })
      assert(callback)
      assert(Buffer.byteLength(callback.raw) <= payloadMax)
      const [first, second] = bodiesOf(callback)
      assert.equal(first?.['content'], plain.replaceAll('\r\n', '\n'))
      assert.equal(first['truncated'], undefined)
      assert.equal(second?.['truncated'], true)
      assert(String(second['content']).length > 10_000)
    })
  })
})
