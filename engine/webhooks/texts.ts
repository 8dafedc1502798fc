/**
 * The text parts of a message, read from the mail server: small ones together in one command, a larger one piece by piece and no
 * further than it is wanted, so that neither memory nor the account's connection is held by what nobody asked for.
 */
import { isUtf8 } from 'node:buffer'
import type { AccountCommands } from '../accounts/types.ts'
import { AppError, isAppError } from '../errors.ts'
import { decodeBody } from '../messages/bodies.ts'
import { readHeaders } from '../messages/headers.ts'
import { htmlText } from '../messages/html-text.ts'
import { decodeTransfer } from '../messages/transfer-encoding.ts'
import type { AttachmentRecord, BodyPartRecord, MessageRecord } from '../store/records.ts'
import type { BodySearch } from './match.ts'

export type Mail = Pick<AccountCommands, 'fetchParts' | 'streamPart' | 'fetchHeaders'>

export interface TextPart extends BodyPartRecord {
  /** An attached file: its charset is not in the index. */
  readonly attached?: true
}

/** Every part of a text type: text/plain before other bodies, and attached files last. */
export function textParts({ bodies, attachments }: Pick<MessageRecord, 'bodies' | 'attachments'>): TextPart[] {
  const isPlain = ({ type }: BodyPartRecord): boolean => type === 'text/plain'
  const attached = attachments.filter(({ type }) => type.startsWith('text/')).map(attachedText)
  return [...bodies.filter(isPlain), ...bodies.filter((part) => !isPlain(part)), ...attached]
}

function attachedText({ section, type, encoding, size }: AttachmentRecord): TextPart {
  return { section, type, charset: null, encoding, size, flowed: false, delSp: false, attached: true }
}

/** The beginning of a part, transfer encoding undone. */
export interface PartRead {
  readonly part: TextPart
  readonly bytes: Buffer
  /** The part has no more than these. */
  readonly whole: boolean
}

export interface TextReader {
  /** At most `most` bytes. Errors of the mail server pass through as they come; `timeout` when reading all takes too long. */
  read(part: TextPart, most: number): Promise<PartRead>
}

/** Of all parts that are asked for in one command, and how many. */
const packBytes = 512 * 1024
const packParts = 8
const mimeBytes = 65_536

/** `parts`: those that are likely to be read, in this order. `withinMs`: for all of them. */
export function createTextReader(
  mail: Mail,
  message: MessageRecord,
  parts: readonly TextPart[],
  withinMs: number,
): TextReader {
  const until = performance.now() + withinMs
  const early = new Map<string, PartRead>()

  async function fetchPack(first: TextPart): Promise<void> {
    const pack = packOf(parts.slice(parts.indexOf(first)))
    if (pack.length === 0) return
    // A little more than the server told: what is longer than that is read by itself.
    const most = 2 * Math.max(...pack.map(({ size }) => size)) + 4096
    const sections = pack.map(({ section }) => section)
    const raw = await mail.fetchParts(message.accountId, message, sections, most)
    for (const part of pack) {
      const bytes = raw.get(part.section)
      if (bytes === undefined || bytes.length >= most) continue
      early.set(part.section, {
        part,
        bytes: decodeTransfer(bytes, part.encoding),
        whole: raw.short?.has(part.section) !== true,
      })
    }
  }

  return {
    async read(part, most) {
      if (!early.has(part.section)) await fetchPack(part)
      const known = early.get(part.section)
      early.delete(part.section)
      const read = known ?? { part, ...(await readStream(mail, message, part, most, until)) }
      const bytes = read.bytes.subarray(0, most)
      const charset = await charsetOf(mail, message, part, bytes)
      return { part: { ...part, charset }, bytes, whole: read.whole && bytes.length === read.bytes.length }
    },
  }
}

/** Those at the beginning that are small together. */
function packOf(parts: readonly TextPart[]): TextPart[] {
  const pack: TextPart[] = []
  let left = packBytes
  for (const part of parts) {
    left -= part.size
    if (left < 0 || pack.length === packParts) break
    pack.push(part)
  }
  return pack
}

async function readStream(
  mail: Mail,
  message: MessageRecord,
  { section, encoding }: TextPart,
  most: number,
  until: number,
): Promise<Pick<PartRead, 'bytes' | 'whole'>> {
  const stream = await mail.streamPart(message.accountId, message, section, encoding)
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > most) break
    if (performance.now() > until) throw new AppError('timeout', 'the mail server was too slow to give the text')
  }
  return { bytes: Buffer.concat(chunks, Math.min(length, most)), whole: length <= most && stream.short !== true }
}

/** Only what is not UTF-8 anyhow is worth a question: an attached file's charset stands in the header of its part. */
async function charsetOf(
  mail: Mail,
  message: MessageRecord,
  part: TextPart,
  bytes: Buffer,
): Promise<BodyPartRecord['charset']> {
  if (part.attached !== true || isUtf8(bytes)) return part.charset
  const section = `${part.section}.MIME`
  try {
    const found = await mail.fetchParts(message.accountId, message, [section], mimeBytes)
    return readHeaders(found.get(section) ?? Buffer.alloc(0)).charset
  } catch (error) {
    // A server that does not give it.
    if (isAppError(error, 'not_found') || isAppError(error, 'server_refused')) return null
    throw error
  }
}

export interface Text {
  readonly text: string
  /** Nothing of the part is missing. */
  readonly whole: boolean
}

/** The characters of the first `limit` bytes; those of all bytes are decoded once. */
export function decoderOf({ part, bytes, whole }: PartRead): (limit: number) => Text {
  const decode = (some: Buffer, all: boolean): Text => ({ text: textOf({ part, bytes: some, cut: !all }), whole: all })
  let everything: Text | null = null
  return (limit) => {
    if (limit < bytes.length) return decode(bytes.subarray(0, limit), false)
    everything ??= decode(bytes, whole)
    return everything
  }
}

/** A text that is searched: bytes with the transfer encoding undone. */
export interface Hay {
  readonly part: TextPart
  readonly bytes: Uint8Array
  /** They may end within a character. */
  readonly cut: boolean
}

export function textOf({ part, bytes, cut }: Hay): string {
  return decodeBody(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), { ...part, encoding: 'binary' }, cut)
}

/** Of HTML what is seen. */
export async function isIn(search: BodySearch, { type }: TextPart, text: string): Promise<boolean> {
  return search.matches(type === 'text/html' ? await htmlText(text) : text)
}
