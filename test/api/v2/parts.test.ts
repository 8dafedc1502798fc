/** Parts of a message, its files, and files as resources of their own. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { basic } from '../core/raw-call.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { raw, v2Mailbox, type V2Mailbox } from './rig.ts'

suite('parts of a message of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  let id = ''
  before(async () => {
    rig = await startLiteRig()
    box = await v2Mailbox(rig, 'parts')
    id = await box.deliverRaw(raw('parts', box.email), 'parts')
  })
  after(() => rig.close())

  for (const path of ['message', 'messages']) {
    const one = (part: string): string => `${box.account}/${path}/${id}/${part}`

    test(`/${path}/{id}/body is a bare array, with the content`, async () => {
      const content = '<p>Hello <img src="cid:logo@x"></p>'
      const part = { body_section: '1.1', type: 'text/html', encoding: '7bit', size: 35, charset: 'utf-8', content }
      assert.deepEqual(await rig.list(one('body')), [part])
      assert.deepEqual(await rig.list(one('body?type=text/html')), [part])
      assert.deepEqual(await rig.list(one('body?type=text/plain')), [])
    })

    test(`/${path}/{id}/headers is a bare object, or text`, async () => {
      const headers = await rig.ok('GET', one('headers'))
      assert.deepEqual([headers['subject'], headers['list-id']], [['parts'], ['<list.example>']])
      const answer = await rig.call('GET', one('headers?raw=1'))
      assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
      assert.match(answer.text, /^From: "Ada L\." <Ada@sender\.example>\r\n[^]*\r\n\r\n$/)
    })

    test(`/${path}/{id}/source is the message as it was sent`, async () => {
      const answer = await rig.call('GET', one('source'))
      assert.equal(answer.headers['content-type'], 'message/rfc822')
      assert.equal(answer.text, raw('parts', box.email))
    })

    test(`/${path}/{id}/flags is a bare object`, async () => {
      assert.deepEqual(await rig.ok('GET', one('flags')), {
        seen: false,
        answered: false,
        flagged: false,
        deleted: false,
        draft: false,
      })
      await rig.ok('POST', `${box.path}/messages/${id}/flags`, { seen: 1, flagged: 1, deleted: 1 })
      const flags = await rig.ok('GET', one('flags'))
      assert.deepEqual([flags['seen'], flags['flagged'], flags['deleted'], flags['draft']], [true, true, true, false])
      await rig.ok('POST', `${box.path}/messages/${id}/flags`, { seen: 0, flagged: 0, deleted: 0 })
    })

    test(`/${path}/{id}/folders are those that it lies in, with their uses`, async () => {
      const inbox = { name: 'INBOX', symbolic_name: '\\Inbox', xlist_name: '\\Inbox' }
      assert.deepEqual(await rig.list(one('folders')), [inbox])
      const [plain, trash] = [`Kept ${path}`, 'Trash']
      await rig.ok('PUT', `${box.source}/folders/${encodeURIComponent(plain)}`)
      await rig.ok('PUT', one('folders'), { folders: [plain, trash] })
      const named = (await rig.ok('GET', `${box.account}/${path}/${id}`))['folders']
      const folders = await rig.list(one('folders'))
      assert.deepEqual(
        folders.map(({ name }) => name),
        named,
      )
      assert.deepEqual(
        folders.toSorted((a, b) => String(a['name']).localeCompare(String(b['name']))),
        [
          { name: plain, symbolic_name: '', xlist_name: '' },
          { name: trash, symbolic_name: '\\Trash', xlist_name: '\\Trash' },
        ],
      )
      await rig.ok('PUT', one('folders'), { folders: ['INBOX'] })
    })

    test(`/${path}/{id}/files are those of the message`, async () => {
      const files = await rig.list(one('files'))
      assert.deepEqual(files, (await rig.ok('GET', `${box.account}/${path}/${id}`))['files'])
      assert.deepEqual(
        files.map((file) => file['file_name']),
        ['report_20240506.pdf'],
      )
    })

    test(`/${path}/{id} of an unknown message is 404 for each part`, async () => {
      for (const part of ['', '/body', '/headers', '/source', '/flags', '/folders', '/files', '/thread']) {
        const answer = await rig.call('GET', `${box.account}/${path}/${'0'.repeat(24)}${part}`)
        assert.deepEqual([answer.status, answer.json['value']], [404, `message ${'0'.repeat(24)} is invalid`], part)
      }
    })
  }
})

suite('files of 2.0', () => {
  let rig: LiteRig
  let box: V2Mailbox
  const ids: string[] = []
  before(async () => {
    rig = await startLiteRig()
    box = await v2Mailbox(rig, 'files')
    for (const [index, subject] of ['one', 'two', 'three'].entries()) {
      const mail = raw(subject, box.email)
        .replace('06 May 2024 10:00:00', `0${6 + index} May 2024 10:00:00`)
        .replaceAll('report_20240506.pdf', `${subject}.${index === 2 ? 'doc' : 'pdf'}`)
        .replace('JVBERi0=', 'JVBERi0='.repeat(index + 1))
        .replace('"Ada L." <Ada@sender.example>', index === 0 ? 'eve@y.example' : 'ada@sender.example')
      ids.push(await box.deliverRaw(mail, subject))
    }
    await box.deliver({ subject: 'without' })
  })
  after(() => rig.close())

  const names = async (query = ''): Promise<string> =>
    (await rig.list(`${box.account}/files${query}`)).map((file) => file['file_name']).join(' ')

  test('are listed with the facts of their message', async () => {
    const [file] = await rig.list(`${box.account}/files`)
    const { person_info, date_received, date_indexed, ...rest } = file ?? {}
    assert(Math.abs(Number(date_received) - Number(date_indexed)) < 600)
    assert.equal(Object.keys(person_info as Json).length, 4)
    assert.deepEqual(rest, {
      size: 24,
      type: 'application/pdf',
      body_section: '3',
      file_name: 'three.doc',
      main_file_name: 'three.doc',
      file_name_structure: [
        ['three', 'main'],
        ['.doc', 'ext'],
      ],
      content_disposition: 'attachment',
      content_id: null,
      attachment_id: 2,
      x_attachment_id: '',
      encoding: 'base64',
      is_embedded: false,
      file_id: `${ids[2]}-2`,
      resource_url: `${rig.url}${box.account}/files/${ids[2]}-2`,
      subject: 'three',
      message_id: ids[2],
      email_message_id: '<three@sender.example>',
      folders: ['INBOX'],
      date: Date.UTC(2024, 4, 8, 10) / 1000,
      addresses: {
        from: { email: 'ada@sender.example', name: '' },
        to: [
          { email: box.email, name: '' },
          { email: 'bob@x.example', name: 'Bob' },
        ],
        cc: [{ email: 'carol@c.example', name: '' }],
      },
    })
    assert.deepEqual(await rig.ok('GET', `${box.account}/files/${ids[2]}-2`), file)
  })

  test('are revisions of one another by their main names, and related in any format', async () => {
    const mine = await v2Mailbox(rig, 'revisions')
    const other = await v2Mailbox(rig, 'revisions2')
    const deliver = async (to: V2Mailbox, subject: string, name: string, day: string): Promise<string> => {
      const mail = raw(subject, to.email).replaceAll('report_20240506.pdf', name)
      const id = await to.deliverRaw(mail.replace('06 May 2024', `${day} May 2024`), subject)
      return `${to.account}/files/${id}-2`
    }
    const first = await deliver(mine, 'r1', 'Plan_2024-05-06.pdf', '06')
    await deliver(mine, 'r2', 'plan_2.pdf', '07')
    await deliver(mine, 'r3', 'plan_3.doc', '08')
    await deliver(mine, 'r4', 'planet.pdf', '09')
    await deliver(other, 'r5', 'plan_5.pdf', '10')
    const named = async (path: string) => (await rig.list(path)).map(({ file_name }) => file_name).join(' ')
    assert.equal(await named(`${first}/revisions`), 'plan_2.pdf')
    assert.equal(await named(`${first}/related`), 'plan_3.doc plan_2.pdf')
    assert.equal(await named(`${first}/related?limit=1&offset=1`), 'plan_2.pdf')
    assert.equal(await named(`${first.replace(/-2$/, '-0')}/related`), '')
    for (const part of ['related', 'revisions']) {
      const answer = await rig.call('GET', `${mine.account}/files/none/${part}`)
      assert.deepEqual([answer.status, answer.json['value']], [404, 'file none is invalid'])
    }
  })

  test('are filtered, sorted and paged', async () => {
    for (const [query, expected] of [
      ['', 'three.doc two.pdf one.pdf'],
      ['?sort_order=asc', 'one.pdf two.pdf three.doc'],
      ['?file_name=*.pdf', 'two.pdf one.pdf'],
      ['?file_name=*.PDF,t*.doc&limit=2', 'three.doc two.pdf'],
      [`?file_name=${encodeURIComponent('/^t.*\\.(doc|pdf)$/')}`, 'three.doc two.pdf'],
      ['?file_size_min=9&file_size_max=16', 'two.pdf'],
      ['?from=eve@y.example', 'one.pdf'],
      ['?email=carol@c.example&limit=1&offset=1', 'two.pdf'],
      ['?date_after=05/07/2024&date_before=05/08/2024', 'two.pdf'],
      ['?source=files::imap&offset=2', 'one.pdf'],
      ['?offset=3', ''],
      ['?indexed_after=4102444800', ''],
      ['?indexed_after=1&file_name=t*', 'three.doc two.pdf'],
    ] as const)
      assert.equal(await names(query), expected, query)
    await rig.ok('POST', box.source, { raw_file_list: 1 })
    assert.equal(await names('?limit=3'), 'logo.png winmail.dat three.doc')
    await rig.ok('POST', box.source, { raw_file_list: 0 })
    for (const query of [
      'file_name=[',
      'file_name=/(/',
      'file_size_min=-1',
      `file_name=/${'(a{1,9}){1,9}'.repeat(9)}/`,
    ]) {
      const answer = await rig.call('GET', `${box.account}/files?${encodeURI(query)}`)
      assert.equal(answer.status, 400, `${query} ${answer.text}`)
      assert.match(String(answer.json['value']), new RegExp(`^${query.split('=')[0] ?? ''}: `))
    }
  })

  test('are downloaded, or linked to by a bare URL', async () => {
    const path = `${box.account}/files/${ids[1]}-2/content`
    const answer = await rig.call('GET', path)
    assert.equal(answer.text, '%PDF-%PDF-')
    assert.equal(answer.headers['content-disposition'], 'attachment; filename="two.pdf"')
    for (const [query, accept] of [
      ['?as_link=1', '*/*'],
      ['', 'text/uri-list'],
      ['', 'application/json, Text/URI-List; q=0.5'],
    ] as const) {
      const link = await rig.call('GET', path + query, undefined, { headers: { authorization: basic, accept } })
      assert.equal(link.headers['content-type'], 'text/uri-list', `${query} ${accept}`)
      assert.match(link.text, /^http:\/\/127\.0\.0\.1:\d+\/downloads\/[^\s"]+$/)
      assert.equal(await (await fetch(link.text)).text(), '%PDF-%PDF-')
    }
    for (const [query, accept] of [
      ['?as_link=0', 'text/uri-list'],
      ['', '*/*, text/*'],
    ] as const) {
      const bytes = await rig.call('GET', path + query, undefined, { headers: { authorization: basic, accept } })
      assert.equal(bytes.text, '%PDF-%PDF-', `${query} ${accept}`)
    }
  })

  test('that are not there are 404 by their own name', async () => {
    for (const name of [`${ids[0]}-9`, `${'0'.repeat(24)}-0`, 'none', `${ids[0]}`])
      for (const path of ['', '/content']) {
        const answer = await rig.call('GET', `${box.account}/files/${name}${path}`)
        assert.deepEqual([answer.status, answer.json['value']], [404, `file ${name} is invalid`])
      }
    const nobody = 'f'.repeat(24)
    assert.equal((await rig.call('GET', `/2.0/accounts/${nobody}/files/x`)).status, 404)
  })
})
