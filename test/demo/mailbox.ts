/** A small mailbox such as people have, and the mail that arrives while one looks on. */
import { mail } from '../support/mail.ts'

export const owner = 'jane@demo.example'
const me = `Jane Doe <${owner}>`
const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * 3_600_000)

export interface StoredMail {
  readonly folder: string
  readonly raw: string
  readonly flags: readonly string[]
  readonly date: Date
}

/** A message with one attached file. */
function withAttachment(from: string, subject: string, date: Date, fileName: string, content: string): string {
  return [
    `From: ${from}`,
    `To: ${me}`,
    `Subject: ${subject}`,
    `Date: ${date.toUTCString().replace('GMT', '+0000')}`,
    'Message-ID: <invoice-2041@supplies.example>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary="part"',
    '',
    '--part',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Dear Jane,\r\n\r\nplease find our invoice attached.\r\n',
    '--part',
    `Content-Type: text/csv; name="${fileName}"`,
    `Content-Disposition: attachment; filename="${fileName}"`,
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from(content).toString('base64'),
    '--part--',
    '',
  ].join('\r\n')
}

export function startingMail(): StoredMail[] {
  const lunch = '<lunch@sender.example>'
  const received = (hours: number, parts: Parameters<typeof mail>[0], flags: readonly string[] = []): StoredMail => {
    const date = hoursAgo(hours)
    return { folder: 'INBOX', raw: mail({ ...parts, date }), flags, date }
  }
  const invoice = withAttachment(
    'Office Supplies <billing@supplies.example>',
    'Invoice 2041',
    hoursAgo(20),
    'invoice-2041.csv',
    'item,amount\nchair,120\n',
  )
  const answer = mail({
    from: me,
    to: 'Tom Berg <tom@friends.example>',
    subject: 'Re: Lunch on Friday?',
    id: 'lunch-yes',
    date: hoursAgo(28),
    headers: [`In-Reply-To: ${lunch}`, `References: ${lunch}`],
    text: 'Yes, noon is fine.',
  })
  return [
    received(
      70,
      {
        from: 'City Library <desk@library.example>',
        to: me,
        subject: 'Two books are due',
        text: 'Please bring them back by Monday.',
      },
      ['\\Seen'],
    ),
    received(
      30,
      {
        from: 'Tom Berg <tom@friends.example>',
        to: me,
        subject: 'Lunch on Friday?',
        id: 'lunch',
        text: 'At noon, the usual place?',
      },
      ['\\Seen', '\\Answered'],
    ),
    { folder: 'Sent', raw: answer, flags: ['\\Seen'], date: hoursAgo(28) },
    { folder: 'INBOX', raw: invoice, flags: ['\\Flagged'], date: hoursAgo(20) },
    received(6, {
      from: 'Garden Weekly <news@garden.example>',
      to: me,
      subject: 'What to plant in November',
      headers: ['List-Id: Garden Weekly <weekly.garden.example>', 'List-Unsubscribe: <https://garden.example/leave>'],
      text: 'Tulips, mostly.',
    }),
    received(2, {
      from: 'Ana Silva <ana@work.example>',
      to: me,
      subject: 'Figures for the meeting',
      text: 'They are in the shared folder.',
    }),
  ]
}

const arrivals = [
  ['Tom Berg <tom@friends.example>', 'Table is booked', 'For two, at noon.'],
  ['Ana Silva <ana@work.example>', 'Meeting moved to three', 'The room stays the same.'],
  ['Parcel Service <track@parcel.example>', 'Your parcel is on its way', 'It arrives tomorrow before ten.'],
  ['Mum <mum@family.example>', 'Sunday?', 'Cake at four.'],
] as const

/** The n-th message that arrives, counted from 0; each has an id of its own. */
export function arrivingMail(n: number): { readonly subject: string; readonly from: string; readonly raw: string } {
  const [from, subject, text] = arrivals[n % arrivals.length] ?? arrivals[0]
  return { from, subject, raw: mail({ from, to: me, subject, text, id: `demo-${n}-${Date.now()}` }) }
}
