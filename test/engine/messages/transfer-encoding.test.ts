import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  createTransferDecoder,
  createTransferStream,
  decodeTransfer,
} from '../../../engine/messages/transfer-encoding.ts'
import { base64, quotedPrintable } from '../../support/corpus/build.ts'

const table: readonly (readonly [encoding: string, encoded: string, decoded: string])[] = [
  ['base64', 'SGVsbG8=', 'Hello'],
  ['BASE64', 'SGVs\r\nbG8=\r\n', 'Hello'],
  ['base64', 'SGVsbG8', 'Hello'],
  ['base64', 'S G!V*s\tbG8', 'Hello'],
  ['base64', 'YQ==YmM=', 'abc'],
  ['base64', 'YWJjZ', 'abc'],
  ['base64', 'aGVs\r\nbG8=\r\n-- \r\nfooter added', 'hello'],
  ['base64', 'aGVsbG8=\r\n\r\n_____________\r\nhttp://list.example/', 'hello'],
  ['base64', 'aGVsbG8=\r\nSent from my phone\r\nYQ==', 'hello'],
  ['base64', 'aGVsbG8=-- \r\nYQ==', 'hello'],
  ['base64', 'YQ==\r\nYmM=\r\n\r\nZGVm\r\n', 'abcdef'],
  ['base64', 'YQ==\r\nYmMgYmMg\r\nZGVm', 'abc bc def'],
  ['base64', 'YQ== YmM= \t\r\nZA', 'abcd'],
  ['base64', 'YQ==\nY\nmM\n=\nfooter: x', 'abc'],
  ['base64', 'YQ==\nYm\nM=____', 'abc'],
  ['base64', 'YQ==\nYmM=ZGU= -- \nZGU=', 'abcde'],
  ['base64', 'YQ==\nYmM\n-- \nx', 'abc'],
  ['base64', 'YQ==YmM=-- ', 'abc'],
  ['base64', '====', ''],
  ['base64', '', ''],
  ['quoted-printable', 'a=3Db', 'a=b'],
  ['quoted-printable', 'a=3d', 'a='],
  ['Quoted-Printable', 'soft=\r\nbreak', 'softbreak'],
  ['quoted-printable', 'soft=\nbreak', 'softbreak'],
  ['quoted-printable', 'soft= \t\r\nbreak', 'softbreak'],
  ['quoted-printable', 'space  \r\nat end \t', 'space\r\nat end'],
  ['quoted-printable', 'a  b', 'a  b'],
  ['quoted-printable', 'x=', 'x'],
  ['quoted-printable', 'x=4', 'x=4'],
  ['quoted-printable', '=ZZ=4=41', '=ZZ=4A'],
  ['quoted-printable', '==41', '=A'],
  ['quoted-printable', '= x', '= x'],
  ['quoted-printable', 'a \rb', 'a \rb'],
  ['quoted-printable', 'a=\rb', 'a=\rb'],
  ['quoted-printable', '=20 \r\n', '\x20\r\n'],
  ['x-uuencode', 'begin 644 a.txt\r\n#8V%T\r\n`\r\nend\r\n', 'cat'],
  ['X-UUE', 'Here it is:\n\nbegin 644 a b.txt\n%:&5L;&\\\n \nend\nlater\n', 'hello'],
  ['uuencode', 'begin 600 a\n#8V%T\n', 'cat'],
  ['uue', '#8V%T\n#8V%T\n`\nend', 'catcat'],
  ['x-uuencode', 'begin 644 zeros\n#````\n#\n`\nend', '\0\0\0\0\0\0'],
  ['x-uuencode', 'no data at all\n', ''],
  ['x-uuencode', '', ''],
  ['7bit', 'a=41 \r\n', 'a=41 \r\n'],
  ['x-unknown', 'a=41', 'a=41'],
]

for (const [encoding, encoded, decoded] of table) {
  test(`decodeTransfer: ${encoding} ${JSON.stringify(encoded)}`, () => {
    assert.equal(decodeTransfer(Buffer.from(encoded, 'latin1'), encoding).toString('latin1'), decoded)
  })
}

test('raw 8-bit bytes inside quoted-printable stay', () => {
  assert.deepEqual(decodeTransfer(Buffer.from([0xe9, 0x3d, 0x45, 0x39]), 'quoted-printable'), Buffer.from([0xe9, 0xe9]))
})

const anyBytes = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))

/** POSIX uuencode, with spaces or backquotes for 0. */
function uuencode(bytes: Buffer, zero: '`' | ' '): string {
  const sign = (value: number): string => (value === 0 ? zero : String.fromCharCode(32 + value))
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 45) {
    const line = bytes.subarray(at, at + 45)
    const padded = Buffer.concat([line, Buffer.alloc(2)])
    let text = sign(line.length)
    for (let from = 0; from < line.length; from += 3) {
      const quantum = padded.readUIntBE(from, 3)
      text += [18, 12, 6, 0].map((shift) => sign((quantum >> shift) & 63)).join('')
    }
    lines.push(text)
  }
  return ['begin 644 some file.bin', ...lines, sign(0), 'end', ''].join('\r\n')
}

