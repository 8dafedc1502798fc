import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseStructured, resolveParameters } from '../../../engine/messages/headers.ts'
import { anySign } from '../../support/signs.ts'

const table: readonly (readonly [text: string, value: string, parameters: Record<string, string>])[] = [
  ['text/plain', 'text/plain', {}],
  ['TEXT/Plain; CharSet="UTF-8"', 'text/plain', { charset: 'UTF-8' }],
  ['text/plain (comment; x=y); a=b', 'text/plain', { a: 'b' }],
  ['text/plain; charset=us-ascii (Plain text)', 'text/plain', { charset: 'us-ascii' }],
  ['a/b; name=Invoice(1).pdf', 'a/b', { name: 'Invoice(1).pdf' }],
  ['a/b; name="x;y=z"; b=c', 'a/b', { name: 'x;y=z', b: 'c' }],
  ['a/b; name="C:\\dir\\x.doc"', 'a/b', { name: 'C:\\dir\\x.doc' }],
  ['a/b; name="a\\"b\\\\c"', 'a/b', { name: 'a"b\\c' }],
  ['a/b; flag; x=1', 'a/b', { x: '1' }],
  ['a/b; x=1; x=2', 'a/b', { x: '1' }],
  ['a/b; x="unclosed; y=2', 'a/b', { x: 'unclosed; y=2' }],
  ['a/b; x="v"junk; y=2', 'a/b', { x: 'v', y: '2' }],
  ['a/b;;;x = 1 ;', 'a/b', { x: '1' }],
  ['', '', {}],
  [';;;=', '', {}],
  [`attachment; filename*=UTF-8''%e2%82%ac.txt`, 'attachment', { filename: '€.txt' }],
  [`attachment; filename=plain; filename*=utf-8'en'ext`, 'attachment', { filename: 'ext' }],
  [`attachment; filename*1*=%A4b; filename*0*=utf-8''%C3`, 'attachment', { filename: 'äb' }],
  ['attachment; filename*0="a "; filename*1="b"', 'attachment', { filename: 'a b' }],
  [`attachment; filename*0*=utf-8''%41; filename*1="%42"`, 'attachment', { filename: 'A%42' }],
  [`attachment; filename*=%41`, 'attachment', { filename: 'A' }],
  [`attachment; filename*=no-such''%C3%A4`, 'attachment', { filename: 'ä' }],
  [`attachment; filename="utf-8''%C3%A4.txt"`, 'attachment', { filename: 'ä.txt' }],
  [`attachment; filename="it's 100% 'fine'"`, 'attachment', { filename: `it's 100% 'fine'` }],
  ['attachment; filename="=?utf-8?Q?=C3=A4?="', 'attachment', { filename: 'ä' }],
  ['attachment; filename="\u00c3\u00a4"', 'attachment', { filename: 'ä' }],
  ['attachment; filename="\u00e4"', 'attachment', { filename: 'ä' }],
]

for (const [text, value, parameters] of table) {
  test(`parseStructured: ${text}`, () => {
    assert.deepEqual(parseStructured(text), { value, parameters })
  })
}

test('resolveParameters leaves resolved parameters alone and survives odd names', () => {
  assert.deepEqual(resolveParameters({ filename: 'naïve €.txt', Name: 'x' }), { filename: 'naïve €.txt', name: 'x' })
  const odd = resolveParameters(
    Object.fromEntries([
      ['__proto__', 'a'],
      ['constructor*0', 'b'],
      ['*', 'c'],
    ]),
  )
  assert.deepEqual(Object.keys(odd).toSorted(), ['*', '__proto__', 'constructor'])
  assert.equal(Object.getPrototypeOf(odd), Object.prototype)
})

test('RFC 2231 values are read back however they are cut', () => {
  const percent = (bytes: Buffer): string =>
    Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  fc.assert(
    fc.property(
      fc.string({ unit: anySign, minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 9 }),
      (name, size) => {
        const bytes = Buffer.from(name)
        const wanted = bytes.toString().replace(/^\ufeff/, '')
        const cut: string[] = []
        for (let at = 0; at < bytes.length; at += size) {
          const prefix = at === 0 ? "utf-8''" : ''
          cut.push(`filename*${at / size}*=${prefix}${percent(bytes.subarray(at, at + size))}`)
        }
        assert.equal(parseStructured(`attachment; ${cut.toReversed().join(';\r\n ')}`).parameters['filename'], wanted)
      },
    ),
  )
})

test('parseStructured never throws', () => {
  const noise = fc.array(
    fc.constantFrom(
      'a',
      '/',
      ';',
      '=',
      '"',
      '\\',
      '(',
      ')',
      "'",
      '*',
      '*0*=',
      '*1=',
      '%41',
      '%',
      ' ',
      '=?utf-8?Q?',
      '?=',
      'ä',
    ),
  )
  fc.assert(
    fc.property(noise, (pieces) => {
      assert.equal(typeof parseStructured(pieces.join('')).value, 'string')
    }),
    { numRuns: 2000 },
  )
})
