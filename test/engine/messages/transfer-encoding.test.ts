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
  .array(fc.oneof(fc.constantFrom(0x3d, 0x20, 0x09, 0x0d, 0x0a, 0x41, 0x34, 0x46), fc.integer({ min: 0, max: 255 })), {
    maxLength: 80,
  })
  .map((bytes) => Buffer.from(bytes))
const sizes = fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 60 })

test('a stream decodes to the same bytes as one piece, however it is cut', () => {
  const encoding = fc.constantFrom('base64', 'quoted-printable', '8bit')
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
