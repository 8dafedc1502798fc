/** How steps change records: what they keep, and when they answer the very record they were given. Pure. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OutboxResult } from '../../engine/store/port.ts'
import {
  freshCursor,
  freshHealth,
  freshResume,
  isUsable,
  lastStatus,
  listedFolder,
  nextKey,
  readAnew,
  recorded,
  requeued,
  withSeqOf,
} from '../../engine/store/rows.ts'
import { accountRecord, epochStart, outboxRecord, tokenRecord, webhookRecord } from './contract/records.ts'

const row = outboxRecord(webhookRecord('d'.repeat(24)))
const attempt = { at: 1, durationMs: 2, status: 500, error: 'status', response: null }
const result: OutboxResult = { id: row.id, attempt, state: 'pending', dueAt: 9, finishedAt: null, reason: 'HTTP 500' }

describe('what records start with', () => {
  test('a webhook is healthy, an account has not failed, of a folder nothing is read', () => {
    const { failure, consecutiveFailures, retryAt, failingSince, abandonedAt } = freshHealth
    assert.deepEqual(
      { failure, consecutiveFailures, retryAt, failingSince, abandonedAt },
      { failure: false, consecutiveFailures: 0, retryAt: null, failingSince: null, abandonedAt: null },
    )
    assert.deepEqual([freshResume.attempt, freshResume.strikes, freshResume.retryAt], [0, 0, null])
    const { quarantined, highestModseq, ...numbers } = freshCursor('7')
    assert.deepEqual([quarantined, highestModseq], [[], '0'])
    assert.deepEqual(numbers, { uidValidity: '7', uidNext: 0, backfillBelow: 0, exists: 0, comparedAt: 0 })
  })
})

describe('an account that is read anew', () => {
  const account = accountRecord({ id: 'u', developerId: 'd' }, { epoch: 4 })
  test('has a later epoch than before, and none of its failures; how it is and since when stays', () => {
    const condition = { is: 'down', since: 66 } as const
    const failed = { attempt: 3, strikes: 2, retryAt: 5, lastError: null, lastConnectedAt: 77, initialSyncAt: 88 }
    const resume = { ...failed, condition }
    const anew = readAnew({ ...account, resume }, 100)
    assert.equal(anew.epoch, 5)
    assert.deepEqual(anew.resume, { ...freshResume, lastConnectedAt: 77, condition })
  })

  test('tells what arrived since then; of a reading that is not over, since that one began', () => {
    const over = { ...freshResume, initialSyncAt: 50 }
    assert.equal(readAnew({ ...account, resume: over }, 100).remapSince, 100)
    assert.equal(readAnew({ ...account, resume: over, remapSince: 60 }, 100).remapSince, 100)
    assert.equal(readAnew(account, 100).remapSince, 100)
    assert.equal(readAnew({ ...account, remapSince: 60 }, 100).remapSince, 60)
    assert.equal(readAnew({ ...account, remapSince: 160 }, 100).remapSince, 100)
  })
})

describe('a listed folder', () => {
  const listed = {
    path: 'Bills',
    delimiter: '/',
    attributes: ['\\HasNoChildren'],
    specialUse: null,
    selectable: true,
    messages: null,
    unseen: null,
  }
  const fresh = listedFolder('a', 3, null, listed)

  test('that is new was never read and never failed', () => {
    const { id, ...rest } = fresh
    assert.match(id, /^[0-9a-f]{24}$/)
    assert.deepEqual(rest, {
      ...listed,
      accountId: 'a',
      epoch: 3,
      messages: 0,
      unseen: 0,
      counts: { messages: 0, unseen: 0 },
      cursor: null,
      completeAt: null,
      failures: 0,
      parkedUntil: null,
    })
  })

  test('that is known keeps how far it was read, how often it failed, and its counts unless the server says others', () => {
    const had = { cursor: freshCursor('1'), failures: 2, parkedUntil: 9, messages: 5, unseen: 4 }
    const stored = { ...fresh, ...had, attributes: [], epoch: 2 }
    assert.deepEqual(listedFolder('a', 3, stored, listed), { ...fresh, ...had })
    const counted = listedFolder('a', 3, stored, { ...listed, messages: 0, unseen: 0 })
    assert.deepEqual([counted.messages, counted.unseen], [0, 0])
    const complete = listedFolder('a', 3, { ...stored, completeAt: 7 }, { ...listed, messages: 0, unseen: 0 })
    assert.deepEqual([complete.messages, complete.unseen, complete.completeAt], [5, 4, 7])
  })
})

describe('an outbox row', () => {
  const skipped = { ...row, state: 'skipped', finishedAt: 5, reason: 'paused' } as const

  test('takes the number of its change, and is the very same when it has it or has no change', () => {
    const change = { id: 'c1', seq: 12 }
    const numbered = withSeqOf([change, { id: 'c2', seq: 13 }] as unknown as Parameters<typeof withSeqOf>[0])
    const mine = { ...row, changeId: 'c1', seq: 1 }
    assert.deepEqual(numbered(mine), { ...mine, seq: 12 })
    for (const same of [row, { ...mine, seq: 12 }, { ...mine, changeId: 'c9' }]) assert.equal(numbered(same), same)
  })

  test('that was finished meanwhile is not brought back by a failure, and only keeps the attempt', () => {
    assert.deepEqual(recorded(skipped, result), { ...skipped, attemptCount: 1, attempts: [attempt] })
    assert.equal(recorded(skipped, { ...result, attempt: null }), skipped)
  })

  test('that was finished meanwhile is delivered all the same when it was', () => {
    const delivered = { ...result, state: 'delivered', finishedAt: 7, reason: null } as const
    const after = recorded(skipped, delivered)
    assert.deepEqual([after.state, after.finishedAt, after.reason], ['delivered', 7, null])
  })

  test('set back is as if never tried; its attempts stay to be seen', () => {
    const failed = { ...recorded(row, result), state: 'failed', finishedAt: 9 } as const
    const again = requeued(failed, 50)
    const { state, attemptCount, dueAt, finishedAt, reason, attempts } = again
    assert.deepEqual([state, attemptCount, dueAt, finishedAt, reason], ['pending', 0, 50, null, null])
    assert.deepEqual(attempts, [attempt])
    assert.equal('countsAt' in again, false)
    assert.equal(requeued({ ...failed, countsAt: 99 }, 50).countsAt, 50)
  })

  test('shows the status of its last attempt', () => {
    assert.equal(lastStatus(row), null)
    const twice = recorded(recorded(row, result), { ...result, attempt: { ...attempt, status: null } })
    assert.equal(lastStatus(twice), null)
    assert.equal(lastStatus(recorded(twice, result)), 500)
  })

  test('ends a page that is full; a page that is not full is the last', () => {
    const [one, other] = [row, outboxRecord(webhookRecord('e'.repeat(24)))]
    assert.deepEqual(nextKey([one, other], 2), { createdAt: other.createdAt, id: other.id })
    assert.equal(nextKey([one, other], 3), null)
    assert.equal(nextKey([], 2), null)
  })
})

describe('a connect token', () => {
  const token = tokenRecord('d', { expiresAt: epochStart + 1000 })
  test('is used once, before it expires', () => {
    assert.equal(isUsable(token, epochStart + 999), true)
    assert.equal(isUsable(token, epochStart + 1000), false)
    assert.equal(isUsable({ ...token, usedAt: epochStart }, epochStart + 1), false)
  })
})
