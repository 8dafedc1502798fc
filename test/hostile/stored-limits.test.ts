/** What one developer may have stored has a limit each; long lists are made in pieces. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { basic } from '../api/core/raw-call.ts'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import type { ListedFolder } from '../../engine/store/port.ts'
import { tokenRecord } from '../store/contract/records.ts'
import { assertHolds, holdsOf, threadMs } from '../support/loop-held.ts'
import { accountRecord, userRecord } from '../support/records.ts'
import { userBody } from '../support/users.ts'

suite('what one developer may have stored', () => {
  let rig: LiteRig
  before(async () => {
    const settings = ['USERS_PER_DEVELOPER', 'TOKENS_PER_DEVELOPER', 'PROVIDERS_PER_DEVELOPER', 'ADDRESSES_PER_USER']
    rig = await startLiteRig({ env: Object.fromEntries(settings.map((name) => [`MAILROOM_${name}`, '3'])) })
  })
  after(() => rig.close())

  const provider = (key: string) => ({
    type: 'GMAIL',
    provider_consumer_key: key,
    provider_consumer_secret: 'a-long-enough-secret',
  })
  let account = ''

  for (const [what, setting, path, body] of [
    ['users', 'USERS_PER_DEVELOPER', () => '/lite/users', (n: number) => ({ email: `u${n}@x.example` })],
    [
      'email addresses',
      'ADDRESSES_PER_USER',
      () => `/2.0/accounts/${account}/email_addresses`,
      (n: number) => ({ email_address: `a${n}@x.example` }),
    ],
    [
      'connect tokens',
      'TOKENS_PER_DEVELOPER',
      () => '/lite/connect_tokens',
      () => ({ callback_url: 'https://app.example/done' }),
    ],
    ['OAuth providers', 'PROVIDERS_PER_DEVELOPER', () => '/lite/oauth_providers', (n: number) => provider(`key${n}`)],
  ] as const) {
    test(`${what} have a limit, which is named`, async () => {
      // The user has an address of its own.
      const room = what === 'email addresses' ? 2 : 3
      for (let n = 0; n < room; n += 1) {
        const { id } = await rig.ok('POST', path(), body(n))
        if (typeof id === 'string') account = id
      }
      const answer = await rig.call('POST', path(), body(9))
      assert.equal(answer.status, 429)
      assert.match(
        String(answer.json['value']),
        new RegExp(`^at the limit of 3 ${what} of .*\\(MAILROOM_${setting}\\)`),
      )
      assert.equal(answer.headers['retry-after'], undefined)
      // What is there may be said again.
      if (what === 'email addresses' || what === 'OAuth providers') await rig.ok('POST', path(), body(0))
    })
  }
})

suite('email addresses that come with email accounts', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_ADDRESSES_PER_USER: '3' } })
  })
  after(() => rig.close())

  test('count as well: one too many is refused by name, before a login, and leaves nothing', async () => {
    const mailbox = (name: string) => {
      rig.imap.addUser(`${name}@mail.example`, { password: 'secret' })
      return userBody({ ...rig.imap, password: 'secret' }, `${name}@mail.example`)
    }
    const { id } = await rig.ok('POST', '/lite/users', { email: 'own@x.example' })
    const [sources, accounts] = [`/2.0/accounts/${String(id)}/sources`, `/lite/users/${String(id)}/email_accounts`]
    await rig.ok('POST', sources, mailbox('one'))
    await rig.ok('POST', accounts, mailbox('two'))
    const addresses = async (): Promise<unknown[]> =>
      (await rig.list(`/2.0/accounts/${String(id)}/email_addresses`)).map((one) => one['email'])
    const there = ['own@x.example', 'one@mail.example', 'two@mail.example']
    // A login with this password would be the answer.
    const wrong = (name: string) => ({ ...mailbox(name), password: 'wrong' })
    for (const [path, body] of [
      [sources, wrong('three')],
      [accounts, wrong('four')],
      [`${accounts}/0`, { email: 'five@mail.example' }],
    ] as const) {
      const answer = await rig.call('POST', path, body)
      assert.equal(answer.status, 429, `${path}: ${answer.text}`)
      assert.match(String(answer.json['value']), /^at the limit of 3 email addresses.*\(MAILROOM_ADDRESSES_PER_USER\)/)
    }
    assert.deepEqual(await addresses(), there)
    assert.equal((await rig.list(accounts)).length, 2)
    // An address that the user has already needs no room.
    const own = { ...mailbox('own'), email: 'own@x.example' }
    assert.equal((await rig.ok('POST', sources, own))['success'], true)
  })
})

suite('long lists that no page bounds', () => {
  let rig: LiteRig
  let folders = ''
  before(async () => {
    rig = await startLiteRig({ checkAnswers: false })
    const { store } = rig.engine
    const developer = await store.developers.first()
    assert(developer !== null)
    for (let n = 0; n <= 1000; n += 1) {
      const user = userRecord(developer.id)
      const box = accountRecord(user)
      await store.users.createWithAccount(user, box)
      const used = { userId: user.id, accountId: box.id, usedAt: Date.now() }
      await store.tokens.create(tokenRecord(developer.id, { createdAt: Date.now() + 1000 * n, ...used }))
      folders = `/lite/users/${user.id}/email_accounts/${box.label}/folders`
      if (n === 1000) await store.folders.reconcile(box.id, box.epoch, manyFolders(), true)
    }
  })
  after(() => rig.close())

  test('connect tokens: the newest 1,000', async () => {
    const created = (await rig.list('/lite/connect_tokens')).map((token) => Number(token['created']))
    assert.equal(created.length, 1000)
    assert.deepEqual(
      created,
      created.toSorted((one, other) => other - one),
    )
  })

  /** In a process of its own; resolves with its exit status and signal. */
  async function sixtyLists(path: string, bytes: number): Promise<unknown[]> {
    const client = `const ask = async () => {
        const answer = await fetch('${rig.url}${path}', { headers: { authorization: '${basic}' } })
        const bytes = (await answer.arrayBuffer()).byteLength
        if (answer.status !== 200 || bytes < ${bytes}) throw new Error(answer.status + ' with ' + bytes + ' bytes')
      }
      await Promise.all(Array.from({ length: 60 }, ask))`
    const asking = spawn(process.execPath, ['--input-type=module', '-e', client], { stdio: 'inherit' })
    return (await once(asking, 'exit')) as unknown[]
  }

  for (const [what, path, bytes] of [
    ['connect tokens', () => '/lite/connect_tokens', 1_000_000],
    ['folders', () => folders, 1_500_000],
  ] as const)
    test(`60 lists of ${what} at once hold the loop for 100 ms at most`, async () => {
      const holds = await holdsOf(3, async () => assert.deepEqual(await sixtyLists(path(), bytes), [0, null]))
      assertHolds(holds, 100)
    })

  test('another developer waits for 60 lists of connect tokens at once for 100 ms at most', async () => {
    const { developer, secret } = await rig.engine.developers.create('Neighbour')
    const headers = { authorization: `Basic ${btoa(`${developer.apiKey}:${secret}`)}` }
    const own = [
      ['/lite/users', { email: 'own@x.example' }],
      ['/lite/connect_tokens', { callback_url: 'https://app.example/done' }],
    ] as const
    for (const [path, body] of own) await rig.call('POST', path, body, { headers })
    /** Processor time of the loop between a call and its answer, by path. */
    const waits = new Map(['/healthz', ...own.map(([path]) => path)].map((path) => [path, [] as number[]]))
    let over = false
    const asking = sixtyLists('/lite/connect_tokens', 1_000_000).finally(() => (over = true))
    do
      for (const [path, all] of waits) {
        const before = threadMs()
        assert.equal((await rig.call('GET', path, undefined, { headers })).status, 200)
        all.push(threadMs() - before)
      }
    while (!over)
    assert.deepEqual(await asking, [0, null])
    for (const [path, all] of waits) {
      // The longest wait may be a collection of garbage.
      const [, ms = 0] = all.toSorted((one, other) => other - one)
      assert.ok(ms <= 100, `${path} waited for ${Math.round(ms)} ms`)
    }
  })
})

function manyFolders(): ListedFolder[] {
  return Array.from({ length: 5000 }, (_, n) => ({
    ...{ path: `Projects/${n}/a folder with a name`, delimiter: '/', attributes: [], specialUse: null },
    ...{ selectable: true, messages: 0, unseen: 0 },
  }))
}
