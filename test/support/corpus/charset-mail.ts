/** Mail in every charset: encoded-word subject and name, body in base64 and in quoted-printable. */
import { base64, bytes, entity, message, quotedPrintable, wrapped, written } from './build.ts'
import { charsetSamples, type CharsetSample } from './charset-samples.ts'
import type { CorpusMessage } from './types.ts'

function labelled({ charset, text, base64: sample }: CharsetSample): CorpusMessage {
  const encoded = Buffer.from(sample, 'base64')
  const content = entity([`Content-Type: text/plain; charset="${charset}"`, 'Content-Transfer-Encoding: base64'], wrapped(sample))
  return message(`charset-${charset}`, `=?${charset}?B?${encoded.toString('base64')}?=`, content, {
    subject: text,
    bodies: [{ section: '1', type: 'text/plain', text }],
    attachments: [],
  })
}

function quoted({ charset, text, base64: sample }: CharsetSample): CorpusMessage {
  const encoded = Buffer.from(sample, 'base64')
  const q = Array.from(encoded, (byte) => `=${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  const content = entity(
    [`Content-Type: text/html; charset=${charset.toUpperCase()}`, 'Content-Transfer-Encoding: quoted-printable'],
    quotedPrintable(bytes('<p>', encoded, '</p>')),
  )
  return message(`charset-q-${charset}`, `=?${charset}*de?q?${q}?=`, content, {
    subject: text,
    bodies: [{ section: '1', type: 'text/html', text: `<p>${text}</p>` }],
  })
}

const emoji = '🎉 Party 🥳 at 20h – 日本 ✔'

function splitUtf8(): CorpusMessage {
  // Words cut in the middle of a character, as many senders cut them.
  const encoded = Buffer.from(emoji)
  const words = [0, 2, 9, 17].map((from, at, all) => encoded.subarray(from, all[at + 1] ?? encoded.length))
  const subject = words.map((word) => `=?UTF-8?B?${word.toString('base64')}?=`).join('\r\n ')
  return message('subject-emoji-split', subject, entity(['Content-Type: text/plain'], 'x\r\n'), { subject: emoji })
}

function rawHeaders(name: string, charset: string, subject: string, encoded: Buffer): CorpusMessage {
  const content = entity([`Content-Type: text/plain; charset=${charset}`, 'Content-Transfer-Encoding: 8bit'], bytes(encoded, '\r\n'))
  return message(name, encoded, content, { subject, bodies: [{ section: '1', type: 'text/plain', text: `${subject}\n` }] })
}

function lyingCharset(): CorpusMessage {
  const content = entity(['Content-Type: text/plain; charset=x-no-such-charset', 'Content-Transfer-Encoding: 8bit'], 'Größe €\r\n')
  return message('charset-unknown', '=?x-no-such-charset?Q?Gr=C3=B6=C3=9Fe?=', content, {
    subject: 'Größe',
    bodies: [{ section: '1', type: 'text/plain', text: 'Größe €\n' }],
  })
}

function htmlMeta(): CorpusMessage {
  const html = bytes('<html><head><meta charset="windows-1251"></head><body>', Buffer.from('z/Do4uXy', 'base64'), '</body></html>')
  const content = entity(['Content-Type: text/html', 'Content-Transfer-Encoding: base64'], base64(html))
  return message('charset-html-meta', 'meta', content, {
    bodies: [
      {
        section: '1',
        type: 'text/html',
        text: '<html><head><meta charset="windows-1251"></head><body>Привет</body></html>',
      },
    ],
  })
}

function byteOrderMark(): CorpusMessage {
  const content = entity(['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'], base64('\ufeffmarked'))
  return message('charset-bom', 'bom', content, { bodies: [{ section: '1', type: 'text/plain', text: 'marked' }] })
}

function oddWords(): CorpusMessage {
  const subject = '=?utf-8?Q?a_question?_=C3=A4?= =?utf-8?q?b?=tail =?utf-8?B?8J+YgA?= =?utf-8?x?no?= =?broken'
  return message('subject-odd-words', subject, entity(['Content-Type: text/plain'], 'x\r\n'), {
    subject: 'a question? äbtail 😀 =?utf-8?x?no?= =?broken',
  })
}

const latin1 = Buffer.from('R\xe9sum\xe9 \x80', 'latin1')
const koi8 = Buffer.from('8NLJ18XU', 'base64')

export const charsetMail: readonly CorpusMessage[] = [
  ...charsetSamples.map(labelled),
  // ASCII tags around wide characters would be no text at all.
  ...charsetSamples.filter(({ charset }) => !/^utf-(?:16|32)/.test(charset)).map(quoted),
  splitUtf8(),
  rawHeaders('raw-headers-utf8', 'utf-8', 'Grüße 🎈', Buffer.from('Grüße 🎈')),
  rawHeaders('raw-headers-latin1', 'iso-8859-1', 'Résumé €', latin1),
  rawHeaders('raw-headers-koi8', 'koi8-r', 'Привет', koi8),
  lyingCharset(),
  htmlMeta(),
  byteOrderMark(),
  oddWords(),
  written('subject-injection', 'Subject: =?utf-8?Q?a=0D=0ABcc:_x@y.z=00?=\r\n\r\nx\r\n', { subject: 'a Bcc: x@y.z' }),
]
