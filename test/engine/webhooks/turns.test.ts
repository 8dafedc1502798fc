/** Which page of a historical scan comes next. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createScans } from '../../../engine/webhooks/history.ts'
import { settle } from '../../machines/rig.ts'

type End = 'more' | 'done' | 'nothing' | 'wait'

/** Pages in the test's hands, in virtual time: what is under way is `webhook account`. */
function stage(t: TestContext, places: number) {
  const stopped = new AbortController()
  const open: { readonly name: string; readonly end: (end: End) => void }[] = []
  const page = (webhookId: string, accountId: string) =>
    new Promise<End>((end) => void open.push({ name: `${webhookId} ${accountId}`, end }))
  let now = 0
  const waits: { readonly until: number; readonly end: () => void }[] = []
  const wait = (ms: number, signal: AbortSignal) =>
    new Promise<void>((end) => {
      waits.push({ until: now + ms, end })
      if (signal.aborted) end()
      signal.addEventListener('abort', () => end())
    })
  const scans = createScans(page, stopped.signal, { places, wait })
  t.after(async () => {
    stopped.abort()
    for (const { end } of open) end('wait')
    await scans.ended()
  })
  return {
    add: (webhookId: string, accountId: string) => scans.add(webhookId, accountId),
    names: async () => {
      await settle()
      return open.map(({ name }) => name)
    },
    /** Ends the page that has been under way for longest, or the one of this name. */
    end: async (end: End, name?: string): Promise<string> => {
      await settle()
      const index = name === undefined ? 0 : open.findIndex((one) => one.name === name)
      const [first] = open.splice(index, 1)
      assert.ok(first, 'nothing is under way')
      first.end(end)
      await settle()
      return first.name
    },
    pass: async (ms: number): Promise<void> => {
      now += ms
      for (const { until, end } of waits) if (until <= now) end()
      await settle()
    },
  }
}

suite('pages of historical scans', () => {
  test('webhooks take turns, and the accounts of each; of one webhook one page at a time', async (t) => {
    const { add, names, end } = stage(t, 4)
    for (const account of ['1', '2', '3']) add('a', account)
    add('b', '1')
    assert.deepEqual(await names(), ['a 1', 'b 1'])
    const order: string[] = []
    for (let page = 0; page < 7; page += 1) order.push(await end('more'))
    assert.deepEqual(order, ['a 1', 'b 1', 'a 2', 'b 1', 'a 3', 'b 1', 'a 1'])
  })

  test('a webhook with many accounts holds up no other, also when only one page is under way at a time', async (t) => {
    const { add, names, end } = stage(t, 1)
    add('a', '1')
    add('a', '2')
    add('b', '1')
    assert.deepEqual(await names(), ['a 1'])
    const order: string[] = []
    for (let page = 0; page < 4; page += 1) order.push(await end('more'))
    assert.deepEqual(order, ['a 1', 'b 1', 'a 2', 'b 1'])
  })

  test('one that waits is left out, longer each time, and holds up no other; a page that was scanned ends that', async (t) => {
    const { add, names, end, pass } = stage(t, 4)
    add('full', '1')
    add('free', '1')
    for (const ms of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      assert.equal(await end('wait', 'full 1'), 'full 1')
      await end('more', 'free 1')
      await pass(ms - 1)
      assert.deepEqual(await names(), ['free 1'], `${ms} ms`)
      await pass(1)
      assert.deepEqual(await names(), ['free 1', 'full 1'])
    }
    await end('more', 'full 1')
    await end('wait', 'full 1')
    await pass(1000)
    assert.deepEqual(await names(), ['free 1', 'full 1'])
  })

  test('no other account of the one that waits, either', async (t) => {
    const { add, names, end, pass } = stage(t, 4)
    add('a', '1')
    add('a', '2')
    await end('wait')
    assert.deepEqual(await names(), [])
    await pass(1000)
    assert.deepEqual(await names(), ['a 2'])
  })

  test('what is done goes, and may be asked for again', async (t) => {
    const { add, names, end } = stage(t, 4)
    add('a', '1')
    assert.deepEqual(await names(), ['a 1'])
    await end('done')
    assert.deepEqual(await names(), [])
    add('a', '1')
    assert.deepEqual(await names(), ['a 1'])
  })
})
