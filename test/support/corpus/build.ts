/** Small builders of raw mail. They do no more than join what they are given, so that broken mail can be built too. */
import type { CorpusMessage, ExpectedFacts } from './types.ts'

const sentAt = Date.UTC(2024, 2, 5, 9, 30, 0)
export const plainFrom = [{ name: 'Ann Sender', email: 'ann@example.com' }]
const plainTo = [{ name: 'Bob', email: 'bob@example.org' }]

type Text = string | Buffer

export function bytes(...pieces: readonly Text[]): Buffer {
  return Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'utf8') : piece)))
}

/** Lines of 76 characters. */
export function wrapped(text: string): string {
  const lines: string[] = []
  for (let at = 0; at < text.length; at += 76) lines.push(text.slice(at, at + 76))
  return lines.join('\r\n')
}

export function base64(content: Text): string {
  return wrapped(bytes(content).toString('base64'))
}

/** Every byte but letters and digits as =XX, in short lines. */
export function quotedPrintable(content: Text): string {
  const pieces = Array.from(bytes(content), (byte) => {
    const char = String.fromCharCode(byte)
    return /[A-Za-z0-9]/.test(char) ? char : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`
  })
  const lines: string[] = []
  for (let at = 0; at < pieces.length; at += 24) lines.push(pieces.slice(at, at + 24).join(''))
  return lines.join('=\r\n')
}

/** Headers that every ordinary message has. */
export function envelope(name: string, subject: Text): Buffer {
  return bytes(
    'From: Ann Sender <ann@example.com>\r\nTo: Bob <bob@example.org>\r\nDate: Tue, 05 Mar 2024 09:30:00 +0000\r\n',
    `Message-ID: <${name}@corpus.example>\r\nSubject: `,
    subject,
    '\r\nMIME-Version: 1.0\r\n',
  )
}

/** A part or the end of a message: header lines, empty line, body. */
export function entity(headers: readonly Text[], body: Text): Buffer {
  return bytes(...headers.flatMap((line) => [line, '\r\n']), '\r\n', body)
}

export function multipart(type: string, boundary: string, parts: readonly Text[], more: readonly string[] = []): Buffer {
  const delimited = parts.flatMap((part) => [`--${boundary}\r\n`, part, '\r\n'])
  return entity([`Content-Type: ${type}; boundary="${boundary}"`, ...more], bytes(...delimited, `--${boundary}--\r\n`))
}

export function textPart(text: string, type = 'text/plain'): Buffer {
  return entity([`Content-Type: ${type}; charset=utf-8`, 'Content-Transfer-Encoding: 8bit'], text)
}

export function attachedPart(type: string, name: string, content: Text, more: readonly string[] = []): Buffer {
  return entity(
    [`Content-Type: ${type}`, 'Content-Transfer-Encoding: base64', `Content-Disposition: attachment; filename="${name}"`, ...more],
    base64(content),
  )
}

/** An ordinary message around `content` (its own headers, empty line, body). */
export function message(name: string, subject: Text, content: Text, expected: ExpectedFacts): CorpusMessage {
  return {
    name,
    raw: bytes(envelope(name, subject), content),
    appendable: true,
    expected: { emailMessageId: `${name}@corpus.example`, from: plainFrom, to: plainTo, sentAt, ...expected },
  }
}

/** A message written out whole. */
export function written(name: string, raw: Text, expected: ExpectedFacts, appendable = true): CorpusMessage {
  return { name, raw: bytes(raw), appendable, expected }
}
