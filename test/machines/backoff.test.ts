import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  fullJitterMs,
  halfJitterMs,
  hintedMs,
  longestTimerMs,
  scheduleMs,
  spreadMs,
  stirred,
  timerMs,
} from '../../machines/backoff.ts'

const jitters = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

test('full jitter: doubling cap, from 0 up to the cap', () => {
  const rows: [attempt: number, jitter: number, expected: number][] = [
    [1, 0, 0],
    [1, 0.5, 500],
    [2, 0.5, 1000],
    [5, 0.5, 8000],
    [9, 0.5, 128_000],
    [10, 0.5, 150_000],
    [5000, 0.5, 150_000],
    [0, 0.5, 500],
  ]
  for (const [attempt, jitter, expected] of rows) {
    assert.equal(fullJitterMs(attempt, jitter, 1000, 300_000), expected, `attempt ${attempt}, jitter ${jitter}`)
  }
})

test('half jitter: between half of the cap and the cap', () => {
  assert.equal(halfJitterMs(1, 0, 2000, 128_000), 1000)
  assert.equal(halfJitterMs(3, 0.5, 2000, 128_000), 6000)
  assert.equal(halfJitterMs(60, 0, 2000, 128_000), 64_000)
})

test('a schedule: each wait in turn, the last one for ever', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 99].map((nth) => scheduleMs([10, 20, 30], nth)),
    [10, 10, 20, 30, 30, 30],
  )
  assert.equal(scheduleMs([], 1), 0)
})

test('the longest delay is one that a timer can hold: a longer one would fire at once', () => {
  assert.equal(timerMs(1e12), 2_147_483_647)
})

test('timers hold neither negative nor endless delays', () => {
  assert.deepEqual([-5, 0, 1.4, Number.NaN, 1e12, Infinity].map(timerMs), [0, 0, 1, 0, longestTimerMs, longestTimerMs])
})

test('a hint is never shortened, and bounded', () => {
  fc.assert(
    fc.property(fc.nat(), jitters, (hint, jitter) => {
      const ms = hintedMs(hint, 86_400_000, jitter)
      const believed = Math.min(hint, 86_400_000)
      return ms >= believed && ms <= Math.round(believed * 1.1)
    }),
  )
})

test('spread stays within its percentage', () => {
  assert.equal(spreadMs(1000, 20, 0.5), 1000)
  assert.equal(spreadMs(1000, 20, 0), 800)
  fc.assert(
    fc.property(fc.nat(1e9), jitters, (ms, jitter) => {
      const spread = spreadMs(ms, 20, jitter)
      return spread >= Math.floor(ms * 0.8) && spread <= Math.ceil(ms * 1.2)
    }),
  )
})

test('a stirred number stays in [0, 1) and differs', () => {
  fc.assert(
    fc.property(jitters, (jitter) => {
      const next = stirred(jitter)
      return next >= 0 && next < 1
    }),
  )
  assert.equal(new Set([0.1, 0.2, 0.3, 0.4].map(stirred)).size, 4)
  const spread = Array.from({ length: 100 }, (_, index) => stirred(stirred(index / 100 + 0.001)))
  assert.equal(new Set(spread.map((jitter) => Math.floor(jitter * 5))).size, 5, 'a herd stays apart')
})
