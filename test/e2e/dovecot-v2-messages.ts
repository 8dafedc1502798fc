/** Messages by 2.0 on real Dovecot: lists, parts, flags, copy and move, folders, removal, and new ones. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { raw } from '../api/v2/rig.ts'
import { part } from '../support/callbacks.ts'
import { mail } from '../support/mail.ts'
import type { Json } from '../support/service.ts'
import { until } from '../support/until.ts'
import {
  account,
  fetched,
  first,
  flagsOn,
  folder,
  labels,
  letters,
  names,
  placesOn,
  second,
  source,
  spellings,
  type Request,
  type World,
} from './dovecot-v2-rig.ts'

const none = { seen: false, answered: false, flagged: false, deleted: false, draft: false }

export function messageRows(open: () => World): void {
  test('what lists hide by default, and show when the source says so', async () => {
    const world = open()
    const [box] = world.boxes
    await box.append('Trash', [mail({ to: first, subject: 'thrown away' })])
    await box.append('Archive', [mail({ to: first, subject: 'marked' })], ['\\Deleted'])
    const listed = async (subject: string) =>
      (await world.list(`GET ${account}/messages`, { query: { subject } })).length
    const files = async () => names(await world.list(`GET ${account}/files`), 'file_name')
    const trash = async () => (await world.call(`GET ${folder}`, { path: { folder: '\\Trash' } })).status
    await world.ok(`POST ${source}`, { body: { sync_all_folders: 1, raw_file_list: 1 } })
    await until('both are there', async () => (await listed('thrown away')) + (await listed('marked')) === 2)
    assert.deepEqual((await files()).sort(), ['logo.png', 'report_20240506.pdf', 'winmail.dat'])
    assert.equal(await trash(), 200)
    await world.ok(`POST ${source}`, { body: { sync_all_folders: 0, raw_file_list: 0, expunge_on_deleted_flag: 1 } })
    assert.deepEqual([await listed('thrown away'), await listed('marked'), await trash()], [0, 0, 404])
    assert.deepEqual(await files(), ['report_20240506.pdf'])
    await world.ok(`POST ${source}`, { body: { expunge_on_deleted_flag: 0 } })
  })

  test('messages: listed with filters and contents', async () => {
    const world = open()
    const wanted = {
      include_body: 1,
      include_flags: 1,
      include_headers: 'raw',
      include_source: 1,
      include_thread_size: 1,
    }
    const filters = { subject: 'parts', folder: '\\Inbox', date_after: '05/06/2024', date_before: '05/07/2024' }
    const [one = {}, ...more] = await world.list(`GET ${account}/messages`, { query: { ...wanted, ...filters } })
    assert.deepEqual([one['subject'], one['thread_size'], one['flags'], more], ['parts', 2, none, []])
    assert.deepEqual(part(one, 'addresses')['from'], { name: 'Ada L.', email: 'Ada@sender.example' })
    assert.equal((one['body'] as Json[])[0]?.['content'], '<p>Hello <img src="cid:logo@x"></p>')
    assert.deepEqual(names(one['sources'] as Json[], 'label'), [labels[0]])
    assert.match(String(one['headers']), /^From: "Ada L\."/)
    const of = { from: 'bob@x.example', sort_order: 'asc', limit: 1 }
    const listed = await world.list(`GET ${folder}/messages`, { path: { folder: 'inbox' }, query: of })
    assert.deepEqual(names(listed), ['root'])
  })

  for (const word of spellings) {
    const one = `${account}/${word}/{message_id}`
    const at = async (name: string) => ({ message_id: await open().idOf(`${word} ${name}`) })
    const lies = (name: string, where: 0 | 1 = 0): Promise<string[]> =>
      placesOn(open().boxes[where], `${word} ${name}`, ['INBOX', 'Archive', 'Sent'])

    test(`/${word}: whole, and part by part`, async () => {
      const world = open()
      const path = { message_id: await world.idOf('parts') }
      const whole = await world.ok(`GET ${one}`, { path })
      const facts = ['date', 'email_message_id', 'in_reply_to', 'folders'].map((name) => whole[name])
      assert.deepEqual(facts, [1_714_989_600, '<parts@sender.example>', '<root@sender.example>', ['INBOX']])
      const [body] = await world.list(`GET ${one}/body`, { path, query: { type: 'text/html' } })
      assert.deepEqual([body?.['charset'], body?.['body_section']], ['utf-8', '1.1'])
      assert.deepEqual((await world.ok(`GET ${one}/headers`, { path }))['list-id'], ['<list.example>'])
      assert.match(await world.text(`GET ${one}/headers`, { path, query: { raw: 1 } }), /^From: [^]*\r\n\r\n$/)
      assert.equal(await world.text(`GET ${one}/source`, { path }), raw('parts', first))
      assert.deepEqual(await world.ok(`GET ${one}/flags`, { path }), none)
      assert.deepEqual(names(await world.list(`GET ${one}/folders`, { path }), 'symbolic_name'), ['\\Inbox'])
      const files = await world.list(`GET ${one}/files`, { path })
      assert.deepEqual([names(files, 'file_name'), files], [['report_20240506.pdf'], whole['files']])
      const thread = await world.ok(`GET ${one}/thread`, { path, query: { include_body: 1, limit: 5 } })
      assert.deepEqual(names(thread['messages'] as Json[]), ['root', 'parts'])
    })

    test(`/${word}: flags are those of the mail server`, async () => {
      const world = open()
      const path = await at('flagged')
      const answer = await world.ok(`POST ${one}/flags`, { path, body: { seen: 1, flagged: 1 } })
      const flags = { ...none, seen: true, flagged: true }
      assert.deepEqual(answer, { success: true, flags })
      assert.deepEqual(await flagsOn(world.boxes[0], 'INBOX', `${word} flagged`), ['\\Flagged \\Seen'])
      assert.deepEqual(await world.ok(`GET ${one}/flags`, { path }), flags)
      await world.ok(`POST ${one}/flags`, { path, body: { seen: 0, draft: 1, answered: 1 } })
      assert.deepEqual(await flagsOn(world.boxes[0], 'INBOX', `${word} flagged`), ['\\Answered \\Draft \\Flagged'])
    })

    test(`/${word}: copy and move within a source`, async () => {
      const world = open()
      const copy = { path: await at('copied'), body: { dst_folder: 'Archive', flag_flagged: 1, flag_seen: 1 } }
      for (let n = 0; n < 2; n += 1) assert.deepEqual(await world.ok(`POST ${one}`, copy), { success: true })
      assert.deepEqual(await lies('copied'), ['INBOX', 'Archive'])
      assert.deepEqual(await flagsOn(world.boxes[0], 'Archive', `${word} copied`), ['\\Flagged \\Seen'])
      assert.deepEqual(await flagsOn(world.boxes[0], 'INBOX', `${word} copied`), [''])
      const move = { path: await at('moved'), body: { dst_folder: '\\Sent', dst_source: labels[0], move: 1 } }
      for (let n = 0; n < 2; n += 1) await world.ok(`POST ${one}`, move)
      assert.deepEqual(await lies('moved'), ['Sent'])
      assert.deepEqual((await world.ok(`GET ${one}`, { path: move.path }))['folders'], ['Sent'])
    })

    test(`/${word}: copy and move to another source`, async () => {
      const world = open()
      const copy = { path: await at('sent'), body: { dst_folder: 'Archive', dst_source: labels[1], flag_answered: 1 } }
      for (let n = 0; n < 2; n += 1) await world.ok(`POST ${one}`, copy)
      assert.deepEqual([await lies('sent'), await lies('sent', 1)], [['INBOX'], ['Archive']])
      assert.deepEqual(await flagsOn(world.boxes[1], 'Archive', `${word} sent`), ['\\Answered'])
      const there = { message_id: await world.idOf(`${word} sent`, labels[1]) }
      const bytes = await world.text(`GET ${one}/source`, { path: there })
      assert.equal(bytes, letters.find(([subject]) => subject === `${word} sent`)?.[1])
      const move = { path: await at('given'), body: { dst_folder: 'Sent', dst_source: labels[1], move: 1 } }
      for (let n = 0; n < 2; n += 1) await world.ok(`POST ${one}`, move)
      assert.deepEqual([await lies('given'), await lies('given', 1)], [[], ['Sent']])
      assert.equal((await world.call(`GET ${one}`, { path: move.path })).status, 404)
      await world.idOf(`${word} given`, labels[1])
    })

    test(`/${word}: folders of a message, and its end`, async () => {
      const world = open()
      const path = await at('foldered')
      await world.ok(`POST ${one}/folders`, { path, body: { add: 'Archive', remove: 'INBOX' } })
      assert.deepEqual(await lies('foldered'), ['Archive'])
      await world.ok(`PUT ${one}/folders`, {
        path,
        body: { folders: [{ name: 'INBOX' }, { symbolic_name: '\\Sent' }] },
      })
      assert.deepEqual(await lies('foldered'), ['INBOX', 'Sent'])
      assert.deepEqual(names(await world.list(`GET ${one}/folders`, { path }), 'name').sort(), ['INBOX', 'Sent'])
      const end = await at('dropped')
      await world.ok(`POST ${one}`, { path: end, body: { dst_folder: 'Archive' } })
      assert.deepEqual(await world.ok(`DELETE ${one}`, { path: end }), { success: true })
      assert.deepEqual(await lies('dropped'), [])
      assert.equal((await world.call(`GET ${one}`, { path: end })).status, 404)
    })
  }

  test('two sources of one mailbox, under one name of the server or two: a move between them loses nothing', async (t) => {
    const world = open()
    const message_id = await world.idOf('alone')
    const lies = (): Promise<string[]> => placesOn(world.boxes[0], 'alone', ['INBOX', 'Archive'])
    const move = (request: Request) => world.call(`POST ${account}/messages/{message_id}`, request)
    for (const [server, dst_folder] of [
      [world.server.host, 'Archive'],
      ['localhost', 'INBOX'],
    ] as const) {
      const made = await world.ok(`POST ${account}/sources`, { body: world.mailbox(first, { server }) })
      const label = String(made['label'])
      const path = { label }
      t.after(() => world.call(`DELETE ${source}`, { path }))
      assert(!labels.some((known) => known === label), label)
      const body = { dst_folder, dst_source: label, move: 1 }
      for (let n = 0; n < 2; n += 1) {
        // A 503 while the new source is read for the first time.
        const isDone = async (): Promise<boolean> => (await move({ path: { message_id }, body })).status === 200
        await until(`in ${dst_folder}`, isDone, { everyMs: 50 })
        assert.deepEqual(await lies(), [dst_folder])
      }
      await world.ok(`DELETE ${source}`, { path })
    }
  })

  test('a new message by multipart: byte for byte, with flags, once for each call', async () => {
    const world = open()
    const [, box] = world.boxes
    const letter = mail({ to: second, subject: 'appended', text: 'grün\r\n'.repeat(20_000) })
    const ids: string[] = []
    for (let n = 0; n < 2; n += 1) {
      const body = new FormData()
      for (const [name, value] of Object.entries({ dst_folder: 'Archive', dst_source: labels[1], flag_seen: '1' }))
        body.append(name, value)
      body.append('message', new Blob([letter], { type: 'message/rfc822' }), 'mail.eml')
      const made = await world.ok(`POST ${account}/messages`, { body })
      assert.equal(made['email_message_id'], '<appended@sender.example>')
      ids.push(String(made['message_id']))
    }
    const there = await fetched(box, 'Archive', 'appended', 'FLAGS INTERNALDATE RFC822.SIZE')
    assert.equal(there.length, 2)
    for (const line of there) assert.match(line, new RegExp(`\\\\Seen.*RFC822.SIZE ${Buffer.byteLength(letter)}\\b`))
    const seconds = new Set(there.map((line) => /INTERNALDATE "([^"]+)"/.exec(line)?.[1]))
    assert.equal(new Set(ids).size, seconds.size, 'of one second: one message with two places')
    const query = { source: labels[1], subject: 'appended' }
    const listed = names(await world.list(`GET ${account}/messages`, { query }), 'message_id')
    assert.deepEqual(new Set(listed), new Set(ids))
    assert.equal(listed.length, seconds.size)
    const one = `${account}/message/{message_id}`
    for (const message_id of new Set(ids)) {
      const path = { message_id }
      assert.equal(await world.text(`GET ${one}/source`, { path }), letter)
      await world.ok(`DELETE ${one}`, { path })
    }
    assert.deepEqual(await placesOn(box, 'appended', ['Archive']), [])
  })
}
