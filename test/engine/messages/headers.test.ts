import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  cappedReferences,
  headerBlockText,
  headerFields,
  headerObject,
  messageIdsOf,
  ownMessageId,
  rawValues,
  readAppended,
  readHeaders,
} from '../../../engine/messages/headers.ts'

test('headerObject: order, repeated fields, folding, decoding', () => {
  const block = Buffer.from(
    'Received: one\r\nSubject: =?utf-8?Q?=C3=A4?=\r\n b\r\nRECEIVED:two\r\nX-Empty:\r\nTo : a@b.c\r\n__proto__: x\r\n\r\nBody: no\r\n',
  )
  const headers = headerObject(block)
  assert.deepEqual(Object.entries(headers), [
    ['received', ['one', 'two']],
    ['subject', ['ä b']],
    ['x-empty', ['']],
    ['to', ['a@b.c']],
    ['__proto__', ['x']],
  ])
  assert.equal(Object.getPrototypeOf(headers), Object.prototype)
})

test('headerFields: bare LF, noise lines, a name with spaces, a block without an end', () => {
  const names = headerFields(Buffer.from('From x Mon\nA: 1\nnoise\n not of A\nB b: 2\nC:3')).map(
    ({ name, raw }) => `${name}=${raw}`,
  )
  assert.deepEqual(names, ['a=1', 'c=3'])
})

test('tens of thousands of fields are all there; hostile numbers are bounded', () => {
  const block = (count: number) => Buffer.from(Array.from({ length: count }, (_, at) => `X-H${at}: ${at}\r\n`).join(''))
  const many = Object.entries(headerObject(block(30_000)))
  assert.equal(many.length, 30_000)
  assert.deepEqual(many.at(-1), ['x-h29999', ['29999']])
  const long = headerObject(Buffer.from(`X-Long: ${'y'.repeat(2_000_000)}\r\nX-Last: here\r\n`))
  assert.deepEqual(long['x-last'], ['here'])
  assert.equal(headerFields(block(200_000)).length, 100_000)
})

test('8-bit headers are read as UTF-8, else in the charset of the message', () => {
  assert.deepEqual(headerObject(Buffer.from('Subject: é\r\n')), { subject: ['é'] })
  const koi8 = Buffer.concat([
    Buffer.from('Content-Type: text/plain; charset=koi8-r\r\nSubject: '),
    Buffer.from([0xf0, 0xd2]),
    Buffer.from('\r\n'),
  ])
  assert.equal(headerObject(koi8)['subject']?.[0], 'Пр')
  assert.match(headerBlockText(koi8), /Subject: Пр\r\n$/)
  assert.deepEqual(headerObject(Buffer.from('Subject: \x1b$B%F%9%H\x1b(B\r\n')), { subject: ['テスト'] })
})

test('headerBlockText keeps folding and line ends', () => {
  const text = 'A: 1\r\n\tfolded\r\nB: =?utf-8?Q?x?=\r\n\r\n'
  assert.equal(headerBlockText(Buffer.from(text)), text)
})

test('headerObject: encoded-words without number, in many fields, are not all decoded', () => {
  const [word, plain] = ['=?jis?q?a?= x ', 'no words '.repeat(100_000)]
  const field = (name: string): string => `${name}: ${word.repeat(7000)}\r\n`
  const names = Array.from({ length: 30 }, (_, index) => `x-${index}`)
  const block = Buffer.from(`Plain: ${plain}\r\n${names.map(field).join('')}Last: =?utf-8?q?a?=\r\n`)
  const before = process.cpuUsage()
  const headers = headerObject(block)
  const { user, system } = process.cpuUsage(before)
  const decoded = names.filter((name) => headers[name]?.[0]?.startsWith('a x a x ') === true)
  assert.deepEqual(decoded, names.slice(0, 6))
  assert.deepEqual(headers['last'], ['=?utf-8?q?a?='])
  assert.ok(user + system < 1_500_000)
})

test('headerObject never throws, and every value is one well-formed line', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const block = Buffer.concat([Buffer.from('X: '), bytes, Buffer.from('\nY: =?x?B?'), bytes, Buffer.from('?=')])
      for (const value of Object.values(headerObject(block)).flat()) {
        assert.ok(value.isWellFormed())
        assert.doesNotMatch(value, /[\r\n\0]/)
      }
    }),
  )
})

test('message ids', () => {
  assert.deepEqual(messageIdsOf('<a@b> junk <c@d>,<a@b>'), ['a@b', 'c@d'])
  assert.deepEqual(messageIdsOf('<fol\r\n ded@b>'), ['folded@b'])
  assert.deepEqual(messageIdsOf('a@b c@d'), ['a@b', 'c@d'])
  assert.deepEqual(messageIdsOf('your mail of Monday'), [])
  assert.deepEqual(messageIdsOf(`<${'x'.repeat(1500)}@y>`), [])
  assert.equal(ownMessageId(['', ' <x@y> ', '<z@y>']), 'x@y')
  assert.equal(ownMessageId(['12345']), '12345')
  assert.equal(ownMessageId(['two words']), null)
  assert.equal(ownMessageId(['<>']), null)
  assert.equal(ownMessageId([]), null)
})

test('References keep the root and the newest', () => {
  const ids = Array.from({ length: 500 }, (_, at) => `${at}@x`)
  const kept = cappedReferences(ids)
  assert.equal(kept.length, 100)
  assert.equal(kept[0], '0@x')
  assert.deepEqual(kept.slice(1), ids.slice(-99))
  assert.deepEqual(cappedReferences(['a', 'b']), ['a', 'b'])
})

test('readAppended: the Message-ID is the one that the index gives the message', async () => {
  const values = ['<a@b>', '<a@b> (sent again)', '<a\r\n b@c>', '12345', 'a@b', '<a@b> <c@d>', '', '<>', '"<a@b>"']
  for (const value of [...values, '<a@b>\r\nMESSAGE-ID: <c@d>']) {
    const head = Buffer.from(`From: x@y.z\r\nMessage-ID: ${value}\r\n\r\nbody`)
    const indexed = ownMessageId(rawValues(readHeaders(head), 'message-id'))
    assert.deepEqual(await readAppended(head), { emailMessageId: indexed }, value)
  }
})
