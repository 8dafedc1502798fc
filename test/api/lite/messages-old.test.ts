/** Old mail on real Dovecot: dates before 1970 keep their place in the order, and uuencoded files are decoded. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { needs } from '../../support/require.ts'
import { startMessageRig, type Mailbox, type MessageRig } from './messages-rig.ts'

const to = 'old@mail.example'
const uuencoded = [
  `To: ${to}`,
  'From: ada@sender.example',
  'Subject: uuencoded',
  'Date: Fri, 15 Mar 1996 12:00:00 +0000',
  'Message-ID: <uuencoded@sender.example>',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary="cut"',
  '',
  '--cut',
  'Content-Type: text/plain',
  'Content-Transfer-Encoding: x-uuencode',
  '',
  'begin 644 text.txt',
  '%:&5L;&\\`',
  '`',
  'end',
  '--cut',
  'Content-Type: application/octet-stream; name="cat.bin"',
  'Content-Disposition: attachment; filename="cat.bin"',
  'Content-Transfer-Encoding: x-uue',
  '',
  'begin 644 cat.bin',
  '#8V%T',
  '`',
  'end',
  '--cut--',
  '',
].join('\r\n')

suite('old mail', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  before(async () => {
    rig = await startMessageRig()
    const at = (subject: string, date: string): string => mail({ to, subject, date: new Date(date) })
    mailbox = await rig.mailbox('old', [
      at('moon', '1969-07-20T20:17:40Z'),
      at('epoch', '1970-01-01T00:00:01Z'),
      at('war', '1914-07-28T11:10:00Z'),
      uuencoded,
    ])
  })
  after(() => rig.close())

  test('a date before 1970 is a negative number of seconds, and sorts before all others', async () => {
    const newest = await rig.list(`${mailbox.path}/messages`)
    const sent = (messages: readonly Record<string, unknown>[]) =>
      messages.map(({ subject, sent_at: at }) => [subject, at])
    const wanted = [
      ['uuencoded', Date.UTC(1996, 2, 15, 12) / 1000],
      ['epoch', 1],
      ['moon', -14_182_940],
      ['war', Date.UTC(1914, 6, 28, 11, 10) / 1000],
    ]
    assert.deepEqual(sent(newest), wanted)
    assert.deepEqual(sent(await rig.list(`${mailbox.path}/messages?sort_order=asc`)), wanted.toReversed())
    assert.deepEqual(sent(await rig.list(`${mailbox.path}/messages?limit=2&offset=2`)), wanted.slice(2))
    assert.deepEqual(sent(await rig.list(`${mailbox.path}/messages?date_before=1`)), wanted.slice(1))
    assert.deepEqual(sent(await rig.list(`${mailbox.path}/messages?date_after=0`)), wanted.slice(0, 2))
  })

  test('uuencode is undone in bodies and attachments', async () => {
    const message = `${mailbox.path}/messages/${encodeURIComponent('<uuencoded@sender.example>')}`
    const [body] = (await rig.ok(`${message}/body`))['bodies'] as Record<string, unknown>[]
    assert.equal(body?.['content'], 'hello')
    const file = await rig.call('GET', `${message}/attachments/0`)
    assert.deepEqual([file.status, file.bytes.toString()], [200, 'cat'])
  })
})
