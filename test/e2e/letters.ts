/** The mail that the day of a mailbox begins with. */
import { attachedPart, bytes, entity, envelope, base64, multipart, textPart } from '../support/corpus/build.ts'
import { mail } from '../support/mail.ts'

export interface Letter {
  readonly subject: string
  readonly raw: Buffer
}

/** Every byte value, in an order that text would not have. */
export const file = Buffer.from(Array.from({ length: 70_001 }, (_, at) => (at * 7 + (at >> 8)) % 256))
export const note = Buffer.from('Prüfung: bestanden.\r\n')

const alternative = multipart('multipart/alternative', 'alternative', [
  textPart('Grüße aus Köln, Rechnung 4711.\r\n'),
  textPart('<p>Grüße aus <b>Köln</b></p>\r\n', 'text/html'),
])
const noteHeaders = [
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: base64',
  "Content-Disposition: attachment; filename*=utf-8''Pr%C3%BCfung.txt",
]

/** Passed on as an attachment of another message. */
export const forwarded = bytes(
  envelope('forwarded', 'Passed on'),
  multipart('multipart/mixed', 'inner', [
    textPart('Inner text.\r\n'),
    attachedPart('application/pdf', 'inner.pdf', '%PDF-1.4 of no use'),
  ]),
)
const forwardedHeaders = ['Content-Type: message/rfc822', 'Content-Disposition: attachment; filename="Passed on.eml"']

/** From Ann to Bob on 5 March 2024; with two texts and three files, one of them a message. */
export const report: Letter = {
  subject: 'Bericht März',
  raw: bytes(
    envelope('report', '=?utf-8?Q?Bericht_M=C3=A4rz?='),
    multipart('multipart/mixed', 'mixed', [
      alternative,
      attachedPart('application/octet-stream', 'all.bin', file),
      entity(noteHeaders, base64(note)),
      entity(forwardedHeaders, forwarded),
    ]),
  ),
}

function plain(subject: string, from: string, date: number, text: string, headers: readonly string[] = []): Letter {
  return {
    subject,
    raw: Buffer.from(mail({ from, to: 'Bob <bob@example.org>', subject, date: new Date(date), text, headers })),
  }
}

export const lunch = plain('Lunch', 'Carl <carl@lunch.example>', Date.UTC(2024, 4, 1), 'Friday at noon?', [
  'Cc: Dora <dora@cc.example>',
])
export const invoice = plain('Invoice', 'Eva <eva@shop.example>', Date.UTC(2024, 5, 1), 'Please pay 99 EUR.')
