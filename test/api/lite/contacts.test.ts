/** Contacts: counted from the mail that is there and the mail that comes, sorted and paged. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { OpenApi } from '../../../api/openapi.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

suite('contacts', () => {
  let rig: LiteRig
  let box: TestMailbox
  const contacts = async (query = ''): Promise<Json[]> =>
    (await rig.ok('GET', `/lite/users/${box.userId}/contacts${query}`))['contacts'] as Json[]
  const addressOf = async (name: string): Promise<string> =>
    (await emails()).find((email) => email.startsWith(`${name}@`)) ?? 'nobody'
  const emails = async (query = ''): Promise<string[]> => (await contacts(query)).map(({ email }) => String(email))

  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('carla')
    const bob = 'Bob <bob@x.example>'
    await box.deliver({ from: bob, subject: 'one', date: new Date('2024-05-01T10:00:00Z') })
    await box.deliver({ from: bob, subject: 'two', id: 'two' })
    await box.deliver({ from: bob, subject: 'three', headers: ['Cc: Carol <carol@c.example>'] })
    await box.deliver({ from: bob, subject: 'four of bob' })
    await box.deliver({ from: 'Eve <EVE@y.example>', subject: 'four', id: 'four' })
    await box.deliver({ from: 'eve@y.example', subject: 'five', id: 'five' })
    await box.deliver({ from: 'zed@z.example', subject: 'six' })
    // The user answers both of Eve's and one of Bob's, and writes to Zed alone without an answer.
    for (const [id, to] of [
      ['two', 'BOB@x.example'],
      ['four', 'eve@y.example'],
      ['five', 'eve@y.example, Eve <eve@y.example>'],
    ] as const) {
      const headers = [`In-Reply-To: <${id}@sender.example>`, `References: <${id}@sender.example>`]
      await box.deliverRaw(mail({ from: box.email, to, subject: `re ${id}`, headers }), `re ${id}`, 'Sent')
    }
    for (const n of [1, 2, 3, 4, 5])
      await box.deliverRaw(
        mail({ from: box.email, to: 'zed@z.example', subject: `to zed ${n}` }),
        `to zed ${n}`,
        'Sent',
      )
    await until('counts', async () => (await contacts('?sort_by=direct_count'))[0]?.['direct_count'] === 2)
  })
  after(() => rig.close())

  test('have every field, with counts of the mail there is', async () => {
    const [first] = await contacts()
    assert.deepEqual(Object.keys(first ?? {}).sort(), [
      'contact_id',
      'direct_count',
      'email',
      'indirect_count',
      'last_received',
      'name',
      'service_user_id',
      'total_count',
    ])
    assert.equal(first?.['service_user_id'], box.userId)
    assert.match(String(first['contact_id']), /^[0-9a-f]{24}$/)
    const shown = new Map((await contacts()).map((one) => [one['email'], one]))
    const bob = shown.get('bob@x.example')
    assert.equal(bob?.['name'], 'Bob')
    const last = Number(bob['last_received'])
    assert(Number.isInteger(last) && Math.abs(last - Date.now() / 1000) < 600, `seconds: ${last}`)
    // named by others, never a sender
    assert.deepEqual(
      [shown.get('carol@c.example')?.['name'], shown.get('carol@c.example')?.['last_received']],
      ['Carol', 0],
    )
  })

  test('count all messages with the contact, those received, and those replied to', async () => {
    const counts = (await contacts()).map((one) => [
      String(one['email']).split('@')[0],
      one['total_count'],
      one['indirect_count'],
      one['direct_count'],
    ])
    assert.deepEqual(counts, [
      ['zed', 6, 1, 0],
      ['bob', 5, 4, 1],
      ['eve', 4, 2, 2],
      ['carol', 1, 0, 0],
    ])
    for (const [name, total] of counts) {
      const found = await rig.list(
        `${box.path}/messages?email=${encodeURIComponent(await addressOf(String(name)))}&limit=100`,
      )
      assert.equal(found.length, total, `messages with ${String(name)}`)
    }
  })

  test('are sorted by each count, either way', async () => {
    const order = async (query: string) => (await emails(query)).map((email) => email.charAt(0)).join('')
    assert.equal(await order(''), 'zbec')
    assert.equal(await order('?sort_order=asc'), 'cebz')
    assert.equal(await order('?sort_order=ASC&sort_by=Total_Count'), 'cebz')
    assert.equal(await order('?sort_by=indirect_count&sort_order=desc'), 'bezc')
    assert.equal(await order('?sort_by=indirect_count&sort_order=asc'), 'czeb')
    assert.match(await order('?sort_by=direct_count'), /^eb(zc|cz)$/)
    assert.match(await order('?sort_by=direct_count&sort_order=asc'), /^(zc|cz)be$/)
  })

  test('are explained in the reference as they are counted', async () => {
    const document = (await rig.ok('GET', '/openapi.json')) as unknown as OpenApi
    const { parameters = [] } = document.paths['/lite/users/{id}/contacts']?.['get'] ?? {}
    const words = parameters.find(({ name }) => name === 'sort_by')?.description ?? ''
    assert.match(
      words,
      /`indirect_count` of those received from the contact, `direct_count` of those received and replied to/,
    )
  })

  test('come in pages whose union is the whole', async () => {
    const pages = await Promise.all([0, 1, 2, 3].map((offset) => emails(`?limit=1&offset=${offset}`)))
    assert.deepEqual(pages.flat(), await emails())
  })

  test('are found by id and by address, in any case, and nowhere else', async () => {
    const [first] = await contacts()
    const base = `/lite/users/${box.userId}/contacts`
    assert.deepEqual(await rig.ok('GET', `${base}/${String(first?.['contact_id'])}`), first)
    assert.deepEqual(await rig.ok('GET', `${base}/zed@z.example`), first)
    assert.deepEqual(await rig.ok('GET', `${base}/ZED%40z.example/`), first)
    for (const id of ['nobody@x.example', 'f'.repeat(24)]) {
      const answer = await rig.call('GET', `${base}/${id}`)
      assert.equal(answer.status, 404)
      assert.match(String(answer.json['value']), new RegExp(`contact ${id} is invalid`))
    }
    const other = await rig.ok('POST', '/lite/users', {})
    const path = `/lite/users/${String(other['id'])}/contacts`
    assert.deepEqual(await rig.ok('GET', path), { contacts: [] })
    assert.equal((await rig.call('GET', `${path}/${String(first?.['contact_id'])}`)).status, 404)
  })

  test('count a new message as it comes', async () => {
    await box.deliver({ from: 'New <new@n.example>', subject: 'seven' })
    await until('the contact', async () => (await emails()).includes('new@n.example'))
  })

  test('of an email account go with it, and those of the others stay as they are', async () => {
    const first = await rig.mailbox('two.lists')
    const base = `/lite/users/${first.userId}`
    const second = 'two.lists.second@mail.example'
    rig.imap.addUser(second)
    for (const from of ['own@x.example', 'both@x.example'])
      rig.imap.append(second, 'INBOX', mail({ from, to: second, subject: from, id: from }))
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    const made = await rig.ok('POST', `${base}/email_accounts`, userBody(server, second))
    await first.deliver({ from: 'Both <both@x.example>', subject: 'a', id: 'a' })
    await first.deliver({ from: 'Both <both@x.example>', subject: 'b', id: 'b' })
    const shown = async () => {
      const all = (await rig.ok('GET', `${base}/contacts`))['contacts'] as Json[]
      return all.map(({ email, total_count, indirect_count }) => [email, total_count, indirect_count])
    }
    const before = [
      ['both@x.example', 3, 3],
      ['own@x.example', 1, 1],
    ]
    await until('all are counted', async () => isDeepStrictEqual(await shown(), before))
    const [, own] = (await rig.ok('GET', `${base}/contacts`))['contacts'] as Json[]
    await rig.ok('DELETE', `${base}/email_accounts/${encodeURIComponent(String(made['label']))}`)
    assert.deepEqual(await shown(), [['both@x.example', 2, 2]])
    assert.equal((await rig.call('GET', `${base}/contacts/${String(own?.['contact_id'])}`)).status, 404)
    await rig.ok('POST', `${base}/email_accounts`, userBody(server, second))
    await until('counted once', async () => isDeepStrictEqual(await shown(), before))
  })

  for (const query of ['limit=0', 'limit=101', 'limit=x', 'offset=-1', 'sort_by=name', 'sort_order=up']) {
    test(`${query} is 400 and names the parameter`, async () => {
      const answer = await rig.call('GET', `/lite/users/${box.userId}/contacts?${query}`)
      assert.equal(answer.status, 400)
      assert.match(String(answer.json['value']), new RegExp(`^${query.split('=')[0] ?? ''}: `))
    })
  }
})
