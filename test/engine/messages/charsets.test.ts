import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import iconv from 'iconv-lite'
import { decodeText, decodeUnlabelled, isKnownCharset } from '../../../engine/messages/charsets.ts'
import { charsetSamples } from '../../support/corpus/index.ts'
import { anySign } from '../../support/signs.ts'

for (const { charset, text, base64 } of charsetSamples) {
  test(`decodeText: ${charset}`, () => {
    assert.equal(decodeText(Buffer.from(base64, 'base64'), charset), text)
    assert.equal(decodeText(Buffer.from(base64, 'base64'), ` "${charset.toUpperCase()}" `), text)
    assert.ok(isKnownCharset(charset))
  })
}

const table: readonly (readonly [why: string, bytes: Buffer, charset: string | null, text: string])[] = [
  ['nothing said, UTF-8', Buffer.from('é'), null, 'é'],
  ['nothing said, not UTF-8', Buffer.from([0xe9, 0x80]), null, 'é€'],
  ['nothing said, ISO-2022-JP by its escapes', Buffer.from('G3RCJEYbKEI=', 'base64'), null, '\u001btB$F\u001b(B'],
  ['an unknown charset', Buffer.from('é'), 'x-martian', 'é'],
  ['us-ascii that is UTF-8', Buffer.from('é'), 'us-ascii', 'é'],
  ['us-ascii that is not', Buffer.from([0xe9]), 'US-ASCII', 'é'],
  ['Latin-1 means windows-1252', Buffer.from([0x80]), 'ISO_8859-1:1987', '€'],
  ['base64 is no charset', Buffer.from('abcd'), 'base64', 'abcd'],
  ['hex is no charset', Buffer.from('abcd'), 'hex', 'abcd'],
  ['names of Object.prototype are no charsets', Buffer.from('abcd'), 'constructor', 'abcd'],
  ['broken UTF-8 is still UTF-8', Buffer.from([0x61, 0xe9, 0x62]), 'utf-8', 'a\ufffdb'],
  ['UTF-8 cut in a character', Buffer.from('aé').subarray(0, 2), 'utf-8', 'a\ufffd'],
  ['the same with nothing said', Buffer.from('éé').subarray(0, 3), null, 'é\ufffd'],
  ['a mark outweighs the label', Buffer.from('\ufeffé'), 'windows-1252', 'é'],
  ['UTF-16 by its mark', Buffer.from('\ufeffab', 'utf16le'), null, 'ab'],
  ['UTF-16 by its mark, labelled UTF-8', Buffer.from('\ufeffab', 'utf16le'), 'utf-8', 'ab'],
  ['UTF-32LE by its mark', Buffer.from('fffe000041000000', 'hex'), 'utf-32', 'A'],
  ['UTF-32BE by its mark', Buffer.from('0000feff00000041', 'hex'), 'UTF-32', 'A'],
  ['UTF-32BE by its mark, with the wrong order named', Buffer.from('0000feff00000041', 'hex'), 'utf-32le', 'A'],
  ['UTF-32LE by its mark, nothing said', Buffer.from('fffe000041000000', 'hex'), null, 'A'],
  ['UTF-32LE by its mark, ISO name', Buffer.from('fffe000041000000', 'hex'), 'ISO-10646-UCS-4', 'A'],
  ['UTF-32 without a mark is big-endian', Buffer.from('0000004100000042', 'hex'), 'utf-32', 'AB'],
  ['UTF-32 that reads either way is big-endian', Buffer.from('00010200', 'hex'), 'utf-32', '\u{10200}'],
  ['UTF-32 without a mark and plainly little-endian', Buffer.from('4100000042000000', 'hex'), 'utf-32', 'AB'],
  ['UTF-32LE as named', Buffer.from('41000000', 'hex'), 'utf-32le', 'A'],
  ['UTF-32BE as named', Buffer.from('00000041', 'hex'), 'utf-32be', 'A'],
  ['UTF-32 that is no character', Buffer.from('7fffffff0000d80000000041', 'hex'), 'utf-32be', '\ufffd\ufffdA'],
  ['UTF-16 that begins with a NUL', Buffer.from('fffe00004100', 'hex'), 'utf-16', '\0A'],
  ['UTF-16LE that begins with a NUL', Buffer.from('fffe00004100', 'hex'), 'utf-16le', '\0A'],
  ['half a surrogate pair', Buffer.from([0x3d, 0xd8, 0x61, 0x00]), 'utf-16le', '\ufffda'],
  ['HZ: a pair that ends in a tilde', Buffer.from('a~{0~~}b~~~{0~0~~}'), 'hz-gb-2312', 'a剥b~剥剥'],
  ['HZ tilde and line join', Buffer.from('a~~b~\nc'), 'hz-gb-2312', 'a~bc'],
  ['UTF-7: a plus, text between runs, and a run without an end', Buffer.from('1+-1 +ZeVnLA.+Z'), 'utf-7', '1+1 日本.'],
  ['UTF-7: a pair of surrogates in two runs, and half of one', Buffer.from('+2D0-+3gA-+2D0-'), 'utf-7', '😀\ufffd'],
  ['UTF-7: a byte of eight bits', Buffer.from('a\xe9+ZeX\xe9', 'latin1'), 'utf-7', 'a\ufffd日\ufffd'],
  ['UTF-7 that begins with a mark, which is no mark later', Buffer.from('+/v8-a+/v8-'), 'UTF7', 'a\ufeff'],
  ['the UTF-7 of folder names is no charset', Buffer.from('a&ZeU-'), 'utf-7-imap', 'a&ZeU-'],
  ['nothing at all', Buffer.alloc(0), null, ''],
]

