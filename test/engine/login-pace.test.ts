/** The pace of a mail server over several nodes, on a clock that only the test moves. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createLoginLimiter } from '../../engine/accounts/login-limiter.ts'
import { ownUses, type UseKind, type Uses } from '../../engine/uses.ts'

const perMinute = 50
const minuteMs = 60_000
/** As long as nodes may take to tell each other. */
const lagMs = 1000

interface Node {
  readonly limiter: ReturnType<typeof createLoginLimiter>
  readonly heard: Map<UseKind, (name: string, by: number, from: string) => void>
}

function nodesOf(t: TestContext, count: number): Node[] {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  const nodes: Node[] = []
  for (let at = 0; at < count; at += 1) {
    const heard: Node['heard'] = new Map()
    const uses: Uses = {
      ...ownUses,
      nodes: () => count,
      hear: (kind, listener) => void heard.set(kind, listener),
      tell(kind, name, by = 1) {
        const others = nodes.filter((node) => node.heard !== heard)
        setTimeout(() => others.forEach((node) => node.heard.get(kind)?.(name, by, String(at))), lagMs)
      },
    }
    nodes.push({ limiter: createLoginLimiter({ perMinute, uses }), heard })
  }
  return nodes
}

async function pass(t: TestContext, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    await new Promise((resolve) => setImmediate(resolve))
    t.mock.timers.tick(50)
  }
}

/** Times of logins that all are asked for at once, `each` of them of every node. */
async function times(t: TestContext, nodes: readonly Node[], each: number, urgent: boolean): Promise<number[]> {
  const entered: number[] = []
  for (const { limiter } of nodes)
    for (let at = 0; at < each; at += 1) {
      const login = { host: 'mail.example', username: `user${at}`, developerId: 'dev' }
      void limiter.enter(login, { urgent, signal: new AbortController().signal }).then(() => entered.push(Date.now()))
    }
  await pass(t, 3 * minuteMs)
  return entered.sort((one, other) => one - other)
}

suite('the pace of logins', () => {
  for (const count of [2, 5])
    for (const urgent of [false, true])
      test(`is that of ${count} nodes together${urgent ? ', also when calls wait for them' : ''}`, async (t) => {
        const entered = await times(t, nodesOf(t, count), 200 / count, urgent)
        const most = Math.max(...entered.map((at) => entered.filter((one) => one >= at && one < at + minuteMs).length))
        assert.ok(most <= perMinute * 1.1, `${most} logins within a minute`)
        // A fifth of the number may begin at once; the others begin evenly.
        assert.ok(entered.length >= 3 * perMinute * 0.8, `${entered.length} logins within three minutes`)
      })

  test('is no other for a node whose neighbours log in nowhere', async (t) => {
    const [only] = nodesOf(t, 5)
    const entered = await times(t, only === undefined ? [] : [only], 120, false)
    assert.ok(entered.length >= 2 * perMinute, `${entered.length} logins within three minutes`)
  })
})
