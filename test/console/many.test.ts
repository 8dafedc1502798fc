/**
 * The pages over ten thousand accounts, each at a host of its own and with a receiver of its own where callbacks wait:
 * what the pages read and say does not grow with them.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { callRaw } from '../api/core/raw-call.ts'
import { startLiteRig, type LiteRig } from '../api/lite/rig.ts'
import { outboxRecord } from '../store/contract/records.ts'
import { accountRecord, userRecord } from '../support/records.ts'

const password = 'a password of an operator'
const accounts = 10_000
const mostBytes = 150_000
/** A page reads some rows of each entry that it shows, of which there are fifty. */
const mostSteps = 120

suite('pages over many accounts', () => {
  let rig: LiteRig
  let cookie = ''
  let account = ''
  let developerId = ''

  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_ADMIN_PASSWORD: password } })
    const { store } = rig.engine
    const developer = (await store.developers.first()) ?? assert.fail('no developer')
    developerId = developer.id
    for (let done = 0; done < accounts; done += 1) {
      const user = userRecord(developerId)
      const made = accountRecord(user, { server: `imap${done}.example.com` })
      await store.users.createWithAccount(user, made)
      account = made.id
    }
    const waiting = Array.from({ length: accounts }, (_, index) => {
      const url = `https://receiver${index}.example.com/status`
      const channelId = `u${index}`
      const createdAt = index === 4321 ? 1 : Date.now()
      return outboxRecord({ id: channelId, developerId }, { kind: 'status', webhookId: null, url, createdAt })
    })
    await store.outbox.enqueue(waiting)
    const body = new URLSearchParams({ password }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await callRaw(rig.port, 'POST', '/console/login', { headers, body })
    cookie = answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  })
  after(() => rig.close())

  /** Of the store, so far. */
  async function steps(): Promise<number> {
    const { values } = await rig.engine.metrics.storeSeconds.get()
    return values.reduce((sum, { metricName, value }) => (metricName?.endsWith('_count') ? sum + value : sum), 0)
  }

  async function visit(path: string): Promise<string> {
    const before = await steps()
    const { status, text } = await callRaw(rig.port, 'GET', path, { headers: { cookie } })
    assert.equal(status, 200, path)
    const read = (await steps()) - before
    assert.ok(text.length < mostBytes, `${path} has ${text.length} bytes`)
    assert.ok(read <= mostSteps, `${path} takes ${read} steps of the store`)
    return text
  }

  const pages = [
    '',
    '/accounts',
    '/accounts?host=imap7.example.com',
    '/accounts?q=1a&limit=50',
    '/accounts?offset=9990',
  ]
  for (const path of [
    ...pages,
    '/deliveries',
    '/deliveries?q=x&state=pending',
    '/search?q=1',
    '/hosts',
    '/hosts?q=99',
    '/hosts?offset=9990',
    '/webhooks',
    '/developers',
    '/tokens',
  ])
    test(`/console${path}`, async () => {
      await visit(`/console${path}`)
    })

  test('one account', async () => {
    await visit(`/console/accounts/${account}`)
    assert.match(await visit(`/console/accounts/${account}/trail?q=unknown@x.example`), /It is not in the index/)
  })

  test('one developer: where callbacks wait, the oldest first', async () => {
    const text = await visit(`/console/developers/${developerId}`)
    assert.equal(new Set(text.match(/receiver\d+\.example\.com/g)).size, 100)
    assert.equal(/receiver\d+/.exec(text)?.[0], 'receiver4321')
  })

  test('hosts come in pages, and are found by a part of the name', async () => {
    const before = await steps()
    assert.match(await visit('/console/hosts'), /1–50 of 10000/)
    assert.ok((await steps()) > before, 'steps are not counted')
    const found = await visit('/console/hosts?q=MAP999')
    assert.match(found, /1–11 of 11</)
    assert.match(found, />imap9990\.example\.com</)
    assert.doesNotMatch(found, />imap9899\.example\.com</)
    assert.match(await visit('/console/hosts?q=nowhere'), /There are none\./)
  })
})
