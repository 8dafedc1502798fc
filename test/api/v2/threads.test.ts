/** Threads of 2.0: found from any of their messages, whatever of References and In-Reply-To is there. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { conversationOf, conversationsOf } from '../../../engine/index.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { basic } from '../core/raw-call.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { v2Mailbox, type V2Mailbox } from './rig.ts'

suite('threads of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  const ids = new Map<string, string>()
  const day = (number: number): Date => new Date(Date.UTC(2024, 4, number))

  before(async () => {
    rig = await startLiteRig()
    box = await v2Mailbox(rig, 'talks')
    const at = (name: string): string => `<${name}@sender.example>`
    const letters: readonly (readonly [name: string, day: number, headers: readonly string[]])[] = [
      ['root', 1, []],
      ['second', 2, [`In-Reply-To: ${at('root')}`, `References: ${at('root')}`]],
      // replies that name nothing but their parent
      ['third', 3, [`In-Reply-To: ${at('second')}`]],
      ['fourth', 4, [`In-Reply-To: ${at('third')}`]],
      ['other', 5, []],
      ['fifth', 6, [`In-Reply-To: ${at('fourth')}`, `References: ${at('third')} ${at('fourth')}`]],
    ]
    for (const [name, on, headers] of letters)
      ids.set(name, await box.deliver({ subject: name, id: name, date: day(on), headers }))
  })
  after(() => rig.close())

  const subjects = (thread: Json): string => (thread['messages'] as Json[]).map((one) => one['subject']).join(' ')
  const whole = 'root second third fourth fifth'

  test('of a message hold all of the conversation, whichever of them is asked', async () => {
    const threads = await Promise.all(
      whole.split(' ').map((name) => rig.ok('GET', `${box.account}/message/${ids.get(name)}/thread`)),
    )
    for (const thread of threads) assert.deepEqual(thread, threads[0])
    const [thread = {}] = threads
    assert.equal(subjects(thread), whole)
    assert.equal(thread['subject'], 'root')
    assert.deepEqual(
      thread['email_message_ids'],
      whole.split(' ').map((name) => `<${name}@sender.example>`),
    )
    assert.deepEqual(thread['folders'], ['INBOX'])
    assert.deepEqual(Object.keys(thread['person_info'] as Json).sort(), ['ada@sender.example', box.email].sort())
    const [message] = thread['messages'] as Json[]
    assert.deepEqual(message, await rig.ok('GET', `${box.account}/messages/${ids.get('root')}`))
    assert.equal(subjects(await rig.ok('GET', `${box.account}/messages/${ids.get('other')}/thread`)), 'other')
  })

  test('of many messages are found together in fewer reads than one by one, and are the same', async () => {
    const { store } = rig.engine
    const all = await store.messages.list(box.accountId, {}, { limit: 100, offset: 0 })
    let reads = 0
    const counted =
      <A extends unknown[], R>(read: (...args: A) => R) =>
      (...args: A): R => {
        reads += 1
        return read(...args)
      }
    const { list, byMessageIds } = store.messages
    const messages = { ...store.messages, list: counted(list), byMessageIds: counted(byMessageIds) }
    const together = await conversationsOf({ messages }, box.accountId, all)
    const few = reads
    for (const message of all) assert.deepEqual(together.get(message.id), await conversationOf({ messages }, message))
    const alone = reads - few
    assert(all.length === 6 && few < alone, `${few} reads together, ${alone} one by one`)
  })

  test('are listed by address, the one with the newest mail first', async () => {
    const urls = (await rig.list(`${box.account}/threads`)) as unknown as string[]
    assert.equal(urls.length, 2)
    const [first = '', second = ''] = urls.map((url) => url.slice(rig.url.length))
    assert.equal(subjects(await rig.ok('GET', first)), whole)
    assert.equal(subjects(await rig.ok('GET', second)), 'other')
    assert.deepEqual((await rig.ok('GET', first))['resource_url'], urls[0])
    for (const [query, expected] of [
      ['limit=1', [urls[0]]],
      ['limit=1&offset=1', [urls[1]]],
      ['offset=2', []],
      ['subject=thir', [urls[0]]],
      ['subject=other&folder=INBOX', [urls[1]]],
      ['folder=Sent', []],
      ['date_before=05/05/2024&date_after=05/05/2024', [urls[1]]],
      ['from=nobody@x.example', []],
      ['started_after=05/02/2024', [urls[1]]],
      ['started_before=05/02/2024', [urls[0]]],
      ['activity_after=05/06/2024', [urls[0]]],
      ['activity_after=05/06/2024&subject=second', [urls[0]]],
      ['activity_before=05/05/2024', [urls[1]]],
      ['started_after=05/06/2024', []],
      ['indexed_after=4102444800', []],
      ['indexed_before=4102444800', [urls[0], urls[1]]],
    ] as const)
      assert.deepEqual(await rig.list(`${box.account}/threads?${query}`), expected, query)
  })

  test('have limits, an order, and contents on demand', async () => {
    const path = `${box.account}/message/${ids.get('third')}/thread`
    assert.equal(subjects(await rig.ok('GET', `${path}?limit=2&offset=1`)), 'second third')
    assert.equal(subjects(await rig.ok('GET', `${path}?limit=2&sort_order=desc`)), 'fifth fourth')
    const full = await rig.ok('GET', `${path}?include_body=1&include_flags=1&include_headers=1&limit=1`)
    const [message] = full['messages'] as Json[]
    assert.equal((message?.['body'] as Json[])[0]?.['content'], 'Hello.\n')
    assert.deepEqual((message?.['headers'] as Json)['subject'], ['root'])
    assert.equal((message?.['flags'] as Json)['seen'], false)
    assert.equal((full['email_message_ids'] as string[]).length, 5)
  })

  test('give their size with each message of a list', async () => {
    const listed = await rig.list(`${box.account}/messages?include_thread_size=1`)
    assert.deepEqual(
      listed.map((message) => message['thread_size']),
      [5, 1, 5, 5, 5, 5],
    )
  })

  test('that are not there are 404', async () => {
    for (const id of ['0'.repeat(16), 'gm-123', 'none'])
      for (const [method, at, body] of [
        ['GET', '', undefined],
        ['DELETE', '', undefined],
        ['GET', '/folders', undefined],
        ['POST', '/folders', { add: 'Sent' }],
        ['PUT', '/folders', { folders: ['Sent'] }],
      ] as const) {
        const answer = await rig.call(method, `${box.account}/threads/${id}${at}`, body)
        assert.deepEqual([answer.status, answer.json['value']], [404, `thread ${id} is invalid`], method + at)
      }
  })

  test('lie in folders, are put into others, and are removed, like each of their messages', async () => {
    const mine = await v2Mailbox(rig, 'mover')
    const headers = ['In-Reply-To: <asked@sender.example>', 'References: <asked@sender.example>']
    await mine.deliver({ subject: 'asked', id: 'asked', date: day(1) })
    await mine.deliver({ subject: 'answered', id: 'answered', date: day(2), headers }, 'Sent')
    await mine.deliver({ subject: 'left', id: 'left', date: day(3), headers }, 'Trash')
    await mine.deliver({ subject: 'apart', id: 'apart', date: day(4) })
    const [, url = ''] = (await rig.list(`${mine.account}/threads`)) as unknown as string[]
    const thread = url.slice(rig.url.length)
    const places = async () => (await rig.list(`${thread}/folders`)).map(({ name }) => name)
    const lies = (subject: string): string[] =>
      ['INBOX', 'Sent', 'Archive', 'Trash'].filter((name) =>
        rig.imap.folder(mine.email, name).messages.some(({ raw }) => raw.includes(`Subject: ${subject}`)),
      )
    assert.deepEqual(await places(), ['INBOX', 'Sent'])
    assert.deepEqual(await rig.ok('POST', `${thread}/folders`, { add: 'Archive', remove: 'INBOX' }), { success: true })
    assert.deepEqual([lies('asked'), lies('answered'), lies('left')], [['Archive'], ['Sent', 'Archive'], ['Trash']])
    const last = await rig.call('POST', `${thread}/folders`, { remove: 'Archive' })
    assert.deepEqual([last.status, lies('answered')], [400, ['Sent', 'Archive']])
    assert.match(String(last.json['value']), /^remove: .*no other folder/)
    await rig.ok('PUT', `${thread}/folders`, { folders: [{ name: 'INBOX' }] })
    assert.deepEqual([lies('asked'), lies('answered'), await places()], [['INBOX'], ['INBOX'], ['INBOX']])
    const form = { headers: { authorization: basic, 'content-type': 'application/x-www-form-urlencoded' } }
    const send = (method: string, body: string, query = '') =>
      rig.call(method, `${thread}/folders${query}`, undefined, { ...form, body })
    const added = await send('POST', 'add[]=Archive&add%5B%5D=%5CSent&remove[]=INBOX&remove[]=')
    assert.equal(added.text, '{"success":true}')
    assert.deepEqual(
      [lies('asked'), lies('answered')],
      [
        ['Sent', 'Archive'],
        ['Sent', 'Archive'],
      ],
    )
    assert.match((await send('POST', '', '?add[]=')).text, /add: at least one/)
    assert.equal((await send('PUT', 'folders[]=INBOX&folders[]=Sent')).status, 200)
    assert.deepEqual(
      [lies('asked'), lies('answered')],
      [
        ['INBOX', 'Sent'],
        ['INBOX', 'Sent'],
      ],
    )
    assert.deepEqual(await rig.ok('DELETE', thread), { success: true })
    assert.deepEqual([lies('asked'), lies('answered'), lies('left'), lies('apart')], [[], [], ['Trash'], ['INBOX']])
    assert.equal((await rig.list(`${mine.account}/threads`)).length, 1)
    assert.equal((await rig.call('DELETE', thread)).status, 404)
    assert.deepEqual(lies('left'), ['Trash'], 'a repeated call empties no trash')
  })

  test('of a thousand messages are shown in part, and changed in no part', async () => {
    const long = await v2Mailbox(rig, 'long')
    const headers = ['References: <first@sender.example>']
    for (let n = 0; n < 1000; n += 1)
      rig.imap.append(
        long.email,
        'INBOX',
        mail({ to: long.email, subject: 'long', id: `long-${n}`, date: day(1), headers }),
      )
    const { store } = rig.engine
    await until('all are read', async () => (await store.messages.count(long.accountId)) === 1000, { withinMs: 30_000 })
    const [url = ''] = (await rig.list(`${long.account}/threads`)) as unknown as string[]
    const thread = url.slice(rig.url.length)
    assert.equal(((await rig.ok('GET', thread))['messages'] as Json[]).length, 100)
    for (const answer of [
      await rig.call('DELETE', thread),
      await rig.call('PUT', `${thread}/folders`, { folders: ['Archive'] }),
    ]) {
      assert.equal(answer.status, 400)
      assert.match(String(answer.json['value']), /^thread_id: too long a thread/)
    }
    assert.equal(rig.imap.folder(long.email, 'INBOX').messages.length, 1000)
  })

  test('hide what lies only in the trash, as lists do, unless the source shows all folders', async () => {
    const hiding = await v2Mailbox(rig, 'hiding')
    const headers = ['In-Reply-To: <kept@sender.example>', 'References: <kept@sender.example>']
    const id = await hiding.deliver({ subject: 'kept', id: 'kept', date: day(1) })
    await hiding.deliver({ subject: 'thrown', id: 'thrown', date: day(2), headers }, 'Trash')
    await hiding.deliver({ subject: 'alone', id: 'alone', date: day(3) }, 'Trash')
    const look = async (): Promise<readonly unknown[]> => {
      const thread = await rig.ok('GET', `${hiding.account}/messages/${id}/thread`)
      const listed = (await rig.list(`${hiding.account}/threads`)) as unknown as string[]
      const lists = await rig.list(`${hiding.account}/messages?sort_order=asc`)
      return [subjects(thread), listed.length, lists.map((one) => one['subject']).join(' ')]
    }
    assert.deepEqual(await look(), ['kept', 1, 'kept'])
    // Nor does it count as the newest of the thread.
    const later = Math.floor(day(2).getTime() / 1000) - 60
    const active = async () => (await rig.list(`${hiding.account}/threads?activity_after=${later}`)).length
    assert.equal(await active(), 0)
    await rig.ok('POST', hiding.source, { sync_all_folders: 1 })
    assert.deepEqual(await look(), ['kept thrown', 2, 'kept thrown alone'])
    assert.equal(await active(), 2)
  })
})
