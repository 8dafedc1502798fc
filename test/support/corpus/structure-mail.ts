/** Mail of every build: nested, related, signed, flowed, with files of every naming. */
import { attachedPart, base64, bytes, entity, message, multipart, textPart } from './build.ts'
import type { CorpusMessage } from './types.ts'

/** A PNG of one pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
/** All byte values: what a decoder that thinks in text would break. */
const everyByte = Buffer.from(Array.from({ length: 256 }, (_, value) => value))

const html = '<p>Hi <img src="cid:pix@corpus"></p>'
const image = entity(
  ['Content-Type: image/png; name="pixel.png"', 'Content-Transfer-Encoding: base64', 'Content-ID: <pix@corpus>', 'Content-Disposition: inline; filename="pixel.png"'],
  base64(pixel),
)
const alternative = multipart('multipart/alternative', 'alt', [textPart('Hi\r\n'), multipart('multipart/related', 'rel', [textPart(html, 'text/html'), image])])

const related = message(
  'related',
  'Related',
  multipart('multipart/mixed', 'mix', [alternative, attachedPart('application/octet-stream', 'every byte.bin', everyByte)]),
  {
    bodies: [
      { section: '1.1', type: 'text/plain', text: 'Hi\n' },
      { section: '1.2.1', type: 'text/html', text: html },
    ],
    attachments: [
      { section: '1.2.2', type: 'image/png', fileName: 'pixel.png', embedded: true, contentId: 'pix@corpus', content: pixel },
      { section: '2', type: 'application/octet-stream', fileName: 'every byte.bin', embedded: false, contentId: null, content: everyByte },
    ],
  },
)

const inner = bytes(
  'From: Carl <carl@example.net>\r\nSubject: =?utf-8?Q?Inner_=E2=9C=89?=: a/b\r\nMessage-ID: <inner@corpus.example>\r\nMIME-Version: 1.0\r\n',
  multipart('multipart/mixed', 'in', [textPart('inside\r\n'), attachedPart('text/plain', 'inside.txt', 'deep')]),
)
const nested = message(
  'nested-rfc822',
  'Fwd: nested',
  multipart('multipart/mixed', 'out', [
    textPart('see below\r\n'),
    entity(['Content-Type: message/rfc822', 'Content-Disposition: attachment'], inner),
    entity(['Content-Type: message/rfc822; name="kept.eml"'], inner),
  ]),
  {
    bodies: [{ section: '1', type: 'text/plain', text: 'see below\n' }],
    attachments: [
      { section: '2', type: 'message/rfc822', fileName: 'Inner ✉ a b.eml', content: inner },
      { section: '3', type: 'message/rfc822', fileName: 'kept.eml', content: inner },
    ],
  },
)

const winmail = message(
  'winmail',
  'TNEF',
  multipart('multipart/mixed', 'w', [textPart('tnef\r\n'), attachedPart('application/ms-tnef', 'winmail.dat', Buffer.from('789f3e22', 'hex'))]),
  {
    bodies: [{ section: '1', type: 'text/plain', text: 'tnef\n' }],
    attachments: [{ section: '2', type: 'application/ms-tnef', fileName: 'winmail.dat', content: Buffer.from('789f3e22', 'hex') }],
  },
)

const flowed = message(
  'flowed',
  'Flowed',
  entity(
    ['Content-Type: text/plain; charset=utf-8; format=flowed; delsp=yes'],
    'A long  \r\nparagraph.\r\n> quoted  \r\n> text\r\n From here\r\n-- \r\nAnn\r\n',
  ),
  { bodies: [{ section: '1', type: 'text/plain', text: 'A long paragraph.\n> quoted text\nFrom here\n-- \nAnn\n' }], attachments: [] },
)

const calendar = 'BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n'
const invite = message(
  'calendar-invite',
  'Invitation',
  multipart('multipart/mixed', 'c', [
    multipart('multipart/alternative', 'ca', [
      textPart('Please come\r\n'),
      textPart('<p>Please come</p>', 'text/html'),
      entity(['Content-Type: text/calendar; charset=utf-8; method=REQUEST', 'Content-Transfer-Encoding: base64'], base64(calendar)),
    ]),
    attachedPart('application/ics', 'invite.ics', calendar),
  ]),
  {
    bodies: [
      { section: '1.1', type: 'text/plain', text: 'Please come\n' },
      { section: '1.2', type: 'text/html', text: '<p>Please come</p>' },
    ],
    attachments: [
      { section: '1.3', type: 'text/calendar', fileName: '', content: bytes(calendar) },
      { section: '2', type: 'application/ics', fileName: 'invite.ics', content: bytes(calendar) },
    ],
  },
)

