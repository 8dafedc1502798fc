/** Mail that breaks the rules. Servers differ in how they take it apart, so only what all agree on is expected. */
import { base64, bytes, entity, message, multipart, plainFrom, textPart, written } from './build.ts'
import type { CorpusMessage } from './types.ts'

const noEnd = message(
  'missing-end-boundary',
  'cut',
  entity(['Content-Type: multipart/mixed; boundary="cut"'], `--cut\r\n${textPart('one\r\n').toString()}\r\n--cut\r\n${textPart('two\r\n').toString()}`),
  {
    bodies: [
      { section: '1', type: 'text/plain', text: 'one\n' },
      { section: '2', type: 'text/plain', text: 'two\n' },
    ],
  },
)

const noBoundary = message('no-boundary-parameter', 'no boundary', entity(['Content-Type: multipart/mixed'], 'just text\r\n'), {
  subject: 'no boundary',
  bodies: [{ section: 'TEXT', type: 'text/plain', text: 'just text\n', size: 11 }],
  attachments: [],
})

const neverUsed = message('boundary-never-used', 'unused', entity(['Content-Type: multipart/mixed; boundary=never'], 'just text\r\n'), {
  subject: 'unused',
  bodies: [{ section: 'TEXT', type: 'text/plain', text: 'just text\n', size: 11 }],
  attachments: [],
})

const badBase64 = message(
  'base64-broken',
  'b64',
  entity(['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'], 'SGVs\r\n!!bG8g*\r\nd29y bGQ\r\n'),
  { bodies: [{ section: '1', type: 'text/plain', text: 'Hello world' }] },
)

const typeUnfinished = message('type-unfinished', 'unfinished', entity(['Content-Type: text; charset="utf-8'], 'still text é\r\n'), {
  bodies: [{ section: '1', type: 'text/plain', text: 'still text é\n', size: 15 }],
  attachments: [],
})

const typeUnfinishedKoi8 = message(
  'type-unfinished-koi8',
  'unfinished',
  entity(['Content-Type: text; charset="koi8-r'], bytes(Buffer.from('8NLJ18XU', 'base64'), '\r\n')),
  { bodies: [{ section: '1', type: 'text/plain', text: 'Привет\n', size: 8 }] },
)

/** As list servers do it that know nothing of encodings. */
const footer = message(
  'base64-footer',
  'footer',
  entity(
    ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'],
    `${base64('Grüße!')}\r\n_______________________________________________\r\nCorpus mailing list\r\nhttps://list.example/corpus\r\n`,
  ),
  { bodies: [{ section: '1', type: 'text/plain', text: 'Grüße!' }] },
)

const joined = message(
  'base64-joined',
  'joined',
  entity(
    ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: base64'],
    `${base64('one\n!')}\r\n\r\n${base64('two é'.repeat(40))}\r\n${base64('!')}`,
  ),
  { bodies: [{ section: '1', type: 'text/plain', text: `one\n!${'two é'.repeat(40)}!` }] },
)

const badQuoted = message(
  'quoted-printable-broken',
  'qp',
  entity(['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: Quoted-Printable'], 'a=C3=A4 =XY 100%= \r\n!  \r\nend='),
  { bodies: [{ section: '1', type: 'text/plain', text: 'aä =XY 100%!\nend' }] },
)

const bareLf = written(
  'bare-lf',
  'From: Ann Sender <ann@example.com>\nSubject: bare\n lf\nMessage-ID: <bare-lf@corpus.example>\n\nline one\nline two\n',
  { from: plainFrom, subject: 'bare lf', bodies: [{ section: '1', type: 'text/plain', text: 'line one\nline two\n' }] },
)

const longLine = 'x'.repeat(300_000)

function deeply(levels: number): Buffer {
  let content: Buffer = textPart('deep\r\n')
  for (let level = 0; level < levels; level++) content = multipart('multipart/mixed', `level${level}`, [content])
  return content
}

export const brokenMail: readonly CorpusMessage[] = [
  noEnd,
  noBoundary,
  neverUsed,
  badBase64,
  typeUnfinished,
  typeUnfinishedKoi8,
  footer,
  joined,
  badQuoted,
  bareLf,
  message('long-lines', 'long', entity(['Content-Type: text/plain'], `${longLine}\r\n`), {
    bodies: [{ section: '1', type: 'text/plain', text: `${longLine}\n` }],
  }),
  written('empty-body', 'From: Ann Sender <ann@example.com>\r\nSubject: nothing\r\n\r\n', {
    from: plainFrom,
    subject: 'nothing',
    bodies: [{ section: '1', type: 'text/plain', text: '' }],
    attachments: [],
  }),
  written('no-header', '\r\njust a body\r\n', { subject: '', from: [], emailMessageId: null }),
  written('header-only', 'Subject: header only\r\n', { subject: 'header only' }),
  written('nul-bytes', 'Subject: a\0b\r\nMessage-ID: <nul@corpus.example>\r\n\r\nc\0d\r\n', { subject: 'a b', emailMessageId: 'nul@corpus.example' }, false),
  message('type-nonsense', 'nonsense', entity(['Content-Type: ;;;=', 'Content-Transfer-Encoding: whatever'], 'still text\r\n'), {
    subject: 'nonsense',
  }),
  message('deeply-nested', 'deep', deeply(30), {
    bodies: [{ section: Array.from({ length: 30 }, () => '1').join('.'), type: 'text/plain', text: 'deep\n' }],
  }),
  message(
    'many-parts',
    'parts',
    multipart('multipart/mixed', 'p', Array.from({ length: 200 }, () => entity(['Content-Type: application/x-part', 'Content-Transfer-Encoding: base64'], base64('p')))),
    { subject: 'parts' },
  ),
]
