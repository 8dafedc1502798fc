/**
 * How long a callback waits for a body that cannot be read, and what becomes of it then. No store, no clock but the
 * test's.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readConfig } from '../../../engine/config.ts'
import { AppError, type ErrorCode } from '../../../engine/errors.ts'
import { newId } from '../../../engine/store/ids.ts'
import type { MessageRecord, WebhookRecord } from '../../../engine/store/records.ts'
import { vanishWhere } from '../../../engine/store/rows.ts'
import { compileMatcher } from '../../../engine/webhooks/match.ts'
import { createPace } from '../../../engine/webhooks/envelope.ts'
import { Searches } from '../../../engine/webhooks/searches.ts'
import { createBudget } from '../../../engine/budget.ts'
import { type Composed, composeMessage, createBodyWaits } from '../../../engine/webhooks/compose.ts'
import { outboxRecord, webhookRecord } from '../../store/contract/records.ts'
import { accountRecord, epochStart, userRecord } from '../../support/records.ts'
import { createTestMail, facts, messageOf } from './fixture.ts'

const minute = 60_000

function stage(patch: Partial<WebhookRecord>) {
  const mail = createTestMail()
  const webhook = { ...webhookRecord(newId()), includeBody: false, filters: {}, ...patch }
  const account = accountRecord(userRecord(webhook.developerId))
  const matcher = compileMatcher(webhook)
  let now = epochStart
  let lies = (message: MessageRecord): MessageRecord => message
  const reading = { config: readConfig({}), mail, pace: createPace(), searches: new Searches(5000, 0) }
  const asked = { budget: createBudget(2 ** 29), baseUrl: () => '', now: () => now, waits: createBodyWaits() }
  const deps = { ...reading, ...asked }
  const compose = (name: string): Promise<Composed> => {
    const message = messageOf(account, { facts: facts(name) }, 1, null)
    mail.bodies.set(message.id, { '1': 'a needle' })
    const row = outboxRecord(webhook, {
      data: { undecided: true, first: true, path: 'INBOX' },
      createdAt: epochStart - 5 * 3_600_000,
    })
    const job = { row, webhook, matcher, account, message: lies(message), folderName: (path: string) => path }
    return composeMessage(deps, { ...job, thread: () => Promise.resolve({}) })
  }
  return {
    compose,
    breaks: (code: ErrorCode | null) => void (mail.broken = code === null ? null : new AppError(code, 'no body')),
    /** Where the index has it. */
    lies: (where: typeof lies) => void (lies = where),
    /** Until it is decided: what came of it, and after how long. */
    decided: async (name: string) => {
      const since = now
      for (;;) {
        const composed = await compose(name)
        if (composed.kind !== 'postpone') return { composed, after: now - since }
        assert(composed.until > now)
        now = composed.until
      }
    },
  }
}

suite('patience', () => {
  test('a filter on the body waits ten minutes for a message that cannot be read, and says so', async () => {
    const { decided, breaks } = stage({ filters: { bodySearch: 'needle' } })
    breaks('network')
    const { composed, after } = await decided('poison')
    assert.deepEqual(composed, { kind: 'skip', reason: 'body_search: the body could not be read (no body)' })
    assert(after >= 10 * minute && after <= 16 * minute, `${after} ms`)
    assert.equal((await decided('next')).after, 0, 'not each for itself')
    breaks(null)
    assert.equal((await decided('good')).composed.kind, 'send')
    breaks('network')
    assert((await decided('another')).after >= 10 * minute, 'and anew after one that could be read')
  })

  test('and an hour for a mailbox that is away', async () => {
    const { decided, breaks } = stage({ filters: { bodySearch: 'needle' } })
    breaks('account_unavailable')
    const { composed, after } = await decided('away')
    assert.equal(composed.kind, 'skip')
    assert(after >= 60 * minute && after <= 66 * minute, `${after} ms`)
  })

  test('a failure of ours that may pass is none of the mailbox: no filter gives up for it', async () => {
    const { compose, decided, breaks } = stage({ filters: { bodySearch: 'needle' } })
    for (const code of ['busy', 'store_unavailable', 'shutting_down'] as const) {
      breaks(code)
      await assert.rejects(compose(code), { code })
    }
    breaks(null)
    assert.equal((await decided('good')).composed.kind, 'send')
  })

  test('a callback with bodies goes out without them after ten minutes', async () => {
    const { decided, breaks } = stage({ includeBody: true })
    for (const code of ['account_unavailable', 'network'] as const) {
      breaks(null)
      assert.equal((await decided('good')).composed.kind, 'send')
      breaks(code)
      const { composed, after } = await decided(code)
      assert(composed.kind === 'send' && after >= 10 * minute && after <= 16 * minute, `${after} ms`)
      assert.equal((composed.body['message_data'] as { truncated: boolean }).truncated, true)
    }
  })

  test('a filter on the body waits for a message that is being moved', async () => {
    const { compose, decided, breaks, lies } = stage({ filters: { bodySearch: 'needle' } })
    breaks('not_found')
    assert.equal((await compose('moved')).kind, 'postpone', 'the mail server has moved it, the index does not know yet')
    breaks(null)
    lies((message) => vanishWhere(message, () => true, epochStart))
    assert.equal((await compose('moved')).kind, 'postpone', 'it has left its folder')
    lies((message) => message)
    assert.equal((await decided('moved')).composed.kind, 'send')
  })

  test('a message that is gone is waited for by nobody', async () => {
    const search = stage({ filters: { bodySearch: 'needle' } })
    search.lies((message) => ({ ...message, placements: [] }))
    const { composed, after } = await search.decided('gone')
    assert.deepEqual(composed, { kind: 'skip', reason: 'body_search: the message is gone from the mailbox' })
    assert.equal(after, 0)
    const bodies = stage({ includeBody: true })
    bodies.breaks('not_found')
    assert.equal((await bodies.decided('gone')).after, 0, 'without a search it goes out without the body')
  })
})