test('uuencode gives back every byte, also where spaces were lost', () => {
  fc.assert(
    fc.property(anyBytes, fc.constantFrom('`' as const, ' ' as const), fc.boolean(), (bytes, zero, stripped) => {
      const text = uuencode(bytes, zero)
      const sent = stripped ? text.replace(/ +\r\n/g, '\r\n') : text
      assert.deepEqual(decodeTransfer(Buffer.from(sent, 'latin1'), 'x-uuencode'), bytes)
    }),
  )
})

test('base64 texts that were encoded apart are joined, with or without a footer below', () => {
  const texts = fc.array(anyBytes, { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(texts, fc.constantFrom('', '\r\n', '\r\n\r\n'), fc.boolean(), (all, between, footer) => {
      const joined = Buffer.concat(all)
      // Only padding tells the end.
      const below = footer && all.some((one) => one.length % 3 !== 0) ? '\r\n-- \r\nabcd efg\r\n' : ''
      const sent = Buffer.from(all.map(base64).join(between) + below)
      assert.deepEqual(decodeTransfer(sent, 'base64'), joined)
    }),
  )
})

test('a line without end after padding is judged in pieces, however it is cut', () => {
  const sent = Buffer.from(`YQ==\n${'YmJi'.repeat(50_000)}-- footer ${'YmJi'.repeat(50_000)}`)
  const whole = decodeTransfer(sent, 'base64')
  // The piece that holds the footer is left out.
  assert.equal(whole.toString(), `a${'b'.repeat(Math.floor(200_000 / 65_536) * 65_536 * 0.75)}`)
  for (const size of [1, 1000, 65_536, 65_537]) {
    const decoder = createTransferDecoder('base64')
    const pieces = Array.from({ length: Math.ceil(sent.length / size) }, (_, at) =>
      decoder.write(sent.subarray(at * size, (at + 1) * size)),
    )
    assert.ok(Buffer.concat([...pieces, decoder.end()]).equals(whole), String(size))
  }
})

test('both encodings give back every byte', () => {
  fc.assert(
    fc.property(anyBytes, (bytes) => {
      assert.deepEqual(decodeTransfer(Buffer.from(base64(bytes)), 'base64'), bytes)
      assert.deepEqual(decodeTransfer(Buffer.from(quotedPrintable(bytes)), 'quoted-printable'), bytes)
    }),
  )
})

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...pieces, bytes.subarray(at)]
}

/** Mostly the signs that decoders decide on. */
const encodedNoise = fc
  .array(
    fc.oneof(fc.constantFrom(0x3d, 0x20, 0x09, 0x0d, 0x0a, 0x41, 0x34, 0x46, 0x2d), fc.integer({ min: 0, max: 255 })),
    {
      maxLength: 80,
    },
  )
  .map((bytes) => Buffer.from(bytes))
const sizes = fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 60 })

test('a stream decodes to the same bytes as one piece, however it is cut', () => {
  const encoding = fc.constantFrom('base64', 'quoted-printable', 'x-uuencode', '8bit')
  fc.assert(
    fc.property(encoding, encodedNoise, sizes, (name, bytes, lengths) => {
      const decoder = createTransferDecoder(name)
      const pieces = cut(bytes, lengths).map((piece) => Buffer.from(decoder.write(piece)))
      assert.deepEqual(Buffer.concat([...pieces, decoder.end()]), decodeTransfer(bytes, name))
    }),
    { numRuns: 5000 },
  )
})

test('the Transform is byte exact and keeps the order', async () => {
  await fc.assert(
    fc.asyncProperty(anyBytes, sizes, async (bytes, lengths) => {
      for (const [name, encoded] of [
        ['base64', base64(bytes)],
        ['quoted-printable', quotedPrintable(bytes)],
      ] as const) {
        const stream = Readable.from(cut(Buffer.from(encoded), lengths)).pipe(createTransferStream(name))
        assert.deepEqual(await buffer(stream), bytes)
      }
    }),
    { numRuns: 50 },
  )
})

test('white space without end is not held without end', () => {
  const decoder = createTransferDecoder('quoted-printable')
  const spaces = Buffer.alloc(1_000_000, 0x20)
  const first = decoder.write(spaces).length
  assert.ok(first > 900_000)
  assert.ok(first + decoder.write(Buffer.from('x')).length === 1_000_001)
})

test('white space of any length takes linear time', () => {
  // Processor time, so that a busy machine does not count. Quadratic work would take minutes.
  const before = process.cpuUsage()
  for (const piece of [' ', `${' '.repeat(40)}x`, `=${' '.repeat(1000)}`, `${' '.repeat(1000)}\n`]) {
    decodeTransfer(Buffer.from(`${piece.repeat(1_000_000 / piece.length)}x`), 'quoted-printable')
  }
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 3_000_000)
})
