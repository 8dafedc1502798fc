/** Reading over the API on real Dovecot: contents on lists and single messages, searches, links, ids in every form. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { multipart, attachedPart, textPart, envelope, bytes } from '../../support/corpus/build.ts'
import { mail } from '../../support/mail.ts'
import { needs } from '../../support/require.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig } from './messages-rig.ts'

const file = Buffer.from('every byte: \x00\x01\xff\r\n\n', 'latin1')
const both = bytes(
  envelope('both', 'Both kinds'),
  multipart('multipart/mixed', 'm', [
    multipart('multipart/alternative', 'a', [textPart('plain needle ÄÖ\r\n'), textPart('<p>html</p>', 'text/html')]),
    attachedPart('application/pdf', '=?utf-8?Q?Stra=C3=9Fe_=E6=96=87.pdf?=', file),
    attachedPart('application/x-empty', 'empty.bin', ''),
  ]),
)
const raws = [
  both,
  mail({ to: 'reader@mail.example', subject: 'other', text: 'Nothing to see', id: 'odd/id+with=signs' }),
  mail({ to: 'reader@mail.example', subject: 'quoted', text: 'A NEEDLE in capitals' }),
]

suite('reading on Dovecot', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  let id = ''

  before(async () => {
    rig = await startMessageRig()
    mailbox = await rig.mailbox('reader', raws)
    const imap = await rig.dovecot.connect(mailbox.email)
    await imap.append('Archive', [
      mail({ to: mailbox.email, subject: 'archived', text: 'an archived needle', id: 'twin' }),
    ])
    await imap.append('INBOX', [mail({ to: mailbox.email, subject: 'its twin', text: 'same Message-ID', id: 'twin' })])
    await imap.command('CREATE "Work/Q&AOQ- 100%"')
    await imap.append('Work/Q&AOQ- 100%', [mail({ to: mailbox.email, subject: 'deep', text: 'deep' })])
    await imap.close()
    await mailbox.holds(raws.length + 3)
    id = await mailbox.idOf(1)
  })
  after(() => rig.close())

  const single = (path: string) => [
    `${mailbox.path}/messages/${path}`,
    `${mailbox.path}/folders/INBOX/messages/${path}`,
  ]
  const wholeBodies = () => [
    { body_section: '1.1', type: 'text/plain', encoding: '8bit', charset: 'utf-8', content: 'plain needle ÄÖ\n' },
    { body_section: '1.2', type: 'text/html', encoding: '8bit', charset: 'utf-8', content: '<p>html</p>' },
  ]
  const withoutSize = (list: unknown) =>
    (list as Json[]).map((part) => Object.fromEntries(Object.entries(part).filter(([name]) => name !== 'size')))

  test('include_body, body_type, include_flags and include_headers on both lists and both messages', async () => {
    const query = 'include_body=1&include_flags=1&include_headers=1'
    const lists = [
      `${mailbox.path}/messages?subject=both&${query}`,
      `${mailbox.path}/folders/INBOX/messages?subject=both&${query}`,
    ]
    const found = [
      ...(await Promise.all(lists.map(async (path) => (await rig.list(path))[0]))),
      ...(await Promise.all(single(`${id}?${query}`).map((path) => rig.ok(path)))),
    ]
    for (const message of found) {
      assert(message)
      assert.deepEqual(withoutSize(message['bodies']), wholeBodies())
      assert.deepEqual((message['flags'] as Json)['read'], false)
      const headers = message['headers'] as Record<string, string[]>
      assert.deepEqual(headers['subject'], ['Both kinds'])
      assert.deepEqual(headers['message-id'], ['<both@corpus.example>'])
      assert.deepEqual(message, found[0])
    }
    for (const path of [`${mailbox.path}/messages?subject=both&include_body=1&body_type=TEXT/html`]) {
      const [message] = await rig.list(path)
      assert.deepEqual(withoutSize(message?.['bodies']), wholeBodies().slice(1))
    }
    const [plain] = single(id)
    const bare = await rig.ok(plain ?? '')
    for (const absent of ['flags', 'headers', 'body_error']) assert(!(absent in bare))
    assert((bare['bodies'] as Json[]).every((body) => !('content' in body)))
    const raw = await rig.ok(`${plain}?include_headers=raw`)
    assert.match(String(raw['headers']), /^From: Ann Sender <ann@example.com>\r\n/)
    assert.equal((await rig.call('GET', `${plain}?include_headers=2`)).status, 400)
  })

  test('an address has a name and an email; the name is empty where the message gives none', async () => {
    const [message] = await rig.list(`${mailbox.path}/messages?subject=quoted&limit=1`)
    assert.deepEqual(message?.['addresses'], {
      from: [{ name: 'Ada Sender', email: 'ada@sender.example' }],
      to: [{ name: '', email: 'reader@mail.example' }],
    })
  })

  test('body, headers and raw', async () => {
    for (const path of single(id)) {
      const body = await rig.ok(`${path}/body`)
      assert.deepEqual(withoutSize(body['bodies']), wholeBodies())
      assert.match(String(body['resource_url']), /\/messages\/[0-9a-f]+\/body$/)
      assert.deepEqual(withoutSize((await rig.ok(`${path}/body?type=text/plain`))['bodies']), wholeBodies().slice(0, 1))
      assert.deepEqual((await rig.ok(`${path}/body?type=text/rtf`))['bodies'], [])
      const parsed = (await rig.ok(`${path}/headers`))['headers'] as Record<string, string[]>
      assert.deepEqual(parsed['subject'], ['Both kinds'])
      const text = String((await rig.ok(`${path}/headers?raw=1`))['headers'])
      assert(text.startsWith('From: Ann Sender') && text.endsWith('\r\n\r\n'), JSON.stringify(text))
      const raw = await rig.call('GET', `${path}/raw`)
      assert.equal(raw.headers['content-type'], 'message/rfc822')
      assert(raw.bytes.equals(both))
    }
  })

  test('attachments: name in ASCII, type of the part, the bytes; unknown ones are 404', async () => {
    for (const path of single(id)) {
      const answer = await rig.call('GET', `${path}/attachments/0`)
      assert.equal(answer.headers['content-type'], 'application/pdf')
      assert.equal(answer.headers['content-disposition'], 'attachment; filename="Strasse _.pdf"')
      assert(answer.bytes.equals(file))
      const empty = await rig.call('GET', `${path}/attachments/1`)
      assert.deepEqual([empty.status, empty.bytes.length], [200, 0])
      for (const wrong of ['2', '-1', 'x', '0x0']) {
        const unknown = await rig.call('GET', `${path}/attachments/${wrong}`)
        assert.equal(unknown.status, 404)
        assert.equal(unknown.json()['value'], `attachment ${wrong} is invalid`)
      }
    }
    const head = await rig.call('HEAD', `${single(id)[0]}/attachments/0`)
    assert.deepEqual([head.status, head.bytes.length], [200, 0])
    await rig.ok(`${single(id)[0]}/body`)
  })

  test('as_link: a link without authentication that is bound to what it names', async () => {
    const link = String((await rig.ok(`${single(id)[0]}/attachments/0?as_link=1`))['link'])
    assert(link.startsWith(`${rig.url}/downloads/`))
    const path = link.slice(rig.url.length)
    const answer = await rig.call('GET', path, { auth: false })
    assert.equal(answer.status, 200)
    assert(answer.bytes.equals(file))
    assert.equal(answer.headers['content-disposition'], 'attachment; filename="Strasse _.pdf"')
    const other = await mailbox.idOf(2)
    const changed = [
      path.replace('/0?', '/1?'),
      path.replace(id, other),
      path.replace(mailbox.accountId, 'f'.repeat(mailbox.accountId.length)),
      path.replace(/expires=(\d+)/, (_, time: string) => `expires=${Number(time) + 1}`),
      path.replace(/signature=./, (start) => (start.endsWith('A') ? 'signature=B' : 'signature=A')),
      path.replace(/signature=.*/, 'signature=x'),
    ]
    for (const wrong of changed) {
      assert.notEqual(wrong, path)
      const refused = await rig.call('GET', wrong, { auth: false })
      assert.equal(refused.status, 403, wrong)
      assert.equal(refused.json()['type'], 'error')
    }
    assert.equal((await rig.call('GET', path.replace(/\?.*/, ''), { auth: false })).status, 400)
    assert.equal((await rig.call('GET', `${single(id)[0]}/attachments/7?as_link=1`)).status, 404)
  })

  test('body_search_string: in one folder, in all, in any case, beyond ASCII, on one message', async () => {
    const subjects = async (path: string) =>
      (await rig.list(`${mailbox.path}/${path}`)).map((message) => message['subject']).sort()
    assert.deepEqual(await subjects('folders/INBOX/messages?body_search_string=Needle'), ['Both kinds', 'quoted'])
    assert.deepEqual(await subjects('folders/Archive/messages?body_search_string=needle'), ['archived'])
    assert.deepEqual(await subjects('messages?body_search_string=nEEdle'), ['Both kinds', 'archived', 'quoted'])
    assert.deepEqual(await subjects('messages?folder=Archive&body_search_string=needle'), ['archived'])
    assert.deepEqual(await subjects(`messages?body_search_string=${encodeURIComponent('ÄÖ')}`), ['Both kinds'])
    assert.deepEqual(await subjects('messages?body_search_string=needle&subject=quoted&include_body=1'), ['quoted'])
    assert.deepEqual(await subjects('messages?body_search_string=haystack'), [])
    for (const path of single(id)) {
      assert.equal((await rig.ok(`${path}?body_search_string=needle`))['subject'], 'Both kinds')
      assert.equal((await rig.call('GET', `${path}?body_search_string=haystack`)).status, 404)
    }
  })

  test('message ids in every form, through every kind of folder', async () => {
    const forms = [
      'both@corpus.example',
      '<both@corpus.example>',
      'both%40corpus.example',
      '%3Cboth%40corpus.example%3E',
      id,
    ]
    for (const form of forms)
      for (const path of single(form))
        assert.equal((await rig.ok(path.replace('<', '%3C').replace('>', '%3E')))['message_id'], id)
    for (const form of ['odd/id+with=signs@sender.example', 'odd%2Fid+with%3Dsigns@sender.example']) {
      for (const path of single(form)) assert.equal((await rig.ok(`${path}/flags`))['resource_url'] !== undefined, true)
      for (const path of single(form)) assert.equal((await rig.ok(path))['subject'], 'other')
    }
    const folders = ['Work/Qä 100%25', 'Work%2FQ%C3%A4%20100%25', 'Work.Qä 100%25']
    for (const [index, name] of folders.entries()) {
      const suffix = index === 2 ? '?delimiter=.' : ''
      const list = await rig.list(`${mailbox.path}/folders/${wire(name)}/messages${suffix}`)
      assert.deepEqual(
        list.map((message) => message['folders']),
        [['Work/Qä 100%']],
      )
      const message = String(list[0]?.['message_id'])
      assert.equal(
        (await rig.ok(`${mailbox.path}/folders/${wire(name)}/messages/${message}${suffix}`))['subject'],
        'deep',
      )
    }
  })

  test('a message asked through a folder where it does not lie is 404, whatever is asked of it', async () => {
    for (const part of ['', '/body', '/headers', '/raw', '/flags', '/attachments', '/attachments/0']) {
      const answer = await rig.call('GET', `${mailbox.path}/folders/Archive/messages/${id}${part}`)
      assert.equal(answer.status, 404, part)
      assert.equal(answer.json()['value'], `message ${id} is invalid`)
    }
    assert.equal(
      (await rig.call('GET', `${mailbox.path}/folders/Nowhere/messages/${id}`)).json()['value'],
      'folder Nowhere is invalid',
    )
  })

  test('one Message-ID of two messages: each folder answers its own', async () => {
    const subject = async (path: string) => (await rig.ok(`${mailbox.path}/${path}`))['subject']
    assert.equal(await subject('folders/Archive/messages/twin@sender.example'), 'archived')
    assert.equal(await subject('folders/INBOX/messages/twin@sender.example'), 'its twin')
  })

  test('mail that has just come is read, searched, marked and moved, though the command connection was in the folder before', async () => {
    const imap = await rig.dovecot.connect(mailbox.email)
    for (const [round, act] of (
      [
        (path: string) => rig.call('GET', `${path}/body`),
        (path: string) => rig.call('GET', `${path}/raw`),
        (path: string) => rig.call('POST', `${path}/read`),
        (path: string) => rig.call('PUT', `${path}?new_folder_id=Trash`),
      ] as const
    ).entries()) {
      await rig.ok(`${mailbox.path}/folders/INBOX/messages/${id}/body`)
      const word = `justnow${round}`
      const held = await rig.engine.store.messages.count(mailbox.accountId)
      await imap.append('INBOX', [mail({ to: mailbox.email, subject: word, text: word })])
      await mailbox.holds(held + 1)
      const [found] = await rig.list(`${mailbox.path}/messages?subject=${word}`)
      const path = `${mailbox.path}/folders/INBOX/messages/${String(found?.['message_id'])}`
      if (round % 2 === 0)
        assert.equal((await rig.list(`${mailbox.path}/folders/INBOX/messages?body_search_string=${word}`)).length, 1)
      const answer = await act(path)
      assert.equal(answer.status, 200, answer.bytes.toString())
    }
    await imap.close()
  })
})

/** Non-ASCII as UTF-8 in percent-encoding, the rest as it is. */
function wire(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char))
}
