/** A body part as transferred → the text that callers are shown. */
import { decodeText, isKnownCharset } from './charsets.ts'
import { unflow } from './flowed.ts'
import { decodeTransfer } from './transfer-encoding.ts'
import type { BodyPartRecord } from '../store/records.ts'

const metaCharset =
  /<(?:meta\b[^>]{0,300}?\bcharset|\?xml\b[^>]{0,300}?\bencoding)\s{0,10}=\s{0,10}["']?\s{0,10}([\w:.-]{2,40})/i

/** HTML without a declared charset says it in its own head, in ASCII, near the start. */
function charsetOfHtml(bytes: Buffer): string | null {
  const found = metaCharset.exec(bytes.subarray(0, 4096).toString('latin1'))?.[1] ?? null
  // A document that reads as ASCII is not UTF-16 whatever it says.
  return found !== null && isKnownCharset(found) && !/^utf-?(?:16|32)/i.test(found) ? found : null
}

type Described = Pick<BodyPartRecord, 'type' | 'charset' | 'encoding' | 'flowed' | 'delSp'>

/**
 * Body text in UTF-8 characters: transfer encoding and charset undone, byte-order mark gone, lines end in LF,
 * format=flowed joined to paragraphs. `cut` = the bytes are the beginning of a longer part: what is not whole at their end is left
 * out. Never throws.
 */
export function decodeBody(bytes: Uint8Array, part: Described, cut = false): string {
  const decoded = decodeTransfer(bytes, part.encoding, cut)
  const declared = part.charset !== null && isKnownCharset(part.charset) ? part.charset : null
  const charset = declared ?? (part.type === 'text/html' ? charsetOfHtml(decoded) : null)
  const text = decodeText(decoded, charset ?? part.charset, cut).replaceAll('\r\n', '\n')
  return part.flowed ? unflow(text, part.delSp) : text
}
