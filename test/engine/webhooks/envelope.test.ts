/** The bound on a callback's size: whatever its texts are, it is JSON within it, and says what was cut. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createPace, jsonPrefix, type LinkedText, signCallback } from '../../../engine/webhooks/envelope.ts'
import { anySign } from '../../support/signs.ts'

const keys = { apiSecret: 'secret', webhookSecrets: [] }
const awkward = fc.oneof(
  fc.string({ unit: anySign, maxLength: 30 }),
  fc.constantFrom('"', '\\', '\n', '\u0001', 'é', '漢', '😀', '\ud800', '\udc00', '\u2028', 'plain words '),
)
const text = fc
  .tuple(fc.array(awkward, { maxLength: 6 }), fc.integer({ min: 1, max: 400 }))
  .map(([pieces, times]) => pieces.join('').repeat(times))

function linked(content: string, whole: boolean): LinkedText {
  const part = {
    section: '1',
    type: 'text/plain',
    charset: 'utf-8',
    encoding: '8bit',
    size: 9,
    flowed: false,
    delSp: false,
  }
  const { bytes } = jsonPrefix(content, Number.POSITIVE_INFINITY)
  return { part, text: content, bytes, whole, link: 'https://mail.example/whole' }
}

interface Shown {
  readonly content: string
  readonly truncated?: true
  readonly size?: number
  readonly link?: string
}

async function sent(texts: readonly LinkedText[], maxBytes: number, extra: Record<string, unknown> = {}) {
  const bodies = texts.map(() => ({ type: 'text/plain', charset: 'utf-8', body_section: '1' }))
  const body = { account_id: 'a', message_data: { subject: 's', bodies, ...extra } }
  const signed = await signCallback({ id: 'row' }, { body, texts }, keys, { now: 0, maxBytes, pace: createPace() })
  const data = (JSON.parse(signed.body.toString()) as { message_data: Record<string, unknown> }).message_data
  return { size: signed.body.length, data, shown: data['bodies'] as Shown[] }
}

suite('the size of a callback', () => {
  test('jsonPrefix counts what JSON.stringify writes, and never cuts a character', () => {
    fc.assert(
      fc.property(text, fc.nat(3000), (content, room) => {
        const { end, bytes } = jsonPrefix(content, room)
        const prefix = content.slice(0, end)
        assert.equal(Buffer.byteLength(JSON.stringify(prefix)) - 2, bytes)
        assert.ok(bytes <= room)
        assert.equal(prefix.isWellFormed() || !content.isWellFormed(), true)
        const next = String.fromCodePoint(...[content.codePointAt(end)].filter((one) => one !== undefined))
        assert.ok(
          end === content.length || bytes + Buffer.byteLength(JSON.stringify(next)) - 2 > room,
          'no room is left',
        )
      }),
    )
  })

  test('is never more than the bound, and every part is there as far as it fits', async () => {
    const some = fc.array(fc.tuple(text, fc.boolean()), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(some, fc.integer({ min: 3000, max: 20_000 }), async (contents, maxBytes) => {
        const texts = contents.map(([content, whole]) => linked(content, whole))
        const { size, shown, data } = await sent(texts, maxBytes)
        assert.ok(size <= maxBytes, `${size} of ${maxBytes}`)
        assert.equal(shown.length, texts.length)
        for (const [index, { text: content, whole, bytes }] of texts.entries()) {
          const { content: given, ...rest }: Shown = shown[index] ?? assert.fail()
          // JSON knows no lone half of a pair; parsed, it is the same text.
          assert.ok(content.startsWith(given))
          const cut = given.length < content.length || !whole
          assert.equal('truncated' in rest, cut)
          if (cut) assert.deepEqual([rest.size, rest.link, data['truncated']], [9, 'https://mail.example/whole', true])
          const least = Math.min(bytes, maxBytes / 8 / texts.length - 16)
          assert.ok(Buffer.byteLength(JSON.stringify(given)) - 2 >= least, 'none is left out because another is large')
        }
        if (texts.every(({ whole }) => whole) && size < maxBytes - 2000) assert.equal(data['truncated'], undefined)
      }),
      { numRuns: 300 },
    )
  })

  test('the first ones get what they want', async () => {
    const [first, second] = [linked('a'.repeat(9000), true), linked('b'.repeat(9000), true)]
    const { shown, size } = await sent([first, second], 10_240)
    assert.deepEqual(
      shown.map(({ content, truncated }) => [content.length > 0, truncated]),
      [
        [true, undefined],
        [true, true],
      ],
    )
    assert.ok(size > 10_000)
  })

  test('headers that would take the room of the texts are left out', async () => {
    const { shown, data, size } = await sent([linked('short', true)], 4096, { headers: 'x'.repeat(4000) })
    assert.deepEqual([shown[0]?.content, data['headers'], data['truncated']], ['short', undefined, true])
    assert.ok(size <= 4096)
  })

  test('a thousand parts are bounded too', async () => {
    const texts = Array.from({ length: 1000 }, () => linked('word '.repeat(100), true))
    const { size, shown } = await sent(texts, 65_536)
    assert.ok(size <= 65_536)
    assert.ok(shown.length >= 50)
  })
})
