/** The dry run over many email accounts: the last messages of all together, whoever has them. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { AccountRecord, MessageRecord } from '../../../engine/store/records.ts'
import { coveredAccounts } from '../../../engine/webhooks/explain.ts'
import { type Rig, type Running, arrive, createRig, developerId, facts, freely } from './fixture.ts'

suite('the dry run over many accounts', () => {
  let rig: Rig
  let running: Running
  let accounts: AccountRecord[]
  before(async () => {
    rig = await createRig()
    running = await rig.start()
    const users = [await rig.user(), await rig.user(), await rig.user()]
    const owners = Array.from({ length: 30 }, (_, index) => users[index % users.length] ?? assert.fail())
    accounts = await Promise.all(owners.map((owner) => rig.account(owner)))
  })
  after(() => rig.close())

  test('finds the very last messages, however they are spread, and judges each', async () => {
    const all: { readonly message: MessageRecord; readonly account: AccountRecord }[] = []
    for (const [index, account] of accounts.entries()) {
      // Some have none, some many; times repeat within and between accounts.
      const arrivals = Array.from({ length: (index * 7) % 12 }, (_, number) => ({
        facts: facts(`m${index}-${number}`, { sentAt: 1_700_000_000_000 + ((index * 31 + number * 17) % 50) * 1000 }),
      }))
      if (arrivals.length === 0) continue
      const { messages } = await arrive(rig.store, null, account, arrivals)
      all.push(...messages.map((message) => ({ message, account })))
    }
    all.sort((a, b) => b.message.sentAt - a.message.sentAt || (a.message.id < b.message.id ? 1 : -1))
    const callback = { callbackUrl: 'http://127.0.0.1:9/', filters: { subject: 'm3-' } }
    const webhook = await running.webhooks.create({ developerId, userId: null, version: 'lite' }, callback)
    for (const limit of [1, 2, 25, 29, 30, 100, 1000]) {
      const rows = await running.webhooks.dryRun(webhook, webhook, limit, freely)
      assert.deepEqual(
        rows.map(({ message, account }) => [message.id, account.id]),
        all.slice(0, limit).map(({ message, account }) => [message.id, account.id]),
        `the last ${limit}`,
      )
      for (const { message, matched } of rows) assert.equal(matched, message.subject.includes('m3-'))
    }
    const [user] = accounts.map(({ userId }) => userId)
    const own = await running.webhooks.dryRun(webhook, { developerId, userId: user ?? assert.fail() }, 20, freely)
    assert.deepEqual(
      own.map(({ message }) => message.id),
      all
        .filter(({ account }) => account.userId === user)
        .slice(0, 20)
        .map(({ message }) => message.id),
    )
  })

  test('says so when there are too many accounts, and leaves those of other developers alone', async () => {
    const [first] = accounts
    assert(first)
    const crowd = (count: number, owner: string) =>
      Array.from({ length: count }, (_, index) => ({
        ...first,
        id: String(index).padStart(24, '0'),
        developerId: owner,
      }))
    const run = (all: readonly AccountRecord[]) => {
      const page = (after: string | null, limit: number) =>
        Promise.resolve(all.filter(({ id }) => id > (after ?? '')).slice(0, limit))
      const store = { accounts: { ...rig.store.accounts, page } }
      return coveredAccounts(store, { developerId, userId: null }, 'user_id')
    }
    await assert.rejects(run(crowd(10_001, developerId)), { code: 'bad_request', message: /^user_id: .*10000/ })
    assert.deepEqual(await run(crowd(10_001, 'another')), [])
  })
})
