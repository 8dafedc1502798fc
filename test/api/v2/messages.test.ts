/** Lists of messages and one message in the shape of 2.0; what 2.0 hides by default. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { until } from '../../support/until.ts'
import { allRead, startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { raw, v2Mailbox, type V2Mailbox } from './rig.ts'

suite('messages of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  let id = ''
  before(async () => {
    rig = await startLiteRig()
    box = await v2Mailbox(rig, 'reader')
    id = await box.deliverRaw(raw('parts', box.email), 'parts')
  })
  after(() => rig.close())

  const listed = async (of: V2Mailbox, query = ''): Promise<unknown[]> =>
    (await rig.list(`${of.account}/messages${query}`)).map((message) => message['subject'])

  test('have every field of the interface', async () => {
    const [message] = await rig.list(`${box.account}/messages`)
    const { date_received, date_indexed, person_info, ...rest } = message ?? {}
    const now = Date.now() / 1000
    for (const time of [date_received, date_indexed]) assert(Math.abs(Number(time) - now) < 600, String(time))
    assert.deepEqual(Object.keys(person_info as Json).sort(), [
      'Ada@sender.example',
      'bob@x.example',
      'carol@c.example',
      box.email,
    ])
    assert.deepEqual(rest, {
      message_id: id,
      email_message_id: '<parts@sender.example>',
      subject: 'parts',
      date: Date.UTC(2024, 4, 6, 10) / 1000,
      addresses: {
        from: { email: 'Ada@sender.example', name: 'Ada L.' },
        to: [
          { email: box.email, name: '' },
          { email: 'bob@x.example', name: 'Bob' },
        ],
        cc: [{ email: 'carol@c.example', name: '' }],
      },
      list_headers: { 'list-id': '<list.example>' },
      in_reply_to: '<root@sender.example>',
      references: ['<root@sender.example>', '<mid@sender.example>'],
      received_headers: ['from mx.example.org by imap.example.com; Mon, 06 May 2024 10:00:05 +0000'],
      folders: ['INBOX'],
      files: [
        {
          size: 8,
          type: 'application/pdf',
          body_section: '3',
          file_name: 'report_20240506.pdf',
          main_file_name: 'report.pdf',
          file_name_structure: [
            ['report', 'main'],
            ['_', 'boundary'],
            ['20240506', 'date'],
            ['.pdf', 'ext'],
          ],
          content_disposition: 'attachment',
          content_id: null,
          attachment_id: 2,
          x_attachment_id: '',
          encoding: 'base64',
          is_embedded: false,
          file_id: `${id}-2`,
          resource_url: `${rig.url}${box.account}/files/${id}-2`,
        },
      ],
      body: [{ body_section: '1.1', type: 'text/html', encoding: '7bit', size: 35, charset: 'utf-8' }],
      resource_url: `${rig.url}${box.account}/messages/${id}`,
    })
  })

  test('one is the same by each of its names, and under both spellings of the path', async () => {
    const [message] = await rig.list(`${box.account}/messages`)
    for (const path of ['message', 'messages'])
      for (const name of [id, '<parts@sender.example>', 'parts%40sender.example'])
        assert.deepEqual(await rig.ok('GET', `${box.account}/${path}/${name}`), message, `${path}/${name}`)
  })

  test('carry what is asked for besides, under the names of 2.0', async () => {
    const wanted =
      'include_body=1&body_type=text/html&include_headers=1&include_flags=1&include_source=1&include_thread_size=1'
    const one = await rig.ok('GET', `${box.account}/message/${id}?${wanted}`)
    const [first] = await rig.list(`${box.account}/messages?${wanted}`)
    const [inFolder] = await rig.list(`${box.source}/folders/INBOX/messages?${wanted}`)
    assert.deepEqual(first, one)
    assert.deepEqual(inFolder, one)
    const [body] = one['body'] as Json[]
    assert.equal(body?.['content'], '<p>Hello <img src="cid:logo@x"></p>')
    assert.equal('bodies' in one, false)
    assert.deepEqual((one['headers'] as Json)['subject'], ['parts'])
    assert.deepEqual(one['flags'], { seen: false, answered: false, flagged: false, deleted: false, draft: false })
    assert.deepEqual(one['sources'], [{ label: box.label, resource_url: rig.url + box.source }])
    assert.equal(one['thread_size'], 1)
    const text = await rig.ok('GET', `${box.account}/messages/${id}?include_headers=raw`)
    assert.match(String(text['headers']), /^From: "Ada L\." <Ada@sender\.example>\r\n/)
  })

  test('are filtered by folder, by name or by use, and by dates of both kinds', async () => {
    const mine = await v2Mailbox(rig, 'filters')
    const at = (day: number): Date => new Date(Date.UTC(2024, 4, day, 12))
    await mine.deliver({ subject: 'a', date: at(6) })
    await mine.deliver({ subject: 'b', date: at(7), from: 'Eve <eve@y.example>' })
    await mine.deliver({ subject: 'c', date: at(8) }, 'Sent')
    for (const [query, expected] of [
      ['', 'cba'],
      ['?sort_order=asc', 'abc'],
      ['?folder=inbox', 'ba'],
      ['?folder=%5CInbox', 'ba'],
      ['?folder=%5Csent', 'c'],
      ['?folder=Sent', 'c'],
      ['?date_after=05/07/2024', 'cb'],
      ['?date_before=5/7/2024', 'a'],
      ['?date_before=05/08/2024&date_after=05/07/2024', 'b'],
      [`?date_before=${at(7).getTime() / 1000}`, 'ba'],
      ['?from=eve@y.example', 'b'],
      ['?email=y.example&subject=B', 'b'],
      ['?limit=1&offset=1', 'b'],
      ['?source=filters::imap&folder=INBOX&limit=1', 'b'],
      ['?indexed_after=4102444800', ''],
      ['?indexed_before=4102444800&indexed_after=1', 'cba'],
      ['?indexed_before=01/02/2001', ''],
      ['?indexed_after=1&subject=b', 'b'],
      ['?indexed_after=1&limit=1&offset=1', 'b'],
      ['?file_name=*.pdf', ''],
      ['?file_size_max=99', ''],
    ] as const)
      assert.equal((await listed(mine, query)).join(''), expected, query)
    assert.equal((await rig.list(`${mine.source}/folders/Sent/messages?date_after=05/08/2024`)).length, 1)
    for (const query of [
      'date_before=13/01/2024',
      'date_after=02/30/2024',
      'limit=101',
      'include_source=maybe',
      'file_name=[',
      'file_size_min=x',
      'indexed_after=x',
    ]) {
      const answer = await rig.call('GET', `${mine.account}/messages?${query}`)
      assert.equal(answer.status, 400, query)
      assert.match(String(answer.json['value']), new RegExp(`^${query.split('=')[0] ?? ''}: `))
    }
  })

  test('are filtered by files that are shown, and in a folder by \\Seen', async () => {
    const mine = await v2Mailbox(rig, 'sieve')
    await mine.deliver({ subject: 'plain', date: new Date('2024-05-01') })
    await mine.deliverRaw(raw('parts', mine.email), 'parts')
    for (const [query, expected] of [
      ['?file_name=*.pdf', 'parts'],
      ['?file_name=report*&file_size_min=8&file_size_max=8', 'parts'],
      ['?file_name=*.pdf&file_size_min=9', ''],
      ['?file_name=winmail.dat', ''],
      ['?file_size_max=8&sort_order=asc', 'parts'],
      ['?file_size_min=9', ''],
    ] as const)
      assert.equal((await listed(mine, query)).join(), expected, query)
    const inbox = `${mine.source}/folders/INBOX/messages`
    const inInbox = async (query: string) => (await rig.list(inbox + query)).map(({ subject }) => subject).join()
    const [id] = (await rig.list(`${mine.account}/messages?subject=plain`)).map(({ message_id }) => String(message_id))
    await rig.ok('POST', `${mine.account}/messages/${id}/flags`, { seen: 1 })
    assert.equal(await inInbox('?flag_seen=1'), 'plain')
    assert.equal(await inInbox('?flag_seen=0'), 'parts')
    assert.equal(await inInbox('?flag_seen=0&indexed_before=1'), '')
  })

  test('of a folder are searched by the mail server; the list of the account does not search', async () => {
    const mine = await v2Mailbox(rig, 'searcher')
    await mine.deliver({ subject: 'hit', text: 'There is a needle in it.' })
    await mine.deliver({ subject: 'miss', text: 'There is none.' })
    await mine.deliver({ subject: 'sent', text: 'A needle too.' }, 'Sent')
    const found = async (path: string): Promise<unknown[]> =>
      (await rig.list(path)).map((message) => message['subject']).sort()
    const inbox = `${mine.source}/folders/INBOX/messages`
    assert.deepEqual(await found(`${inbox}?body_search_string=nEEdle`), ['hit'])
    assert.deepEqual(await found(`${inbox}?body_search_string=needle&subject=miss`), [])
    assert.deepEqual(await found(`${mine.source}/folders/%5CSent/messages?body_search_string=needle`), ['sent'])
    assert.deepEqual(await found(`${mine.account}/messages?body_search_string=needle`), ['hit', 'miss', 'sent'])
  })

  test('of the trash and of drafts are hidden, unless the source shows all folders', async () => {
    const mine = await v2Mailbox(rig, 'hider')
    await mine.deliver({ subject: 'here', date: new Date('2024-05-01') })
    await mine.deliver({ subject: 'draft' }, 'Drafts')
    const trashed = await mine.deliver({ subject: 'trash' }, 'Trash')
    await mine.deliver({ subject: 'both', id: 'both' })
    await mine.deliver({ subject: 'both', id: 'both' }, 'Trash')
    const inTrash = async () => (await rig.list(`${mine.path}/folders/Trash/messages`)).length
    await until('both in Trash', async () => (await inTrash()) === 2)
    const names = async (): Promise<unknown[]> => (await rig.list(`${mine.source}/folders`)).map(({ name }) => name)
    const has = (all: readonly unknown[]) => ['INBOX', 'Sent', 'Trash', 'Drafts'].filter((name) => all.includes(name))
    assert.deepEqual(await listed(mine, '?sort_order=asc'), ['here', 'both'])
    assert.deepEqual(await listed(mine, '?limit=1&offset=1'), ['here'])
    assert.deepEqual(has(await names()), ['INBOX', 'Sent'])
    for (const path of [
      `${mine.account}/messages?folder=Trash`,
      `${mine.account}/messages?folder=%5CDrafts`,
      `${mine.source}/folders/Drafts`,
      `${mine.source}/folders/Trash/messages`,
    ]) {
      const answer = await rig.call('GET', path)
      assert.equal(answer.status, 404, path)
      assert.match(String(answer.json['value']), /^folder .* is invalid: the source shows it with sync_all_folders=1$/)
    }
    // who knows its id may read it
    assert.deepEqual((await rig.ok('GET', `${mine.account}/messages/${trashed}`))['folders'], ['Trash'])
    await rig.ok('POST', mine.source, { sync_all_folders: 1 })
    assert.deepEqual((await listed(mine)).toSorted(), ['both', 'draft', 'here', 'trash'])
    assert.deepEqual((await listed(mine, '?folder=Trash')).toSorted(), ['both', 'trash'])
    assert.deepEqual(has(await names()), ['INBOX', 'Sent', 'Trash', 'Drafts'])
    assert.equal((await rig.ok('GET', `${mine.source}/folders/Trash`))['symbolic_name'], '\\Trash')
  })

  test('that are flagged \\Deleted are hidden with expunge_on_deleted_flag', async () => {
    const mine = await v2Mailbox(rig, 'expunger')
    await mine.deliver({ subject: 'stays' })
    const goes = await mine.deliver({ subject: 'goes' })
    await rig.ok('POST', `${mine.path}/messages/${goes}/flags`, { deleted: 1 })
    assert.equal((await listed(mine)).length, 2)
    await rig.ok('POST', mine.source, { expunge_on_deleted_flag: 1 })
    assert.deepEqual(await listed(mine), ['stays'])
    assert.deepEqual(await listed(mine, '?folder=INBOX&limit=1'), ['stays'])
    await rig.ok('POST', `${mine.path}/messages/${goes}/flags`, { deleted: 0 })
    await until('shown again', async () => (await listed(mine)).length === 2)
  })

  test('show images of signatures and winmail.dat with raw_file_list', async () => {
    const mine = await v2Mailbox(rig, 'raw.files')
    const name = await mine.deliverRaw(raw('raw', mine.email), 'raw')
    const files = async (): Promise<unknown[]> =>
      ((await rig.ok('GET', `${mine.account}/messages/${name}`))['files'] as Json[]).map((file) => file['file_name'])
    assert.deepEqual(await files(), ['report_20240506.pdf'])
    await rig.ok('POST', mine.source, { raw_file_list: 1 })
    assert.deepEqual(await files(), ['logo.png', 'winmail.dat', 'report_20240506.pdf'])
  })

  test('are found in every source, and say which one it concerns', async () => {
    const mine = await v2Mailbox(rig, 'two.sources')
    const second = 'two.sources.second@mail.example'
    rig.imap.addUser(second)
    rig.imap.append(second, 'INBOX', raw('there', second))
    const server = { server: rig.imap.host, port: rig.imap.port, use_ssl: 0, username: second, password: 'secret' }
    const made = await rig.ok('POST', `${mine.account}/sources`, { email: second, ...server })
    const label = String(made['label'])
    const added = (await rig.engine.store.accounts.listByUser(mine.userId)).find((one) => one.label === label)
    await allRead(rig.engine, added?.id ?? '')
    const answer = await rig.call('GET', `${mine.account}/messages/there@sender.example?include_source=1`)
    const url = `${rig.url}${mine.account}/sources/${encodeURIComponent(label)}`
    assert.equal(answer.headers['x-service-email-account-status'], `${url} OK`)
    assert.deepEqual(answer.json['sources'], [{ label, resource_url: url }])
    assert.deepEqual(await listed(mine), [])
    assert.deepEqual(await listed(mine, `?source=${label}`), ['there'])
  })
})

suite('folders of 2.0', () => {
  let rig: LiteRig
  before(async () => void (rig = await startLiteRig({ delimiter: '.' })))
  after(() => rig.close())

  test('have attributes and the delimiter, and unseen counts on demand', async () => {
    const box = await v2Mailbox(rig, 'folders', { subjects: ['one'] })
    const folder = async (query = ''): Promise<Json> => rig.ok('GET', `${box.source}/folders/INBOX${query}`)
    const plain = await folder()
    const { attributes, ...rest } = plain
    assert.deepEqual(rest, {
      name: 'INBOX',
      nb_messages: 1,
      delimiter: '.',
      delim: '.',
      symbolic_name: '\\Inbox',
      xlist_name: '\\Inbox',
      resource_url: `${rig.url}${box.source}/folders/INBOX`,
    })
    assert.deepEqual(Object.keys(attributes as Json).sort(), [
      'HasChildren',
      'HasNoChildren',
      'Marked',
      'Noinferiors',
      'Noselect',
    ])
    assert.deepEqual(await folder('?include_extended_counts=1'), { ...plain, nb_unseen_messages: 1 })
    const find = (all: readonly Json[]) => all.find(({ name }) => name === 'INBOX')
    assert.deepEqual(find(await rig.list(`${box.source}/folders`)), plain)
    const counted = find(await rig.list(`${box.source}/folders?include_extended_counts=1`))
    assert.equal(counted?.['nb_unseen_messages'], 1)
  })

  test('are named with slashes, or with the delimiter that is given', async () => {
    const box = await v2Mailbox(rig, 'levels')
    for (const name of ['a', 'a/b']) await rig.ok('POST', `${box.path}/folders/${name}`)
    for (const name of ['a/b', 'a%2Fb', 'a.b?delim=.'])
      assert.equal((await rig.ok('GET', `${box.source}/folders/${name}`))['name'], 'a/b', name)
    const parent = (await rig.ok('GET', `${box.source}/folders/a`))['attributes'] as Json
    assert.deepEqual([parent['HasChildren'], parent['HasNoChildren']], [true, false])
    await box.deliver({ subject: 'deep' }, 'a.b')
    assert.equal((await rig.list(`${box.source}/folders/a/b/messages`)).length, 1)
    assert.equal((await rig.list(`${box.account}/messages?folder=a/b`)).length, 1)
  })
})
