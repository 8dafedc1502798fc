/** Filters that hurt, over mail that is made for them: whoever has them waits, and nobody else. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, watchedUser, type Stage, type WatchedUser } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import type { Json } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createWebhook, listed } from '../support/users.ts'
import { assertShort, beside, processorMs } from './bystanders.ts'

const password = 'correct-horse'

/** Letters a and b without an order: an expression that counts them cannot remember where it was. */
function letters(count: number): string {
  let seed = 1
  const next = (): string => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed < 2 ** 30 ? 'a' : 'b'
  }
  return Array.from({ length: count / 50 }, () => Array.from({ length: 50 }, next).join('')).join('\n')
}

/** The dry run of the last message shall find this one, also where another was written in the same second. */
const inMinutes = (minutes: number): Date => new Date(Date.now() + minutes * 60_000)

interface Box extends WatchedUser {
  readonly stage: Stage
  readonly imap: ImapServer
  /** Resolves when it is listed. */
  deliver(raw: string, subject: string): Promise<void>
  /** What became of the webhook's only callback. */
  outcome(webhookId: string): Promise<Json>
  hook(extra: Json): Promise<string>
}

async function openBox(env: Readonly<Record<string, string>>): Promise<Box & { remove(): Promise<void> }> {
  const stage = await openStage({ env })
  const imap = await createImapServer({ users: { 'ann@mail.example': { password } } })
  const append = (user: string, folder: string, raw: string): Promise<void> => {
    imap.append(user, folder, raw)
    return Promise.resolve()
  }
  const ends = { stop: () => Promise.resolve(), start: () => Promise.resolve(), remove: () => imap.close() }
  const user = await watchedUser(stage, { host: imap.host, port: imap.port, password, append, ...ends }, 'ann')
  const hooks = `/lite/users/${user.id}/webhooks`
  return {
    ...user,
    stage,
    imap,
    async deliver(raw, subject) {
      imap.append(user.email, 'INBOX', raw)
      await listed(stage.service, user.id, subject, 60_000)
    },
    hook: (extra) => createWebhook(stage.service, user.id, `${stage.receiver.url}/hook`, extra),
    outcome: (id) =>
      until(
        'the callback is decided',
        async () => {
          const [row] = await stage.service.list(`${hooks}/${id}/deliveries`)
          return row === undefined || row['state'] === 'pending' ? null : row
        },
        { withinMs: 60_000, everyMs: 100, explain: () => stage.service.log().slice(-2000) },
      ),
    async remove() {
      await stage.remove()
      await imap.close()
    },
  }
}

/** What the filter says in the answer of a dry run or of `explain`. */
function wordOf(answer: Json | undefined, filter: string): unknown[] {
  const found = (answer?.['filters'] as Json[] | undefined)?.find((one) => one['filter'] === filter)
  return [found?.['matched'], found?.['why']]
}

