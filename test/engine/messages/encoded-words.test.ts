import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import libmime from 'libmime'
import { decodeWords, maxLineLength, oneLine } from '../../../engine/messages/encoded-words.ts'
import { anySign } from '../../support/signs.ts'

const table: readonly (readonly [why: string, encoded: string, decoded: string])[] = [
  ['plain text stays', 'no words = here ?=', 'no words = here ?='],
  ['Q with underscores', '=?iso-8859-1?Q?a_b=E9?=', 'a bé'],
  ['B, lower case letter', '=?utf-8?b?w6Q=?=', 'ä'],
  ['space between words goes', '=?utf-8?Q?a?= =?utf-8?Q?b?=', 'ab'],
  ['folded words are adjacent', '=?utf-8?Q?a?=\r\n\t=?utf-8?Q?b?=', 'ab'],
  ['space beside text stays', 'x =?utf-8?Q?a?= y', 'x a y'],
  ['a character split over two words', '=?utf-8?Q?=C3?= =?utf-8?Q?=A4?=', 'ä'],
  ['the same over B and Q', '=?utf-8?B?ww==?= =?UTF-8?Q?=A4?=', 'ä'],
  ['base64 text itself split', '=?utf-8?B?SGVsb?= =?utf-8?B?G8=?=', 'Hello'],
  ['padded words', '=?utf-8?B?YQ==?= =?utf-8?B?Yg==?=', 'ab'],
  ['different charsets', '=?utf-8?Q?=C3=A4?= =?windows-1251?Q?=CF?=', 'äП'],
  ['language tag', '=?utf-8*en-GB?Q?colour?=', 'colour'],
  ['question mark inside Q', '=?utf-8?Q?really?_yes?=', 'really? yes'],
  ['space inside Q', '=?utf-8?Q?a b?=', 'a b'],
  ['a word that is never closed', '=?utf-8?Q?open =?utf-8?Q?closed?=', '=?utf-8?Q?open closed'],
  ['no encoding of that letter', '=?utf-8?Z?a?=', '=?utf-8?Z?a?='],
  ['empty word', 'a =?utf-8?Q??= b', 'a  b'],
  ['decoded once only', '=?utf-8?Q?=3D=3Futf-8=3FQ=3Fx=3F=3D?=', '=?utf-8?Q?x?='],
  ['glued to text', 'Re:=?utf-8?Q?a?=.', 'Re:a.'],
  ['broken hex stays', '=?utf-8?Q?=4=XY?=', '=4=XY'],
]

for (const [why, encoded, decoded] of table) {
  test(`decodeWords: ${why}`, () => {
    assert.equal(decodeWords(encoded), decoded)
  })
}

const words = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  .filter((text) => !/[\r\n\0]/.test(text) && !text.includes('=?'))

test('decodeWords undoes what libmime encodes, in Q and B, whole and split', () => {
  // libmime splits B words inside of surrogate pairs and loses them; how split words are joined is the next test's
  // matter.
  const form = fc.constantFrom(['Q', 0] as const, ['Q', 30] as const, ['Q', 75] as const, ['B', 0] as const)
  fc.assert(
    fc.property(words, form, (text, [encoding, length]) => {
      assert.equal(decodeWords(libmime.encodeWord(text, encoding, length)), text)
    }),
    { numRuns: 500 },
  )
})

test('decodeWords joins words cut at any byte', () => {
  fc.assert(
    fc.property(words, fc.integer({ min: 1, max: 20 }), (text, size) => {
      const bytes = Buffer.from(text)
      const cut: string[] = []
      for (let at = 0; at < bytes.length; at += size)
        cut.push(`=?utf-8?B?${bytes.subarray(at, at + size).toString('base64')}?=`)
      assert.equal(decodeWords(cut.join('\r\n ')), text)
    }),
  )
})

test('decodeWords never throws on noise made of its own signs', () => {
  const noise = fc.array(
    fc.constantFrom(
      '=?',
      '?=',
      '?',
      '=',
      'utf-8',
      'Q',
      'B',
      '?Q?',
      '?b?',
      ' ',
      '\r\n ',
      '=C3',
      'w6Q',
      '_',
      'x',
      '\ud83d',
    ),
  )
  fc.assert(
    fc.property(noise, (pieces) => {
      assert.equal(typeof decodeWords(pieces.join('')), 'string')
    }),
  )
})

test('oneLine leaves no control character and keeps within its length', () => {
  assert.equal(oneLine(' a\r\n\tb\0c ', 100), 'a b c')
  assert.equal(oneLine('😀😀', 3).isWellFormed(), true)
  fc.assert(
    fc.property(fc.string({ unit: anySign }), (text) => {
      const line = oneLine(text, 20)
      assert.ok(line.length <= 20)
      assert.doesNotMatch(line, /[\u0000-\u001f\u007f]/)
    }),
  )
})

test('a line is decoded as far as it is kept; words without number are not all decoded', () => {
  const word = '=?utf-8?q?=C3=A9?= '
  assert.equal(oneLine(decodeWords(word.repeat(20_000)), maxLineLength), 'é'.repeat(maxLineLength))
  // Processor time, so that a busy machine does not count.
  const before = process.cpuUsage()
  decodeWords('=?l1?q??= =?jis?q??= '.repeat(400_000))
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 2_000_000)
})