for (const [why, bytes, charset, text] of table) {
  test(`decodeText: ${why}`, () => {
    assert.equal(decodeText(bytes, charset), text)
  })
}

test('decodeText: undeclared ISO-2022-JP is recognised', () => {
  const sample = charsetSamples.find(({ charset }) => charset === 'iso-2022-jp')
  assert.ok(sample)
  assert.equal(decodeText(Buffer.from(sample.base64, 'base64'), null), sample.text)
})

test('decodeUnlabelled: UTF-8 first, then the declared charset, then windows-1252', () => {
  assert.equal(decodeUnlabelled(Buffer.from('Ж'), 'koi8-r'), 'Ж')
  assert.equal(decodeUnlabelled(Buffer.from([0xf0]), 'koi8-r'), 'П')
  assert.equal(decodeUnlabelled(Buffer.from([0xe9]), 'utf-8'), 'é')
  assert.equal(decodeUnlabelled(Buffer.from([0xe9]), null), 'é')
})

test('decodeText never throws and gives well-formed text, whatever the bytes and the label', () => {
  const charset = fc.oneof(fc.constantFrom(null, ...charsetSamples.map((sample) => sample.charset)), fc.string())
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), charset, (bytes, label) => {
      assert.ok(decodeText(bytes, label).isWellFormed())
    }),
    { numRuns: 1000 },
  )
})

test('decodeText reads every UTF-8 text back, labelled or not', () => {
  fc.assert(
    fc.property(fc.string({ unit: anySign }), (text) => {
      const wanted = text.startsWith('\ufeff') ? text.slice(1) : text
      assert.equal(decodeText(Buffer.from(text), 'utf-8'), wanted)
      if (!text.includes('\u001b$')) assert.equal(decodeText(Buffer.from(text), null), wanted)
    }),
  )
})

test('decodeText reads UTF-7 as iconv-lite does, which takes marks in the middle away, and every text back', () => {
  const marks = /\ufeff/g
  const byte = fc.oneof(fc.constantFrom(...Buffer.from('+-&/AZaz09=,\r\n~')), fc.nat({ max: 255 }))
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 60 }), (bytes) => {
      const raw = Buffer.from(bytes)
      const read = decodeText(raw, 'utf-7')
      fc.pre(!/^(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)/.test(raw.toString('latin1')))
      assert.equal(read.replace(marks, ''), iconv.decode(raw, 'utf-7').replace(marks, '').toWellFormed())
      assert.ok(decodeText(raw, 'utf-7', true).isWellFormed())
    }),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(fc.string({ unit: anySign }), fc.nat(), (text, end) => {
      const raw = iconv.encode(text, 'utf-7')
      const wanted = text.startsWith('\ufeff') ? text.slice(1) : text
      assert.equal(decodeText(raw, 'unicode-1-1-utf-7'), wanted)
      assert.ok(wanted.startsWith(decodeText(raw.subarray(0, end % (raw.length + 1)), 'utf-7', true)))
    }),
  )
})

test('text that switches tables for each character is read at once', () => {
  // Processor time, so that a busy machine does not count. A decoder for each piece would take some ten seconds.
  const before = process.cpuUsage()
  for (const [charset, piece, times] of [
    ['iso-2022-kr', '\x0eab\x0f', 1_000_000],
    ['hz-gb-2312', '~{VP~}', 1_000_000],
    ['utf-7', '+AGE-', 3_000_000],
  ] as const) {
    assert.ok(decodeText(Buffer.from(piece.repeat(times)), charset).length === times)
  }
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 4_000_000)
})