suite('filters that take long', () => {
  let box: Awaited<ReturnType<typeof openBox>>
  let hooks: string
  before(async () => {
    box = await openBox({ MAILROOM_FILTER_TIMEOUT: '1s' })
    hooks = `/lite/users/${box.id}/webhooks`
  })
  after(() => box.remove())

  test('a regular expression over a body of 1 MB is ended, and says so everywhere', async () => {
    const { stage, email } = box
    const slow = await box.hook({ body_search: '/a[ab\\s]{900}c/', filter_subject: 'large' })
    const quick = await box.hook({ body_search: 'needle', filter_subject: 'large' })
    const raw = mail({ to: email, subject: 'large', date: inMinutes(1), text: `${letters(1_000_000)}\nthe needle` })
    const waits = await beside(stage.service, async () => {
      await box.deliver(raw, 'large')
      const why = 'too much to search: it took longer than 1 s (MAILROOM_FILTER_TIMEOUT)'
      const skipped = await box.outcome(slow)
      assert.deepEqual([skipped['state'], skipped['reason']], ['skipped', `body_search: ${why}`])
      const [dry] = await stage.service.list(`${hooks}/${slow}/dry_run?limit=1`)
      assert.deepEqual(wordOf(dry, 'body_search'), [false, why])
      const path = `/lite/users/${box.id}/email_accounts/0/messages/${String(dry?.['message_id'])}/explain`
      const told = await stage.service.ok('GET', `${path}?webhook_id=${slow}`)
      assert.deepEqual(wordOf(told, 'body_search'), [false, why])
      let found = await box.outcome(quick)
      // Its time is over too where the machine stood still in it: another mail.
      for (let more = 2; found['state'] !== 'delivered' && more > 0; more -= 1) {
        assert.equal(found['reason'], `body_search: ${why}`)
        const subject = `large ${more}`
        const again = await box.hook({ body_search: 'needle', filter_subject: subject })
        await box.deliver(
          mail({ to: email, subject, date: inMinutes(2), text: `${letters(1_000_000)}\nthe needle` }),
          subject,
        )
        found = await box.outcome(again)
      }
      assert.equal(found['state'], 'delivered', 'another search of the same text')
    })
    assertShort(waits, 100)
  })

  test('hundreds of wildcards on 5,000 recipients', async () => {
    const { stage, email } = box
    // The last one that is kept of a field is user998: 1,000 with the mailbox's own address.
    const to = Array.from({ length: 4999 }, (_, index) => `user${index}@list.example`).join(',\r\n ')
    const wild = Array.from({ length: 263 }, (_, index) => `*${1000 + index}x`).join(',')
    const filters = ['filter_to', 'filter_to_domain', 'filter_cc'].map((name) => ({ [name]: wild }))
    const slow = await Promise.all([...filters, ...filters].map((one) => box.hook({ ...one, filter_subject: 'crowd' })))
    const hit = await box.hook({ filter_to: `${wild.slice(0, 1900)},*r998@*`, filter_subject: 'crowd' })
    const raw = mail({ to: `${email},\r\n ${to}`, subject: 'crowd', date: inMinutes(2) })
    const waits = await beside(stage.service, async () => {
      await box.deliver(raw, 'crowd')
      const row = await box.outcome(hit)
      // With the processor to itself it is found in time; without, it is skipped and says so.
      if (row['state'] !== 'delivered')
        assert.match(String(row['reason']), /^filter_to: too much to look through: it took/)
      for (const id of slow) {
        const [dry] = await stage.service.list(`${hooks}/${id}/dry_run?limit=1`)
        assert.equal(dry?.['matched'], false)
      }
    })
    assertShort(waits, 100)
  })

  test('an expression of repetitions is refused before it is compiled', async () => {
    const { service } = box.stage
    const before = processorMs(service)
    const filters = ['to', 'from', 'cc', 'subject', 'file_name', 'folder_added'].map((name) => [
      `filter_${name}`,
      `/${'a{1000}'.repeat(280)}/`,
    ])
    for (let count = 0; count < 5; count += 1) {
      const { status, body } = await service.api('POST', hooks, {
        callback_url: `${box.stage.receiver.url}/x`,
        ...(Object.fromEntries(filters) as Json),
      })
      assert.equal(status, 400)
      assert.match(
        JSON.stringify(body),
        /filter_to: more than 10000 steps with all repetitions written out at position 1/,
      )
    }
    const took = processorMs(service) - before
    assert(took < 500, `5 calls took ${took} ms of processor time`)
  })

  test('what expressions remember of texts stays small, however many there are', async () => {
    const { stage, email } = box
    const before = stage.service.rssKib()
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        box.hook({ body_search: `/a[ab\\s]{${300 + index}}c/`, filter_subject: 'many' }),
      ),
    )
    await box.deliver(mail({ to: email, subject: 'many', text: letters(5_000) }), 'many')
    for (const id of ids) assert.equal((await box.outcome(id))['state'], 'skipped')
    const grown = (stage.service.rssKib() - before) / 1024
    assert(grown < 150, `${grown} MiB more`)
  })
})

