/** GET /lite/discovery: the answer's shape, and 404 when nothing is known. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startLiteRig, type LiteRig } from './rig.ts'

suite('discovery over the API', () => {
  let rig: LiteRig
  before(async () => {
    const resolveSrv = (name: string) =>
      Promise.resolve(
        name === '_imaps._tcp.own.example'
          ? [
              { name: 'imap.own.example', port: 993, priority: 0, weight: 0 },
              { name: 'spare.own.example', port: 993, priority: 9, weight: 0 },
            ]
          : [],
      )
    rig = await startLiteRig({ lookUps: { resolver: { resolveSrv, resolveMx: () => Promise.resolve([]) } } })
  })
  after(() => rig.close())

  const found = (email: string, server: string, type = 'generic') => ({
    email,
    found: true,
    resource_url: `${rig.url}/lite/discovery?email=${encodeURIComponent(email)}`,
    type,
    imap: { server, username: email, port: 993, use_ssl: true, oauth: type === 'gmail' },
    documentation:
      type === 'gmail'
        ? [
            { description: 'Sign in with app passwords', url: 'https://support.google.com/accounts/answer/185833' },
            { description: 'Add Gmail to another email client', url: 'https://support.google.com/mail/answer/7126229' },
          ]
        : [],
  })

  test('answers the best settings, or all with list=1', async () => {
    const path = '/lite/discovery?email=ann+mail@own.example'.replace('+', '%2B')
    assert.deepEqual(await rig.ok('GET', path), found('ann+mail@own.example', 'imap.own.example'))
    assert.deepEqual(await rig.list(`${path}&list=1`), [
      found('ann+mail@own.example', 'imap.own.example'),
      found('ann+mail@own.example', 'spare.own.example'),
    ])
    const known = await rig.ok('GET', '/lite/discovery?source_type=IMAP&email=x@gmail.com&list=0')
    assert.deepEqual(known, found('x@gmail.com', 'imap.gmail.com', 'gmail'))
  })

  test('is 404 when nothing is known, with and without list', async () => {
    for (const query of ['email=x@unknown.example', 'email=x@unknown.example&list=1', 'email=x@localhost']) {
      const answer = await rig.call('GET', `/lite/discovery?${query}`)
      assert.equal(answer.status, 404)
      assert.match(String(answer.json['value']), /no IMAP settings are known for x@/)
    }
  })

  test('is 400 without an address', async () => {
    for (const query of ['', 'email=', 'email=nobody', 'email=x@gmail.com&list=2']) {
      assert.equal((await rig.call('GET', `/lite/discovery?${query}`)).status, 400, query)
    }
  })
})