const signed = message(
  'signed',
  'Signed',
  multipart('multipart/signed; micalg=pgp-sha256; protocol="application/pgp-signature"', 'sig', [
    textPart('signed text\r\n'),
    entity(['Content-Type: application/pgp-signature; name="signature.asc"'], '-----BEGIN PGP SIGNATURE-----\r\nxx\r\n-----END PGP SIGNATURE-----\r\n'),
  ]),
  {
    bodies: [{ section: '1', type: 'text/plain', text: 'signed text\n' }],
    attachments: [{ section: '2', type: 'application/pgp-signature', fileName: 'signature.asc' }],
  },
)

/** [Content-Disposition parameters as sent, the name they mean]. */
const namedFiles: readonly (readonly [string, string])[] = [
  [`filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt; filename="naive.txt"`, 'naïve €.txt'],
  [`filename*0*=iso-8859-1'de'Gr%FC; filename*1*=%DFe%20; filename*2="aus Köln.txt"`.replace('ö', 'oe'), 'Grüße aus Koeln.txt'],
  [`filename*1="part two.pdf"; filename*0="part one, "`, 'part one, part two.pdf'],
  ['filename="=?utf-8?B?0J7RgtGH0ZHRgi5wZGY=?="', 'Отчёт.pdf'],
  ['filename="=?windows-1251?Q?=CE=F2=F7?= =?windows-1251?Q?=B8=F2.doc?="', 'Отчёт.doc'],
  ['filename="a \\"quoted\\" name.txt"', 'a "quoted" name.txt'],
  ['filename=unquoted.name.txt', 'unquoted.name.txt'],
  ['filename="../../etc/passwd"', '../../etc/passwd'],
  [`filename*=gb18030''%D6%D0%CE%C4.txt`, '中文.txt'],
]

const fileNames = message(
  'file-names',
  'Names',
  multipart('multipart/mixed', 'n', [
    textPart('names\r\n'),
    ...namedFiles.map(([parameters]) =>
      entity(['Content-Type: application/octet-stream', 'Content-Transfer-Encoding: base64', `Content-Disposition: attachment;\r\n ${parameters}`], base64('x')),
    ),
  ]),
  {
    attachments: namedFiles.map(([, fileName], at) => ({
      section: String(at + 2),
      type: 'application/octet-stream',
      fileName,
      content: Buffer.from('x'),
    })),
  },
)

const inlineText = message(
  'inline-text-file',
  'Inline',
  multipart('multipart/mixed', 'it', [
    textPart('first\r\n'),
    entity(['Content-Type: text/plain; charset=utf-8; name="notes.txt"', 'Content-Disposition: inline; filename="notes.txt"'], 'notes'),
    textPart('last\r\n'),
    entity(['Content-Type: text/html; charset=utf-8', 'Content-Disposition: attachment; filename="page.html"'], '<p>page</p>'),
  ]),
  {
    bodies: [
      { section: '1', type: 'text/plain', text: 'first\n' },
      { section: '3', type: 'text/plain', text: 'last\n' },
    ],
    attachments: [
      { section: '2', type: 'text/plain', fileName: 'notes.txt', content: Buffer.from('notes') },
      { section: '4', type: 'text/html', fileName: 'page.html', content: Buffer.from('<p>page</p>') },
    ],
  },
)

const report = message(
  'bounce',
  'Undelivered',
  multipart('multipart/report; report-type=delivery-status', 'rep', [
    textPart('not delivered\r\n'),
    entity(['Content-Type: message/delivery-status'], 'Reporting-MTA: dns; mx.example\r\n\r\nAction: failed\r\n'),
    entity(['Content-Type: text/rfc822-headers'], 'Subject: lost\r\n\r\n'),
  ]),
  {
    bodies: [{ section: '1', type: 'text/plain', text: 'not delivered\n' }],
    attachments: [
      { section: '2', type: 'message/delivery-status', fileName: '' },
      { section: '3', type: 'text/rfc822-headers', fileName: '' },
    ],
  },
)

const onlyFile = message('only-a-file', 'PDF', attachedPart('application/pdf', 'only.pdf', everyByte), {
  bodies: [],
  attachments: [{ section: '1', type: 'application/pdf', fileName: 'only.pdf', content: everyByte }],
})

/** A message with one attachment of `size` pseudo-random bytes, the same for the same size. 25 MB by default. */
export function bigAttachment(size = 25 * 1024 * 1024): CorpusMessage {
  const content = Buffer.alloc(size)
  let state = 0x2545f491
  for (let at = 0; at < size; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    content[at] = state >>> 24
  }
  const mail = multipart('multipart/mixed', 'big', [textPart('big\r\n'), attachedPart('application/octet-stream', 'big.bin', content)])
  return message('big-attachment', 'Big', mail, {
    bodies: [{ section: '1', type: 'text/plain', text: 'big\n' }],
    attachments: [{ section: '2', type: 'application/octet-stream', fileName: 'big.bin', content }],
  })
}

export const structureMail: readonly CorpusMessage[] = [
  related,
  nested,
  winmail,
  flowed,
  invite,
  signed,
  fileNames,
  inlineText,
  report,
  onlyFile,
]
