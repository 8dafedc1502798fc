/** Folders on real Dovecot: names of every kind, any depth, both delimiters, special use, counts. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { needs } from '../../support/require.ts'
import { until } from '../../support/until.ts'
import { startMessageRig, type Json, type Mailbox, type MessageRig } from './messages-rig.ts'

/** Names as callers write them. */
const names = [
  'Projekte Ä',
  '日本語/ファイル',
  '100% & "mehr" ?#+',
  'a/b/c/d/e',

  'Post’s 🎉',
  'messages',
  'x/messages/y',
]

suite('folders on Dovecot', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  before(async () => {
    rig = await startMessageRig()
    mailbox = await rig.mailbox('folders', [mail({ to: 'folders@mail.example', subject: 'one' })])
  })
  after(() => rig.close())

  const one = (name: string, query = '') => `${mailbox.path}/folders/${encodeURIComponent(name)}${query}`

  for (const name of names) {
    test(`"${name}" is made, got, listed, holds mail and is not made twice`, async () => {
      const made = await rig.ok(one(name), 'POST')
      const folder = await rig.ok(one(name))
      assert.equal(made['success'], true)
      assert.equal(made['resource_url'], folder['resource_url'])
      assert.deepEqual(
        { ...folder, resource_url: '' },
        {
          name,
          nb_messages: 0,
          nb_unseen_messages: 0,
          delimiter: '/',
          symbolic_name: '',
          xlist_name: '',
          resource_url: '',
        },
      )
      const byUrl = await rig.ok(String(folder['resource_url']).slice(rig.url.length))
      assert.deepEqual(byUrl, folder)
      const listed = await rig.list(`${mailbox.path}/folders`)
      assert.deepEqual(
        listed.find((other) => other['name'] === name),
        folder,
      )
      const again = await rig.call('POST', one(name))
      assert.equal(again.status, 409)
      assert.equal(again.json()['value'], `folder ${name} exists already`)
      assert.deepEqual(await rig.list(`${one(name)}/messages`), [])
    })
  }

  test('raw slashes and percent-encoded ones are one name; delimiter takes the place of the slash', async () => {
    const raw = await rig.ok(`${mailbox.path}/folders/a/b/c`)
    assert.deepEqual(await rig.ok(`${mailbox.path}/folders/a%2Fb%2Fc`), raw)
    assert.deepEqual(await rig.ok(`${mailbox.path}/folders/a.b.c?delimiter=.`), raw)
    assert.deepEqual(await rig.ok(`${mailbox.path}/folders/a%7Cb%7Cc/?delimiter=%7C`), raw)
    await rig.ok(one('new:deep:er', '?delimiter=:'), 'POST')
    assert.equal((await rig.ok(one('new/deep/er')))['name'], 'new/deep/er')
    assert.equal((await rig.call('GET', one('a', '?delimiter=ab'))).status, 400)
    assert.equal((await rig.call('POST', one('a//b'))).status, 400)
  })

  test('INBOX in any case, its symbolic name, and special use of the others', async () => {
    const inbox = await rig.ok(`${mailbox.path}/folders/inbox`)
    assert.deepEqual(
      [inbox['name'], inbox['symbolic_name'], inbox['xlist_name'], inbox['nb_messages']],
      ['INBOX', '\\Inbox', '\\Inbox', 1],
    )
    const listed = new Map((await rig.list(`${mailbox.path}/folders`)).map((folder) => [folder['name'], folder]))
    for (const [name, symbolic, xlist] of [
      ['Junk', '\\Junk', '\\Spam'],
      ['Sent', '\\Sent', '\\Sent'],
      ['Trash', '\\Trash', '\\Trash'],
      ['Drafts', '\\Drafts', '\\Drafts'],
    ] as const) {
      const folder = listed.get(name)
      if (folder !== undefined) assert.deepEqual([folder['symbolic_name'], folder['xlist_name']], [symbolic, xlist])
    }
    assert(listed.has('Trash'))
  })

  test('include_names_only, and unknown folders', async () => {
    const only = await rig.list(`${mailbox.path}/folders?include_names_only=1`)
    const all = await rig.list(`${mailbox.path}/folders?include_names_only=0`)
    assert.deepEqual(
      only,
      all.map(({ name }) => ({ name })),
    )
    const unknown = await rig.call('GET', one('No/Such'))
    assert.deepEqual([unknown.status, unknown.json()['value']], [404, 'folder No/Such is invalid'])
    assert.equal((await rig.call('GET', `${one('No/Such')}/messages`)).status, 404)
    assert.equal((await rig.call('GET', `${mailbox.path}/messages?folder=No%2FSuch`)).status, 404)
  })

  test('a folder that the index has not seen yet is a 409 of the server, not a second folder', async () => {
    const imap = await rig.dovecot.connect(mailbox.email)
    await imap.command('CREATE Secretly')
    await imap.close()
    assert.equal((await rig.call('POST', one('Secretly'))).status, 409)
    assert.equal((await rig.call('GET', one('Secretly'))).status, 200, 'who heard of it knows it')
  })

  test('a folder that the index has and the server has not is made; so is one that was but a level above others', async () => {
    await rig.ok(one('Short-lived'), 'POST')
    const imap = await rig.dovecot.connect(mailbox.email)
    await imap.command('DELETE Short-lived')
    await imap.close()
    await rig.ok(one('Short-lived'), 'POST')
    await rig.ok(one('Above/Below'), 'POST')
    await rig.ok(one('Above'), 'POST')
    const checked = await rig.dovecot.connect(mailbox.email)
    for (const name of ['Short-lived', 'Above']) await checked.command(`SELECT ${name}`)
    await checked.close()
    assert.equal((await rig.call('POST', one('Above'))).status, 409)
  })

  test('counts follow the mail', async () => {
    const imap = await rig.dovecot.connect(mailbox.email)
    await imap.append('a/b/c/d/e', [mail({ to: mailbox.email, subject: 'in a/b' })])
    await imap.append('a/b/c/d/e', [mail({ to: mailbox.email, subject: 'seen in a/b' })], ['\\Seen'])
    await imap.close()
    let last = ''
    const counts = (folder: Json) => (last = [folder['nb_messages'], folder['nb_unseen_messages']].join())
    await until('the counts', async () => counts(await rig.ok(one('a/b/c/d/e'))) === '2,1', { explain: () => last })
  })
})

