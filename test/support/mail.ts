/** Ordinary mail for tests and the demo. */
import { Readable } from 'node:stream'
import type { Literal, Upload } from '../../engine/spool.ts'

export interface MailParts {
  readonly from?: string
  readonly to: string
  readonly subject: string
  readonly text?: string
  /** Left side of the Message-ID; from the subject otherwise. */
  readonly id?: string
  readonly date?: Date
  readonly headers?: readonly string[]
}

/** What is appended, from memory. */
export function literalOf(raw: string | Buffer): Literal {
  const bytes = Buffer.from(raw)
  return { size: bytes.length, hasNul: bytes.includes(0), read: () => Readable.from([bytes]) }
}

/** The same with flags, arriving now. */
export function letterOf(raw: string | Buffer, flags: readonly string[] = []) {
  const literal: Upload = { ...literalOf(raw), holding: (work) => work() }
  return { literal, flags, internalDate: Date.now() }
}

/** A plain text message with CRLF line ends. The subject is sent as it is: keep it ASCII. */
export function mail(parts: MailParts): string {
  const id = parts.id ?? parts.subject.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  return [
    `From: ${parts.from ?? 'Ada Sender <ada@sender.example>'}`,
    `To: ${parts.to}`,
    `Subject: ${parts.subject}`,
    `Date: ${(parts.date ?? new Date()).toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: <${id}@sender.example>`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 8bit',
    ...(parts.headers ?? []),
    '',
    (parts.text ?? 'Hello.').replaceAll(/\r?\n/g, '\r\n'),
    '',
  ].join('\r\n')
}
