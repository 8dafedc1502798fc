/** Mail whose headers are hard: many recipients, odd addresses, ids and dates. */
import { entity, message, plainFrom, written } from './build.ts'
import type { CorpusMessage } from './types.ts'

const text = entity(['Content-Type: text/plain'], 'text\r\n')

const recipients = Array.from({ length: 1000 }, (_, at) => ({ name: `Recipient, No. ${at}`, email: `r${at}@example.org` }))
const manyRecipients = written(
  'thousand-recipients',
  `From: Ann Sender <ann@example.com>\r\nTo: ${recipients.map(({ name, email }) => `"${name}" <${email}>`).join(',\r\n ')}\r\n` +
    'Message-ID: <thousand@corpus.example>\r\nSubject: all\r\n\r\ntext\r\n',
  { from: plainFrom, to: recipients, toCount: 1000, subject: 'all' },
)

const oddAddresses = written(
  'odd-addresses',
  [
    'From: "O\'Neil, \\"Joe\\"" (the boss (really)) <joe@EXAMPLE.com>',
    'To: Friends: =?utf-8?Q?J=C3=B6rg?= <joerg@example.de>, "quoted local"@example.org;, undisclosed-recipients:;,',
    ' bare@example.net (Bare Name), <@relay.example,@b.example:routed@example.com>, J\u00fcrgen <j@b\u00fccher.example>',
    'Cc: broken <cut@example.com, Next One <next@example.com>, , no address here, =?utf-8?B?RG9lLCBKYW5l?= <jane@example.com>',
    'Subject: odd',
    'Message-ID: <odd-addresses@corpus.example>',
    '',
    'text',
  ].join('\r\n'),
  {
    from: [{ name: 'O\'Neil, "Joe"', email: 'joe@example.com' }],
    to: [
      { name: 'Jörg', email: 'joerg@example.de' },
      { name: '', email: '"quoted local"@example.org' },
      { name: 'Bare Name', email: 'bare@example.net' },
      { name: '', email: 'routed@example.com' },
      { name: 'Jürgen', email: 'j@bücher.example' },
    ],
    cc: [
      { name: 'broken', email: 'cut@example.com' },
      { name: 'Next One', email: 'next@example.com' },
      { name: 'no address here', email: '' },
      { name: 'Doe, Jane', email: 'jane@example.com' },
    ],
  },
)

function withHeaders(name: string, lines: readonly string[], expected: CorpusMessage['expected']): CorpusMessage {
  return written(name, [...lines, '', 'text', ''].join('\r\n'), expected)
}

const listMail = withHeaders(
  'mailing-list',
  [
    'Received: from a.example by b.example; Tue, 5 Mar 2024 09:31:00 +0000',
    'Received: from c.example',
    '\tby a.example; Tue, 5 Mar 2024 09:30:30 +0000',
    'From: list@example.org',
    'Date: 5 Mar 24 10:30 +0100 (CET)',
    'Subject: Re: thread',
    'Message-ID: <reply@list.example>',
    'In-Reply-To: Your message <parent@list.example> of Monday',
    'References: <root@list.example>',
    ' <parent@list.example>',
    'List-Id: The List <list.example.org>',
    'List-Unsubscribe: <mailto:off@example.org>,',
    ' <https://example.org/off>',
    'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
  ],
  {
    sentAt: Date.UTC(2024, 2, 5, 9, 30),
    emailMessageId: 'reply@list.example',
    inReplyTo: 'parent@list.example',
    references: ['root@list.example', 'parent@list.example'],
    receivedCount: 2,
    listHeaders: {
      'list-id': 'The List <list.example.org>',
      'list-unsubscribe': '<mailto:off@example.org>, <https://example.org/off>',
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
    },
  },
)

const hugeSubject = 'long '.repeat(30_000).trim()

export const headerMail: readonly CorpusMessage[] = [
  manyRecipients,
  oddAddresses,
  listMail,
  withHeaders('no-message-id', ['From: ann@example.com', 'Date: Tue, 05 Mar 2024 09:30:00 GMT', 'Subject: no id'], {
    emailMessageId: null,
    subject: 'no id',
    from: [{ name: '', email: 'ann@example.com' }],
  }),
  withHeaders('two-message-ids', ['Message-ID: <first@corpus.example>', 'Message-Id: <second@corpus.example>', 'Subject: two'], {
    emailMessageId: 'first@corpus.example',
  }),
  withHeaders('message-id-bare', ['Message-ID: bare.id@corpus.example', 'Subject: bare'], { emailMessageId: 'bare.id@corpus.example' }),
  message('same-id', 'first of two', text, { subject: 'first of two' }),
  message('same-id', 'second of two, same Message-ID', text, { subject: 'second of two, same Message-ID' }),
  withHeaders('date-broken', ['Date: yesterday at noon', 'Message-ID: <date-broken@corpus.example>'], { sentAt: null }),
  withHeaders('date-absent', ['Message-ID: <date-absent@corpus.example>'], { sentAt: null }),
  withHeaders('huge-header', [`Subject: ${hugeSubject}`, `X-Huge: ${'x'.repeat(200_000)}`, 'Message-ID: <huge@corpus.example>'], {
    subject: hugeSubject.slice(0, 10_000),
    emailMessageId: 'huge@corpus.example',
  }),
  withHeaders('folded-oddly', ['Subject:', ' folded', '\t  twice ', 'Message-ID:', ' <folded@corpus.example>'], {
    subject: 'folded   twice',
    emailMessageId: 'folded@corpus.example',
  }),
]
