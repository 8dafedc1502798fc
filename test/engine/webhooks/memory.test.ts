/** The memory that callbacks under way and searches share: bounded, and nobody waits for those who are slow. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createBudget, type Budget } from '../../../engine/budget.ts'
import { createMetrics } from '../../../engine/observe/metrics.ts'
import { type Attempts, createAttempts } from '../../../engine/webhooks/attempts.ts'
import { readConfig } from '../../../engine/config.ts'
import { createHttpClient } from '../../../engine/net/http.ts'
import { compileMatcher } from '../../../engine/webhooks/match.ts'
import { createPace } from '../../../engine/webhooks/envelope.ts'
import { Searches } from '../../../engine/webhooks/searches.ts'
import { type Composed, composeMessage, createBodyWaits } from '../../../engine/webhooks/compose.ts'
import type { OutboxResult } from '../../../engine/store/port.ts'
import type { OutboxRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { newId } from '../../../engine/store/ids.ts'
import { outboxRecord, webhookRecord } from '../../store/contract/records.ts'
import { accountRecord, userRecord } from '../../support/records.ts'
import { createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { createTestMail, facts, messageOf, quick } from './fixture.ts'

const mib = 1_048_576
/** A pool of 32 MiB for large contents: what is over 256 KiB is large; 8 MiB of them for one webhook. */
const total = 64 * mib

/** What composes callbacks of one account, whose mail is in memory; nothing is sent. */
function stage(budget: Budget) {
  const mail = createTestMail()
  const reading = { config: readConfig({}), mail, pace: createPace(), searches: new Searches(5000, 0) }
  const deps = { ...reading, budget, baseUrl: () => '', now: () => Date.now(), waits: createBodyWaits() }
  const account = accountRecord(userRecord(newId()))
  return {
    mail,
    compose: (patch: Partial<WebhookRecord>, size: number, channelId?: string): Promise<Composed> => {
      const webhook = { ...webhookRecord(newId()), filters: {}, ...patch }
      const part = {
        section: '1',
        type: 'text/plain',
        charset: 'utf-8',
        encoding: '8bit',
        size,
        flowed: false,
        delSp: false,
      }
      const message = messageOf(account, { facts: facts(newId(), { bodies: [part], size }) }, 1, null)
      mail.bodies.set(message.id, { '1': 'x'.repeat(size) })
      const row = outboxRecord(webhook, { data: { undecided: true, first: true, path: 'INBOX' } })
      const job = { row: { ...row, channelId: channelId ?? webhook.id }, webhook, matcher: compileMatcher(webhook) }
      const thread = () => Promise.resolve({})
      return composeMessage(deps, { ...job, account, message, thread, folderName: (path: string) => path })
    },
  }
}

suite('a callback that is composed', () => {
  test('holds memory until it is sent; without room it is put off, which is no attempt', async () => {
    const { compose, mail } = stage(createBudget(total, 50))
    const held: Composed[] = []
    for (let count = 0; count < 4; count += 1) held.push(await compose({ includeBody: true }, mib))
    const calls = mail.calls
    const late = await compose({ includeBody: true }, mib)
    assert.ok(late.kind === 'postpone' && late.until <= Date.now() + 1_000)
    assert.match(late.reason, /^waiting for memory/)
    assert.equal(mail.calls, calls, 'nothing was read')
    const small = await compose({ includeBody: true }, 1000)
    assert.equal(small.kind, 'send', 'small ones pass')
    for (const one of held) if (one.kind === 'send') one.release?.()
    assert.equal((await compose({ includeBody: true }, mib)).kind, 'send')
  })

  test('holds none when it is not sent', async () => {
    const { compose, mail } = stage(createBudget(total, 50))
    for (let count = 0; count < 9; count += 1) {
      const skipped = await compose({ filters: { bodySearch: 'needle' } }, mib, 'one')
      assert.deepEqual(skipped, { kind: 'skip', reason: 'body_search: none of 1 text parts matches needle' })
      mail.bodies.clear()
    }
  })
})

suite('an attempt', () => {
  test('keeps what is on the wire, and gives all back whatever the answer', async () => {
    const receiver = await createReceiver()
    const http = createHttpClient({ allowPrivate: true })
    const results: OutboxResult[] = []
    const kept: number[] = []
    const url = receiver.url('/x')
    const config = readConfig({ ...quick, MAILROOM_WEBHOOK_TIMEOUT: '1s' })
    const attempts: Attempts = createAttempts({
      config,
      store: { nodes: { owns: () => true } },
      targets: { get: () => null },
      composer: {
        compose: () => Promise.resolve({ kind: 'send', url, body: { a: 'b' }, texts: null, release }),
        keysOf: () => Promise.resolve({ apiSecret: 's', webhookSecrets: [] }),
      },
      http,
      recorder: { record: (result) => Promise.resolve(void results.push(result)) },
      metrics: createMetrics(),
      pace: createPace(),
      now: () => Date.now(),
      random: () => 0.5,
    })
    const release = (keep = 0): void => void kept.push(keep)
    const row: OutboxRecord = outboxRecord(webhookRecord(newId()), {})
    for (const answer of [{ status: 200 }, { status: 500 }, 'reset', 'hang'] as const) {
      kept.length = 0
      receiver.script('/x', [answer])
      const handled = attempts.handle(row, 'drain')
      await until('the request is out', () => kept.length >= 1, { everyMs: 1 })
      await handled
      const request = receiver.requests.at(-1)
      assert.ok(request)
      assert.deepEqual(kept, [Buffer.byteLength(request.raw), 0], JSON.stringify(answer))
    }
    assert.equal(results.length, 4)
    await http.close()
    await receiver.close()
  })
})
