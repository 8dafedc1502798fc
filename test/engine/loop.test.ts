/** Long work yields to the event loop, and what held it is reported with its owner. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setImmediate as breath } from 'node:timers/promises'
import { silentLogger } from '../../engine/observe/log.ts'
import { type Held, measured, watchLoop, workAs, workFacts } from '../../engine/observe/loop.ts'
import { createLoopReport, createMetrics } from '../../engine/observe/metrics.ts'
import type { MessageRecord } from '../../engine/store/records.ts'
import { yieldToLoop } from '../../engine/scheduling.ts'
import type { Judgement, MessageEvent } from '../../engine/webhooks/match.ts'
import { judgeAtLength, Searches } from '../../engine/webhooks/searches.ts'
import type { Target } from '../../engine/webhooks/targets.ts'
import { listText } from '../../api/list-text.ts'
import type { Call } from '../../api/route.ts'

function spin(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

suite('work that holds the event loop', () => {
  const told: Held[] = []
  let end: () => void
  before(() => {
    end = watchLoop((held) => told.push(held))
  })
  after(() => end())

  test('is reported with its owner, also after a wait; shorter work is not', async () => {
    await workAs({ kind: 'account', id: 'slow' }, async () => {
      await breath()
      assert.equal(
        measured(() => {
          spin(120)
          return 'value'
        }),
        'value',
      )
      measured(() => spin(20))
    })
    measured(() => spin(120))
    assert.throws(() => measured(() => assert.fail('passed on')), /passed on/)
    assert.deepEqual(
      told.map(({ owner }) => owner?.id ?? null),
      ['slow', null],
    )
    assert.ok(told.every(({ ms }) => ms >= 100))
  })

  test('is reported of a list and of a filter, too', async () => {
    told.length = 0
    const call = { developer: { id: 'd' }, signal: new AbortController().signal } as unknown as Call
    await workAs({ kind: 'call', id: 'GET /list' }, () => listText(call, [[{ toJSON: () => spin(120) }]]))
    const judge = (): Judgement => {
      spin(120)
      return { outcome: 'no', verdicts: [], undecided: [], long: [] }
    }
    const target = { matcher: { judge } } as unknown as Target
    const [event, message] = [{} as MessageEvent, {} as MessageRecord]
    const searches = new Searches(1000, 1000)
    await workAs({ kind: 'webhook', id: 'w' }, () => judgeAtLength(searches, target, event, message, {}))
    await searches.close()
    assert.deepEqual(
      told.map(({ owner }) => owner?.id),
      ['GET /list', 'w'],
    )
  })

  test('is counted by the kind of its owner', async () => {
    const metrics = createMetrics()
    const report = createLoopReport({ log: silentLogger, metrics })
    report({ owner: { kind: 'webhook', id: 'w' }, ms: 4000 })
    report({ owner: null, ms: 9000 })
    const text = await metrics.registry.metrics()
    assert.match(text, /mailroom_event_loop_held_seconds_sum\{kind="webhook"\} 4\n/)
    assert.match(text, /mailroom_event_loop_held_seconds_sum\{kind="none"\} 9\n/)
  })

  test('lines of the log name the owner of the work that they are written in', async () => {
    await workAs({ kind: 'call', id: 'GET /x', requestId: 'r1' }, async () => {
      await breath()
      assert.deepEqual(workFacts(), { requestId: 'r1' })
    })
    assert.deepEqual(workFacts(), {})
  })
})

suite('yielding to the event loop', () => {
  /** Pieces of 2 ms each; answers in which turn of the loop each of them ran. */
  async function work(name: string, pieces: number, seen: string[]): Promise<void> {
    for (let n = 0; n < pieces; n += 1) {
      await yieldToLoop()
      seen.push(name)
      spin(2)
    }
  }

  test('all long work together takes about 10 ms of a turn, whatever there is of it', async () => {
    const seen: string[] = []
    let turns = 0
    let counting = true
    const count = (): void => {
      turns += 1
      if (counting) setImmediate(count)
    }
    setImmediate(count)
    await Promise.all(Array.from({ length: 10 }, (_, n) => work(`w${n}`, 10, seen)))
    counting = false
    // 200 ms of work: at least a turn for every 10 ms, and a little more for what each stretch runs over.
    assert.ok(turns >= 12, `${turns} turns`)
    assert.equal(seen.length, 100)
  })

  test('work that waits takes turns: a long one does not hold up a short one', async () => {
    const seen: string[] = []
    await Promise.all([work('long', 60, seen), work('short', 3, seen)])
    assert.ok(seen.lastIndexOf('short') < 12, seen.join(' '))
  })

  test('owners take turns: much work of one waits for one piece of another', async () => {
    const seen: string[] = []
    const once = async (owner: string): Promise<void> => {
      await yieldToLoop(owner)
      seen.push(owner)
    }
    await yieldToLoop()
    spin(12)
    await Promise.all([...Array.from({ length: 60 }, () => once('many')), once('one')])
    assert.equal(seen.indexOf('one'), 1)
  })
})