suite('folder names that cannot be', needs('dovecot'), () => {
  let rig: MessageRig
  let mailbox: Mailbox
  before(async () => {
    rig = await startMessageRig()
    mailbox = await rig.mailbox('names', [mail({ to: 'names@mail.example', subject: 'one' })])
  })
  after(() => rig.close())

  for (const [name, words] of [
    ['%0d%0aX', /control characters/],
    ['a%00b', /folder: /],
    ['a%7Fb', /control characters/],
    ['%C2%85', /control characters/],
    ['x'.repeat(300), /long|name|letter/i],
    ['~root', /folder: /],
    ['a/../b', /folder: /],
    ['x%2Fy|z?delimiter=%7C', /level "x\/y" holds "\/"/],
    ['x/y|z?delimiter=%7C', /level "x\/y" holds "\/"/],
    ['%2Fx', /empty level/],
  ] as const) {
    test(`${name.slice(0, 20)} is 400 and names folder`, async () => {
      const answer = await rig.call('POST', `${mailbox.path}/folders/${name}`)
      assert.equal(answer.status, 400, answer.bytes.toString())
      assert.match(String(answer.json()['value']), /^folder: /)
      assert.match(String(answer.json()['value']), words)
      assert.equal(answer.headers['retry-after'], undefined)
    })
  }

  test('nothing was made of them', async () => {
    const listed = (await rig.list(`${mailbox.path}/folders?include_names_only=1`)).map((folder) =>
      String(folder['name']),
    )
    assert(
      listed.every((name) => !/^[xa~]/.test(name)),
      listed.join(),
    )
  })
})
