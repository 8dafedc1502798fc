/**
 * What a mailbox holds, read and changed through the API and by another mail program: the same on every real mail
 * server.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { part } from '../support/callbacks.ts'
import { quote } from '../support/raw-imap.ts'
import type { Json } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { userBody } from '../support/users.ts'
import { file, forwarded, invoice, lunch, note, report } from './letters.ts'
import { openDay, openMailbox, type Day, type Mailbox, type ServerKind } from './mailbox.ts'
import { assertSigned, subjects } from './stage.ts'

/** What is not pushed is found soon; what has gone is held for longer than it takes to find it elsewhere. */
export const quick = {
  MAILROOM_FOLDER_POLL: '1s',
  MAILROOM_FOLDER_POLL_COLD: '1s',
  MAILROOM_FOLDER_LIST: '1s',
  MAILROOM_GONE_HOLD: '4s',
}

export function readOn(kind: ServerKind, options: { skip?: string }): void {
  suite(`read and written on ${kind.name}, ${chosenStore().kind} store`, { ...options, concurrency: 4 }, () => {
    let day: Day
    before(async () => {
      day = await openDay(kind, quick)
    })
    after(() => day.close())
    const open = (name: string): Promise<Mailbox> => openMailbox(day, name, [report, lunch, invoice])

    test('a wrong password makes nothing and says why', async () => {
      await (await day.server.connect('eve@mail.example')).close()
      const answer = await day.service.ok(
        'POST',
        '/lite/users',
        userBody(day.server, 'eve@mail.example', { password: 'no' }),
      )
      assert.deepEqual([answer['success'], answer['feedback_code']], [false, 'invalid_credentials'])
      assert.deepEqual(await day.service.list('/lite/users?email=eve@mail.example'), [])
    })

    test('folders: names, counts, uses, and a new one that the server has too', async () => {
      const box = await open('fay')
      const list = await day.service.list(`${box.path}/folders`)
      const named = (name: string): Json => list.find((one) => one['name'] === box.name(name)) ?? assert.fail(name)
      await until('the counts', async () => {
        const { nb_messages: messages, nb_unseen_messages: unseen } = await day.service.ok('GET', box.folder('INBOX'))
        return messages === 3 && unseen === 3
      })
      assert.equal(named('INBOX')['symbolic_name'], '\\Inbox')
      assert.equal(named('Sent')['symbolic_name'], '\\Sent')
      for (const one of list) {
        assert.equal(one['delimiter'], kind.delimiter)
        const url = new URL(String(one['resource_url']))
        assert.equal((await day.service.ok('GET', url.pathname))['name'], one['name'])
      }
      const made = await day.service.ok('POST', box.folder('Projects/Mailroom'))
      assert.equal(made['success'], true)
      assert.equal((await day.service.ok('GET', box.folder('Projects/Mailroom')))['nb_messages'], 0)
      const listed = (await box.imap.command('LIST "" "*"')).join('\n')
      assert(listed.includes(box.wire('Projects/Mailroom')), listed)
      assert.equal((await day.service.api('POST', box.folder('Projects/Mailroom'))).status, 409)
    })

    test('folders whose names are not ASCII: made by either side, listed, filled, moved into', async () => {
      const box = await open('nils')
      await day.service.ok('POST', box.folder('Büro & Söhne'))
      const listed = (await box.imap.command('LIST "" "*"')).join('\n')
      assert(listed.includes(box.wire('B&APw-ro &- S&APY-hne')), listed)
      await box.imap.command(`CREATE ${quote(box.wire('&ZeVnLIqe-'))}`)
      await box.imap.command(`CREATE ${quote(box.wire('&ZeVnLIqe-/Entw&APw-rfe'))}`)
      await box.send('&ZeVnLIqe-/Entw&APw-rfe', 'deep')
      await until(
        'the folder',
        async () => (await day.service.api('GET', box.folder('日本語/Entwürfe'))).status === 200,
      )
      await box.lists('日本語/Entwürfe', ['deep'])
      assert.deepEqual((await box.message('deep'))['folders'], [box.name('日本語/Entwürfe')])
      const to = encodeURIComponent(box.name('Büro & Söhne'))
      const moving = `${box.folder('INBOX')}/messages/${await box.messageId('Lunch')}?new_folder_id=${to}`
      assert.equal((await day.service.ok('PUT', moving))['success'], true)
      assert.deepEqual(await box.subjects('', 'Büro & Söhne'), ['Lunch'])
      assert.deepEqual(await box.onServer('B&APw-ro &- S&APY-hne'), ['Lunch'])
    })

    test('the list and its filters', async () => {
      const box = await open('lisa')
      const newestFirst = ['Invoice', 'Lunch', 'Bericht März']
      assert.deepEqual(await box.subjects(''), newestFirst)
      const may = Date.UTC(2024, 4, 1) / 1000
      for (const [query, wanted] of [
        ['sort_order=asc', [...newestFirst].reverse()],
        ['limit=1&offset=1', ['Lunch']],
        ['subject=m%C3%A4rz', ['Bericht März']],
        ['from=carl@lunch.example', ['Lunch']],
        ['to=bob@example.org', newestFirst],
        ['cc=dora@cc.example', ['Lunch']],
        ['email=eva@shop.example,ann@example.com', ['Invoice', 'Bericht März']],
        [`date_after=${may}`, ['Invoice', 'Lunch']],
        [`date_before=${may}`, ['Lunch', 'Bericht März']],
        ['body_search_string=99+EUR', ['Invoice']],
        ['body_search_string=K%C3%B6ln', ['Bericht März']],
        ['folder=INBOX', newestFirst],
        [`folder=${encodeURIComponent(box.name('Archive'))}`, []],
      ] as const)
        assert.deepEqual(await box.subjects(`?${query}`), wanted, query)
      const [first] = await day.service.list(
        `${box.path}/messages?limit=1&include_body=1&include_headers=1&include_flags=1`,
      )
      assert(first)
      assert.deepEqual(
        (first['bodies'] as Json[]).map((body) => String(body['content']).trim()),
        ['Please pay 99 EUR.'],
      )
      assert.deepEqual(part(first, 'headers')['subject'], ['Invoice'])
      assert.equal(part(first, 'flags')['read'], false)
    })

    test('one message: facts, bodies, headers, the whole of it and its files byte for byte', async () => {
      const box = await open('mia')
      const message = await box.message('Bericht März')
      assert.deepEqual(part(message, 'addresses')['from'], [{ name: 'Ann Sender', email: 'ann@example.com' }])
      assert.equal(message['email_message_id'], '<report@corpus.example>')
      assert.equal(message['sent_at'], Date.UTC(2024, 2, 5, 9, 30) / 1000)
      const path = `${box.path}/messages/${String(message['message_id'])}`
      const contents = async (query: string): Promise<unknown> =>
        ((await day.service.ok('GET', `${path}/body${query}`))['bodies'] as Json[]).map((body) => body['content'])
      const [text, html] = ['Grüße aus Köln, Rechnung 4711.', '<p>Grüße aus <b>Köln</b></p>']
      assert.deepEqual(trimmed(await contents('')), [text, html])
      assert.deepEqual(trimmed(await contents('?type=text/plain')), [text])
      const { headers } = await day.service.ok('GET', `${path}/headers`)
      assert.deepEqual((headers as Json)['subject'], ['Bericht März'])
      const { headers: block } = await day.service.ok('GET', `${path}/headers?raw=1`)
      assert(report.raw.toString().startsWith(String(block).trimEnd()), String(block))
      assertSameBytes(await day.service.file(`${path}/raw`), report.raw)
      assertSameBytes(
        await day.service.file(`${box.folder('INBOX')}/messages/${encodeURIComponent('<report@corpus.example>')}/raw`),
        report.raw,
      )
      const attachments = await day.service.list(`${path}/attachments`)
      assert.deepEqual(
        attachments.map((one) => [one['file_name'], one['type'], one['content_disposition']]),
        [
          ['all.bin', 'application/octet-stream', 'attachment'],
          ['Prüfung.txt', 'text/plain', 'attachment'],
          ['Passed on.eml', 'message/rfc822', 'attachment'],
        ],
      )
      assertSameBytes(await day.service.file(`${path}/attachments/0`), file)
      assertSameBytes(await day.service.file(`${path}/attachments/1`), note)
      const { link } = await day.service.ok('GET', `${path}/attachments/0?as_link=1`)
      assertSameBytes(await day.service.file(String(link)), file)
    })

    const skip = kind.inexactParts ?? false
    test('a message that is a file of another: byte for byte', { skip }, async () => {
      const box = await open('noah')
      const path = `${box.path}/messages/${await box.messageId('Bericht März')}`
      assertSameBytes(await day.service.file(`${path}/attachments/2`), forwarded)
    })

    test('flags: written to the server, and read from it', async () => {
      const box = await open('flo')
      const path = `${box.folder('INBOX')}/messages/${await box.messageId('Lunch')}`
      const uid = await box.uid('INBOX', 'Lunch')
      const onServer = async (): Promise<string[]> => {
        // Until then Courier shows a session the flags that it knows.
        await box.imap.command('NOOP')
        const said = (await box.imap.command(`UID FETCH ${uid} (FLAGS)`)).join(' ')
        const flags = /FLAGS \(([^)]*)\)/.exec(said)?.[1] ?? assert.fail(said)
        return flags
          .split(' ')
          .filter((flag) => flag !== '' && flag.toLowerCase() !== '\\recent')
          .sort()
      }
      const flags = async (): Promise<Json> => part(await day.service.ok('GET', `${path}/flags`), 'flags')
      const id = await box.messageId('Lunch')
      const written = await day.service.ok('POST', `${path}/flags`, { seen: 1, flagged: 1 })
      assert.deepEqual(written['flags'], { read: true, answered: false, flagged: true, deleted: false, draft: false })
      assert.deepEqual(await onServer(), ['\\Flagged', '\\Seen'])
      // One flag in each call: between two STORE commands the reader may see the first.
      await day.service.ok('POST', `${path}/flags`, { answered: 1 })
      await day.service.ok('POST', `${path}/flags`, { flagged: 0 })
      await day.service.ok('DELETE', `${path}/read`)
      assert.deepEqual(await onServer(), ['\\Answered'])
      await day.service.ok('POST', `${path}/read`)
      assert.deepEqual(await onServer(), ['\\Answered', '\\Seen'])
      const { raw, ...named } = await flags()
      assert.deepEqual(named, { read: true, answered: true, flagged: false, draft: false })
      assert.deepEqual([...(raw as string[])].sort(), ['\\Answered', '\\Seen'])
      await day.service.ok('POST', `${path}/read`)
      await toldOnce(
        box,
        Array.from({ length: 5 }, () => `flags_changed ${id} INBOX`),
      )
      await box.imap.command(`UID STORE ${uid} -FLAGS (\\Seen)`)
      await box.imap.command(`UID STORE ${uid} +FLAGS (\\Flagged)`)
      const followed = async () => (await flags())['flagged'] === true && (await flags())['read'] === false
      await until('the flags of the other program', followed, { withinMs: 20_000 })
    })

    test('moves through the API: out of a folder, and wherever it lies', async () => {
      const box = await open('moe')
      const id = await box.messageId('Lunch')
      const archive = encodeURIComponent(box.name('Archive'))
      const lies = async (folder: string): Promise<void> => {
        assert.deepEqual((await day.service.ok('GET', `${box.path}/messages/${id}`))['folders'], [box.name(folder)])
        assert((await box.onServer(folder)).includes('Lunch'))
        assert.equal((await day.service.ok('GET', `${box.folder(folder)}/messages/${id}`))['subject'], 'Lunch')
      }
      assert.equal(
        (await day.service.ok('PUT', `${box.folder('INBOX')}/messages/${id}?new_folder_id=${archive}`))['success'],
        true,
      )
      await lies('Archive')
      assert.deepEqual(await box.onServer('INBOX'), ['=?utf-8?Q?Bericht_M=C3=A4rz?=', 'Invoice'])
      assert.equal((await day.service.api('GET', `${box.folder('INBOX')}/messages/${id}`)).status, 404)
      assert.equal((await day.service.ok('PUT', `${box.path}/messages/${id}?new_folder_id=INBOX`))['success'], true)
      await lies('INBOX')
      assert.deepEqual(await box.onServer('Archive'), [])
      assert.equal((await day.service.api('PUT', `${box.path}/messages/${id}?new_folder_id=Nowhere`)).status, 404)
      const there = [`folder_added ${id} ${box.name('Archive')}`, `folder_removed ${id} INBOX`]
      const back = [`folder_added ${id} INBOX`, `folder_removed ${id} ${box.name('Archive')}`]
      await toldOnce(box, [...there, ...back])
    })

    test('a move and an expunge by another mail program are followed and told', async () => {
      const box = await open('max')
      const [moved, expunged] = [await box.messageId('Lunch'), await box.messageId('Invoice')]
      const [uid, to] = [await box.uid('INBOX', 'Lunch'), quote(box.wire('Archive'))]
      const commands = [`UID COPY ${uid} ${to}`, `UID STORE ${uid} +FLAGS.SILENT (\\Deleted)`, 'EXPUNGE']
      for (const command of kind.lacksMove ? commands : [`UID MOVE ${uid} ${to}`]) await box.imap.command(command)
      await box.lists('Archive', ['Lunch'])
      assert.equal(await box.messageId('Lunch'), moved)
      await box.imap.command(`UID STORE ${await box.uid('INBOX', 'Invoice')} +FLAGS (\\Deleted)`)
      await box.imap.command('EXPUNGE')
      await box.lists('INBOX', ['Bericht März'])
      const gone = `${box.path}/messages/${expunged}`
      await until('404', async () => (await day.service.api('GET', gone)).status === 404)
      const wanted = [
        `folder_added ${moved} ${box.name('Archive')}`,
        `folder_removed ${moved} INBOX`,
        `deleted ${expunged} INBOX`,
      ]
      const told = async (): Promise<string[]> => (await box.told()).filter((line) => !line.startsWith('flags_changed'))
      await until('the changes', async () => (await told()).length >= wanted.length, { withinMs: 20_000 })
      assert.deepEqual((await told()).sort(), [...wanted].sort())
    })

    test('new mail in another folder is found, and told once', async () => {
      const box = await open('ella')
      const told = await box.webhook()
      await box.send('Archive', 'elsewhere')
      await until('elsewhere', () => told().length > 0, { withinMs: 20_000 })
      await box.send('INBOX', 'the end')
      await until('the end', () => told().length > 1)
      assert.deepEqual(subjects(told()), ['elsewhere', 'the end'])
      assert.deepEqual(part(told()[0]?.body ?? {}, 'message_data')['folders'], [box.name('Archive')])
      told().forEach(assertSigned)
    })
  })
}

/** What we have written is told by now; what the server says of it, before mail that comes later, adds nothing. */
async function toldOnce(box: Mailbox, wanted: readonly string[]): Promise<void> {
  assert.deepEqual((await box.told()).sort(), [...wanted].sort())
  for (const folder of ['INBOX', 'Archive']) await box.send(folder, `behind it in ${folder}`)
  const later = async (): Promise<string[]> => (await box.told()).filter((line) => line.startsWith('received'))
  await until('the mail behind it', async () => (await later()).length === 2, { withinMs: 20_000 })
  assert.deepEqual((await box.told()).filter((line) => !line.startsWith('received')).sort(), [...wanted].sort())
}

function trimmed(texts: unknown): string[] {
  return (texts as string[]).map((text) => text.trim())
}

/** Without printing them. */
function assertSameBytes(actual: Buffer, wanted: Buffer): void {
  if (actual.equals(wanted)) return
  let at = 0
  while (actual[at] === wanted[at]) at += 1
  const near = (bytes: Buffer): string =>
    JSON.stringify(bytes.subarray(Math.max(0, at - 40), at + 40).toString('latin1'))
  assert.fail(`${actual.length} bytes, not ${wanted.length}; at ${at}: ${near(actual)}, not ${near(wanted)}`)
}
