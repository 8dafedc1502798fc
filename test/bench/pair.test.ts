/** The parts of `bench -- pair` that reckon and read: ratios, options, the commit to compare with. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { baselineCommit, checkOut } from './lib/checkout.ts'
import { benchOptions } from './lib/options.ts'
import { cpuNanosOf } from './lib/processor.ts'
import { median, rowOf, tooHigh } from './lib/ratios.ts'

suite('bench pair', () => {
  test('the ratio is the median of the rounds, so one disturbed round changes nothing', () => {
    const rounds = [
      { before: 10, now: 12 },
      { before: 100, now: 120 },
      { before: 10, now: 900 },
    ]
    const row = rowOf('a call', 'µs', rounds)
    assert.deepEqual([row.ratio, row.before, row.now], [1.2, 10, 120])
    assert.equal(Math.round(row.spread), 89)
    assert.equal(median([4, 1, 3, 2]), 2.5)
    assert.ok(Number.isNaN(median([])))
  })

  test('a ratio over the bound fails, and so does one that could not be measured', () => {
    const row = (name: string, now: number) => rowOf(name, 'µs', [{ before: 100, now }])
    assert.deepEqual(tooHigh([row('list', 110), row('folders', 111), row('event', Number.NaN)], 1.1), [
      'folders: 1.11',
      'event: NaN',
    ])
  })

  test('options: the commit, a checkout that is there, the short form and the bound', () => {
    const options = benchOptions(['1d97ee7', '--short', '--beside', '/x', '--fail-over', '1.10', '--accounts', '7'])
    const { commit, short, beside, failOver, accounts } = options
    assert.deepEqual([commit, short, beside, failOver, accounts], ['1d97ee7', true, '/x', 1.1, 7])
    assert.throws(() => benchOptions(['--fail-over', 'much']), /^Error: --fail-over: /)
    assert.throws(() => benchOptions(['one', 'two']), /^Error: two: /)
  })

  test('the baseline names a commit; one that is not there is named', () => {
    assert.match(baselineCommit(), /^[0-9a-f]{7,40}$/)
    assert.throws(() => checkOut('no-such-commit'), /^Error: no-such-commit: this clone has no such commit/)
  })

  test('processor time is that of the process, in nanoseconds', () => {
    const [before, used] = [cpuNanosOf(process.pid), process.cpuUsage()]
    const until = performance.now() + 50
    while (performance.now() < until) Math.sqrt(until)
    const { user, system } = process.cpuUsage(used)
    const nanos = cpuNanosOf(process.pid) - before
    assert.ok(Math.abs(nanos / 1000 - user - system) < 20_000, `${nanos} ns, ${user + system} µs`)
  })
})
