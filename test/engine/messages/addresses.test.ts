import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { domainOf, domainsOf, parseAddresses } from '../../../engine/messages/addresses.ts'

type Pair = readonly [name: string, email: string]

const table: readonly (readonly [text: string, pairs: readonly Pair[]])[] = [
  ['', []],
  ['<>', []],
  [' , ,; ', []],
  ['a@b.c', [['', 'a@b.c']]],
  ['<a@b.c>', [['', 'a@b.c']]],
  ['Ann <Ann@EXAMPLE.Com>', [['Ann', 'Ann@example.com']]],
  [
    'Ann M. Other <a@b.c>, Bob <b@c.d>',
    [
      ['Ann M. Other', 'a@b.c'],
      ['Bob', 'b@c.d'],
    ],
  ],
  ['"Other, Ann" <a@b.c>', [['Other, Ann', 'a@b.c']]],
  ['"back\\\\slash \\"q\\"" <a@b.c>', [['back\\slash "q"', 'a@b.c']]],
  ['a@b.c (Ann (the first) Other)', [['Ann (the first) Other', 'a@b.c']]],
  ['Ann (work) <a@b.c>', [['Ann', 'a@b.c']]],
  ['(only) <a@b.c>', [['only', 'a@b.c']]],
  ['"a b"@c.d', [['', '"a b"@c.d']]],
  ['X <"a@b"@c.d>', [['X', '"a@b"@c.d']]],
  ['"a@b.c"', [['a@b.c', '']]],
  ['"a@b.c" <real@x.y>', [['a@b.c', 'real@x.y']]],
  ['a @ b.c', [['', 'a@b.c']]],
  ['Ann a@b.c', [['Ann', 'a@b.c']]],
  ['a@b.c Ann', [['Ann', 'a@b.c']]],
  [
    'Team: a@b.c, Bob <b@c.d>; x@y.z',
    [
      ['', 'a@b.c'],
      ['Bob', 'b@c.d'],
      ['', 'x@y.z'],
    ],
  ],
  ['undisclosed-recipients:;', []],
  ['"Group, quoted": a@b.c;', [['', 'a@b.c']]],
  ['outer: inner: a@b.c;;', [['', 'a@b.c']]],
  ['<@r1,@r2:a@b.c>', [['', 'a@b.c']]],
  [
    'a@b.c; d@e.f',
    [
      ['', 'a@b.c'],
      ['', 'd@e.f'],
    ],
  ],
  ['a@[IPv6:2001:db8::1]', [['', 'a@[ipv6:2001:db8::1]']]],
  ['<mailto:a@b.c>', [['', 'a@b.c']]],
  ['mailto:a@b.c', [['', 'a@b.c']]],
  ["'a@b.c' <'a@b.c'>", [["'a@b.c'", 'a@b.c']]],
  ['Ann <a@b.c', [['Ann', 'a@b.c']]],
  [
    'Ann <a@b.c, Bob <b@c.d>',
    [
      ['Ann', 'a@b.c'],
      ['Bob', 'b@c.d'],
    ],
  ],
  ['Ann < <a@b.c>', [['Ann', 'a@b.c']]],
  ['Ann <a@b.c> trailing', [['Ann trailing', 'a@b.c']]],
  ['Ann <a@b.c> <d@e.f>', [['Ann', 'a@b.c']]],
  ['"unclosed <a@b.c>', [['"unclosed', 'a@b.c']]],
  ['Ann (unclosed <a@b.c>', [['Ann (unclosed', 'a@b.c']]],
  ['root', [['root', '']]],
  ['<root>', [['', 'root']]],
  ['=?utf-8?Q?J=C3=B6rg?= =?utf-8?Q?_M?= <j@b.c>', [['Jörg M', 'j@b.c']]],
  ['=?utf-8?Q?Last,_First_(x)?= <j@b.c>', [['Last, First (x)', 'j@b.c']]],
  ['"=?utf-8?Q?J=C3=B6rg?=" <j@b.c>', [['Jörg', 'j@b.c']]],
  ['=?utf-8?Q?a=40b.c?=', [['a@b.c', '']]],
  ['=?utf-8?Q?x=0D=0ABcc:_e@v.il?= <a@b.c>', [['x Bcc: e@v.il', 'a@b.c']]],
  ['J\u00fcrgen <j@B\u00dcCHER.example>', [['Jürgen', 'j@bücher.example']]],
  ['a@b@c.d', [['', 'a@b@c.d']]],
  ['Ann <a b@c.d>', [['Ann', 'ab@c.d']]],
]

for (const [text, pairs] of table) {
  test(`parseAddresses: ${text}`, () => {
    assert.deepEqual(
      parseAddresses(text).map(({ name, email }) => [name, email]),
      pairs,
    )
  })
}

test('parseAddresses reads back any list of quoted names', () => {
  const name = fc
    .string({ unit: 'grapheme-ascii', maxLength: 30 })
    .map((text) => text.trim())
    .filter((text) => !text.includes('=?'))
  const address = fc.record({ name, email: fc.emailAddress() })
  fc.assert(
    fc.property(fc.array(address, { maxLength: 20 }), (list) => {
      const text = list.map((one) => `"${one.name.replace(/["\\]/g, '\\$&')}" <${one.email}>`).join(', ')
      const wanted = list.map((one) => {
        const at = one.email.lastIndexOf('@')
        return { name: one.name, email: one.email.slice(0, at) + one.email.slice(at).toLowerCase() }
      })
      assert.deepEqual(parseAddresses(text), wanted)
    }),
  )
})

test('parseAddresses never throws on noise made of its own signs, and never gives an empty entry', () => {
  const noise = fc.array(
    fc.constantFrom(
      '<',
      '>',
      '(',
      ')',
      '"',
      '\\',
      ',',
      ';',
      ':',
      '@',
      '[',
      ']',
      ' ',
      'a',
      'b.c',
      '=?utf-8?Q?',
      '?=',
      'é',
    ),
  )
  fc.assert(
    fc.property(noise, (pieces) => {
      for (const { name, email } of parseAddresses(pieces.join(''))) {
        assert.ok(name !== '' || email !== '')
        assert.doesNotMatch(name + email, /[\r\n\0]/)
      }
    }),
    { numRuns: 2000 },
  )
})

test('parseAddresses stops at its limit', () => {
  assert.equal(parseAddresses('a@b.c,'.repeat(20_000)).length, 1_000)
  assert.equal(parseAddresses('a@b.c,'.repeat(10), 3).length, 3)
})

test('domainsOf: the domain and its parents, in both spellings', () => {
  assert.deepEqual(domainsOf('a@Mail.Example.COM'), ['mail.example.com', 'example.com', 'com'])
  assert.deepEqual(domainsOf('"x@y"@b.c.'), ['b.c', 'c'])
  assert.deepEqual(domainsOf('nobody'), [])
  assert.deepEqual(domainsOf('a@'), [])
  assert.deepEqual(domainsOf('a@bücher.рф'), ['bücher.рф', 'рф', 'xn--bcher-kva.xn--p1ai', 'xn--p1ai'])
  assert.deepEqual(domainsOf('a@bücher.example'), ['bücher.example', 'example', 'xn--bcher-kva.example'])
  assert.deepEqual(domainsOf('a@xn--bcher-kva.example'), ['xn--bcher-kva.example', 'example', 'bücher.example'])
  assert.equal(domainOf('a@B.C'), 'b.c')
})
