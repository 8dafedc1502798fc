import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import iconv from 'iconv-lite'
import { decodeBody, unflow } from '../../../engine/messages/bodies.ts'

const plain = { type: 'text/plain', charset: 'utf-8', encoding: '8bit', flowed: false, delSp: false }

test('decodeBody: transfer encoding, charset, line ends', () => {
  assert.equal(decodeBody(Buffer.from('a\r\nb\n'), plain), 'a\nb\n')
  assert.equal(
    decodeBody(Buffer.from('=E4=\r\n!'), { ...plain, encoding: 'quoted-printable', charset: 'iso-8859-1' }),
    'ä!',
  )
  assert.equal(decodeBody(Buffer.from('w6Q'), { ...plain, encoding: 'base64' }), 'ä')
  assert.equal(decodeBody(Buffer.alloc(0), plain), '')
})

test('decodeBody: HTML without a declared charset says it itself', () => {
  const html = (meta: string): Buffer => Buffer.concat([Buffer.from(`<html><head>${meta}</head>`), Buffer.from([0xcf])])
  const part = { ...plain, type: 'text/html', charset: null }
  assert.match(decodeBody(html('<meta charset=windows-1251>'), part), /П$/)
  assert.match(decodeBody(html('<META http-equiv="x" content="text/html; charset=windows-1251">'), part), /П$/)
  assert.match(decodeBody(html('<meta charset=utf-16>'), part), /Ï$/)
  assert.match(decodeBody(html(''), part), /Ï$/)
  assert.match(decodeBody(html('<meta charset=windows-1251>'), { ...part, charset: 'windows-1252' }), /Ï$/)
  assert.match(decodeBody(html('<meta charset=windows-1251>'), { ...part, charset: 'us-ascii' }), /П$/)
})

test('decodeBody: a text cut at a limit is still in its charset', () => {
  const bytes = Buffer.from('é'.repeat(10))
  assert.equal(decodeBody(bytes.subarray(0, 19), plain), `${'é'.repeat(9)}\ufffd`)
  assert.equal(decodeBody(bytes.subarray(0, 19), { ...plain, charset: null }), `${'é'.repeat(9)}\ufffd`)
})

suite('decodeBody: what was cut at a limit ends with a whole character', () => {
  const text = 'Grüße 漢字かな'.repeat(6)
  const emoji = 'a😀b'.repeat(20)
  const encoded: readonly (readonly [charset: string, text: string])[] = [
    ...['utf-8', 'utf-16', 'utf-16le', 'utf-16be', 'utf-32le', 'utf-32be', 'gb18030'].flatMap((charset) => [
      [charset, text] as const,
      [charset, emoji] as const,
    ]),
    ...['shift_jis', 'euc-jp', 'big5', 'cp949'].map((charset) => [charset, '漢字'.repeat(20)] as const),
  ]
  for (const [charset, whole] of encoded) {
    for (const encoding of ['8bit', 'base64', 'quoted-printable']) {
      test(`${charset}, ${encoding}, ${whole.slice(0, 3)}…`, () => {
        const bytes = transferred(iconv.encode(whole, charset), encoding)
        const part = { ...plain, charset, encoding }
        for (let end = 40; end < bytes.length; end += 1) {
          const read = decodeBody(bytes.subarray(0, end), part, true)
          assert.ok(whole.startsWith(read), `${end}: ${JSON.stringify(read.slice(-5))}`)
          assert.ok(end < 100 || read.length > 0, `${end}: nothing`)
        }
        assert.equal(decodeBody(bytes, part), whole)
      })
    }
  }

  test('iso-2022-jp', () => {
    const whole = '漢字かなabc'.repeat(9)
    const bytes = Buffer.from('\x1b$B4A;z$+$J\x1b(Babc'.repeat(9))
    assert.equal(decodeBody(bytes, { ...plain, charset: 'iso-2022-jp' }), whole)
    for (let end = 1; end < bytes.length; end += 1) {
      const read = decodeBody(bytes.subarray(0, end), { ...plain, charset: 'iso-2022-jp' }, true)
      assert.ok(whole.startsWith(read), `${end}: ${JSON.stringify(read.slice(-5))}`)
    }
  })

  test('also where no charset is declared', () => {
    const bytes = Buffer.from('é'.repeat(10))
    assert.equal(decodeBody(bytes.subarray(0, 19), { ...plain, charset: null }, true), 'é'.repeat(9))
  })
})

function transferred(bytes: Buffer, encoding: string): Buffer {
  if (encoding === '8bit') return bytes
  if (encoding === 'base64') return Buffer.from(bytes.toString('base64'))
  return Buffer.from(Array.from(bytes, (byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''))
}

const flowed: readonly (readonly [why: string, text: string, delSp: boolean, joined: string])[] = [
  ['joins after a space', 'a \nb\nc', false, 'a b\nc'],
  ['delsp takes the space', 'a \nb', true, 'ab'],
  ['signature line', 'a \n-- \nme', false, 'a \n-- \nme'],
  ['stuffing', ' >not quoted\n From', false, '>not quoted\nFrom'],
  ['quotes of one depth', '> a \n> b\n', false, '> a b\n'],
  ['quotes of different depth', '> a \n>> b', false, '> a \n>> b'],
  ['empty quoted line', '>\n> a', false, '>\n> a'],
  ['nothing follows', 'a ', false, 'a '],
  ['empty', '', false, ''],
]

for (const [why, text, delSp, joined] of flowed) {
  test(`unflow: ${why}`, () => {
    assert.equal(unflow(text, delSp), joined)
  })
}

test('unflow leaves text without trailing spaces and marks alone', () => {
  const line = fc.string({ unit: 'grapheme-ascii', maxLength: 20 }).map((text) => text.replace(/^[> ]+/, '').trimEnd())
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      assert.equal(unflow(lines.join('\n'), true), lines.join('\n'))
    }),
  )
})

test('decodeBody never throws', () => {
  const part = fc.record({
    type: fc.constantFrom('text/plain', 'text/html'),
    charset: fc.option(fc.constantFrom('utf-8', 'iso-2022-jp', 'utf-7', 'gb18030', 'nonsense', 'utf-16')),
    encoding: fc.constantFrom('base64', 'quoted-printable', '8bit', ''),
    flowed: fc.boolean(),
    delSp: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), part, (bytes, one) => {
      assert.ok(decodeBody(bytes, one).isWellFormed())
    }),
    { numRuns: 1000 },
  )
})
