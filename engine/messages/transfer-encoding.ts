/**
 * Content-Transfer-Encoding undone (RFC 2045 §6), as a stream and at once; byte exact for what is valid, tolerant of what is not.
 * One state machine per encoding serves both, so a stream gives the same bytes however it is cut. Own code: libqp and libbase64
 * decode strings, and their streams differ from their one-shot forms on broken input.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { createBase64Decoder } from './base64.ts'
import { createQuotedPrintableDecoder } from './quoted-printable.ts'
import type { TransferDecoder } from './transfer-decoder.ts'
import { createUuDecoder } from './uuencode.ts'

const identity = (): TransferDecoder => ({ write: (chunk) => chunk, end: () => Buffer.alloc(0) })

const uuNames = new Set(['x-uuencode', 'x-uue', 'uuencode', 'uue'])

/** Decoder of a Content-Transfer-Encoding; 7bit, 8bit, binary and unknown words pass bytes through. */
export function createTransferDecoder(encoding: string): TransferDecoder {
  const name = encoding.trim().toLowerCase()
  if (name === 'base64') return createBase64Decoder()
  if (name === 'quoted-printable') return createQuotedPrintableDecoder()
  if (uuNames.has(name)) return createUuDecoder()
  return identity()
}

/** All at once. `cut` = more would follow: what is held back until it is known is left out. Never throws. */
export function decodeTransfer(bytes: Uint8Array, encoding: string, cut = false): Buffer {
  const decoder = createTransferDecoder(encoding)
  const first = decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (cut) return first
  const last = decoder.end()
  return last.length === 0 ? first : Buffer.concat([first, last])
}

/** As a stream, for attachments: encoded bytes in, decoded bytes out, holding back a line at most. */
export function createTransferStream(encoding: string): Transform {
  const decoder = createTransferDecoder(encoding)
  return new Transform({
    transform: (chunk: Buffer, _, done: TransformCallback) => done(null, decoder.write(chunk)),
    flush: (done: TransformCallback) => done(null, decoder.end()),
  })
}
