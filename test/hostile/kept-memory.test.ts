/**
 * What strangers and end users leave in memory: bounded by its size, and by whose it is. In a process of its own: the
 * heap is measured.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createSessions } from '../../api/connect/visit.ts'
import { createDiscovery } from '../../engine/discovery/discover.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapMib(): number {
  collect()
  return process.memoryUsage().heapUsed / 1_048_576
}

const configuration = (host: string, description: string, filler: string): string =>
  `<clientConfig><!--${filler}--><emailProvider id="x"><documentation url="https://${host}/help"><descr>${description}</descr></documentation>` +
  `<incomingServer type="imap"><hostname>${host}</hostname><port>993</port><socketType>SSL</socketType></incomingServer></emailProvider></clientConfig>`

suite('what stays in memory', () => {
  for (const [what, helpBytes, fillBytes] of [
    ['of a large answer no more than its settings', 0, 60_000],
    ['of large settings no more than a bound of all', 60_000, 0],
  ] as const) {
    test(`discovery: ${what}`, async () => {
      let body = ''
      const discovery = createDiscovery({
        http: { get: () => Promise.resolve({ status: 200, headers: {}, body }) },
        probe: () => Promise.resolve([]),
        resolver: { resolveSrv: () => Promise.resolve([]), resolveMx: () => Promise.resolve([]) },
      })
      const ask = async (n: number): Promise<void> => {
        // A text of its own, as from a socket: not a rope, and shared with nobody.
        body = Buffer.from(
          configuration(`imap${n}.example.com`, 'h'.repeat(helpBytes), 'f'.repeat(fillBytes)),
        ).toString()
        const [found] = await discovery.discover(`ann@domain${n}.example.com`)
        assert.equal(found?.server, `imap${n}.example.com`)
      }
      await ask(0)
      const before = heapMib()
      for (let n = 1; n < 800; n += 1) await ask(n)
      body = ''
      const grown = heapMib() - before
      assert(grown < 12, `the heap grew by ${grown.toFixed(1)} MiB`)
      assert.equal((await discovery.discover('bob@domain799.example.com'))[0]?.username, 'bob@domain799.example.com')
    })
  }

  test("the wizard: a developer's end users push out none of another one's, nor more than a bound of its own", () => {
    const sessions = createSessions()
    const honest = { developerId: 'honest', token: 'one' }
    const mine = sessions.open(honest)
    for (let token = 0; token < 3000; token += 1)
      for (let browser = 0; browser < 20; browser += 1) sessions.open({ developerId: 'greedy', token: `t${token}` })
    assert.equal(sessions.find(honest, mine.id), mine)
    assert(sessions.count() <= 5001, `${sessions.count()} sessions`)
    assert.equal(sessions.find({ developerId: 'greedy', token: 'one' }, mine.id), undefined)
  })

  test('the wizard: of one token no more than twenty browsers', () => {
    const sessions = createSessions()
    const owner = { developerId: 'd', token: 'one' }
    for (let browser = 0; browser < 100; browser += 1) sessions.open(owner)
    sessions.open({ ...owner, token: 'two' })
    assert.equal(sessions.count(), 21)
  })
})