suite('searches at the end of the service', () => {
  test('are ended with it, and done again after the next start', async () => {
    const box = await openBox({ MAILROOM_FILTER_TIMEOUT: '30s' })
    try {
      const { stage, email } = box
      const slow = await box.hook({ body_search: '/a[ab\\s]{900}c/', filter_subject: 'large' })
      const before = processorMs(stage.service)
      await box.deliver(mail({ to: email, subject: 'large', text: letters(500_000) }), 'large')
      await until('the search is under way', () => processorMs(stage.service) - before > 2000, { withinMs: 30_000 })
      const started = performance.now()
      assert.equal(await stage.service.stop(), 0)
      assert(performance.now() - started < 9000, 'it waited for no search')
      await stage.service.start({ MAILROOM_FILTER_TIMEOUT: '500ms' })
      const { state, reason } = await box.outcome(slow)
      assert.equal(state, 'skipped')
      assert.match(String(reason), /longer than 0\.5 s/)
    } finally {
      await box.remove()
    }
  })
})

suite('limits on webhooks and on what asks for mail', () => {
  let box: Awaited<ReturnType<typeof openBox>>
  let hooks: string
  before(async () => {
    const limits = { MAILROOM_WEBHOOKS_PER_USER: '3', MAILROOM_WEBHOOKS_PER_DEVELOPER: '5' }
    box = await openBox({ ...limits, MAILROOM_RATE_IMAP_PER_MINUTE: '4' })
    hooks = `/lite/users/${box.id}/webhooks`
  })
  after(() => box.remove())

  test('more webhooks than there may be are a 429 that names the setting', async () => {
    const { service, receiver } = box.stage
    const post = (path: string) => service.api('POST', path, { callback_url: `${receiver.url}/x` })
    const refused = async (path: string, words: RegExp): Promise<void> => {
      const { status, headers, body } = await post(path)
      assert.deepEqual([status, headers.get('retry-after')], [429, null], 'no wait helps')
      assert.match(JSON.stringify(body), words)
    }
    for (let count = 1; count < 3; count += 1) assert.equal((await post(hooks)).status, 200)
    await refused(hooks, /at the limit of 3 webhooks of one user \(MAILROOM_WEBHOOKS_PER_USER\): delete one first/)
    for (let count = 3; count < 5; count += 1) assert.equal((await post('/lite/webhooks')).status, 200)
    await refused('/lite/webhooks', /at the limit of 5 webhooks of one developer \(MAILROOM_WEBHOOKS_PER_DEVELOPER\)/)
    const [first] = await service.list(hooks)
    await service.ok('DELETE', `${hooks}/${String(first?.['webhook_id'])}`)
    assert.equal((await post('/lite/webhooks')).status, 200)
    await refused('/lite/webhooks', /at the limit of 3 webhooks of the application \(MAILROOM_WEBHOOKS_PER_USER\)/)
    const ids = (await service.list('/lite/webhooks')).map((one) => String(one['webhook_id']))
    for (const id of ids) await service.ok('DELETE', `/lite/webhooks/${id}`)
  })

  test('a dry run and explain that read mail count as one call to the mail server', async () => {
    const { service } = box.stage
    const plain = await box.hook({ filter_subject: 'old' })
    const left = async (path: string): Promise<[number, string | null]> => {
      const { status, headers } = await service.api('GET', path)
      return [status, headers.get('x-ratelimit-imap-remaining')]
    }
    const [, first] = await left(`${hooks}/${plain}/dry_run`)
    assert.deepEqual(await left(`${hooks}/${plain}/dry_run`), [200, first], 'the index alone is asked')
    const search = await service.ok('POST', `${hooks}/${plain}`, { body_search: 'hello' })
    assert.equal(search['success'], true)
    const [message] = await service.list(`/lite/users/${box.id}/email_accounts/0/folders/INBOX/messages`)
    const explain = `/lite/users/${box.id}/email_accounts/0/messages/${String(message?.['message_id'])}/explain`
    const seen: [number, string | null][] = []
    for (let count = 0; count < 6; count += 1) seen.push(await left(`${hooks}/${plain}/dry_run`))
    const limit = Number(first)
    assert.deepEqual(
      seen.map(([status]) => status),
      Array.from({ length: 6 }, (_, index) => (index < limit ? 200 : 429)),
    )
    const { status, headers } = await service.api('GET', `${explain}?webhook_id=${plain}`)
    assert.deepEqual([status, headers.has('retry-after')], [200, false], 'an old message has no event to judge')
  })
})
