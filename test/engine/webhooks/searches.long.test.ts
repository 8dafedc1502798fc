/**
 * Searches in threads of their own: the same answers, deadlines, memory, turns, and their end. In a process of its own:
 * its processor time is measured.
 */
import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import type { MessageRecord } from '../../../engine/store/records.ts'
import { compileMatcher } from '../../../engine/webhooks/match.ts'
import { type Found, judgeAtLength, Searches, type TextTask } from '../../../engine/webhooks/searches.ts'
import { until } from '../../support/until.ts'
import { facts, messageOf } from './arrival.ts'

const mib = 1_048_576
const part = { section: '1', charset: 'utf-8', encoding: '8bit', size: 0, flowed: false, delSp: false }

function textTask(wanted: string, text: string, type = 'text/plain'): TextTask {
  return { kind: 'text', part: { ...part, type }, bytes: new Uint8Array(Buffer.from(text)), whole: true, wanted }
}

/** Takes many seconds: of each letter it may be the beginning. */
const slow = {
  wanted: '/a[ab]{900}c/',
  text: Array.from({ length: 400_000 }, (_, n) => 'ab'[((n * n) % 7) % 2]).join(''),
}

function answerOf(found: Found<boolean>): boolean {
  assert(found.kind === 'found', JSON.stringify(found))
  return found.answer
}

async function using(searches: Searches, work: (searches: Searches) => Promise<void>): Promise<void> {
  try {
    await work(searches)
  } finally {
    await searches.close()
  }
}

suite('a search in another thread', () => {
  const searches = new Searches(30_000, mib)
  after(() => searches.close())

  test('finds what is there, in text and in HTML, and nothing else', async () => {
    const found = async (...task: Parameters<typeof textTask>) => answerOf(await searches.run('one', textTask(...task)))
    assert.equal(await found('needle', `${'hay '.repeat(50_000)}Needle`), true)
    assert.equal(await found('/need.e$/', `${'hay '.repeat(50_000)}needle`), true)
    assert.equal(await found('/^needle/', `${'hay '.repeat(50_000)}needle`), false)
    assert.equal(await found('needle', '<p title="needle">nee<b>d</b>les', 'text/html'), true)
    assert.equal(await found('needle', '<p title="needle">nail', 'text/html'), false)
  })

  test('judges as the main thread does', async () => {
    const account = { id: 'a'.repeat(24), userId: 'b'.repeat(24) } as Parameters<typeof messageOf>[0]
    const people = Array.from({ length: 3000 }, (_, index) => ({ name: '', email: `user${index}@list.example` }))
    const all = { from: [], sender: [], replyTo: [], to: people, cc: [], bcc: [], returnPath: [] }
    const message: MessageRecord = messageOf(account, { facts: facts('crowd', { addresses: all }) }, 1, null)
    const [place] = message.placements
    assert(place)
    const event = { kind: 'received', first: true, ...place } as const
    const wild = Array.from({ length: 50 }, (_, index) => `*x${index}*`).join(',')
    for (const to of [wild, `${wild},*r2999@*`]) {
      for (const folderAdded of ['shown', 'other']) {
        const webhook = { filters: { to, folderAdded }, receiveAllChanges: false, receiveDrafts: false }
        const matcher = compileMatcher(webhook)
        const known = { folderName: () => 'shown' }
        const target = { matcher, webhook: { ...webhook, developerId: 'one' } } as Parameters<typeof judgeAtLength>[1]
        const here = matcher.judge(event, message, known)
        assert.deepEqual(here.long, ['filter_to'], 'too much for the main thread')
        assert.equal(here.outcome, folderAdded === 'shown' ? 'undecided' : 'no')
        const there = await judgeAtLength(searches, target, event, message, known)
        const expected = here.outcome === 'no' ? here : matcher.judge(event, message, { ...known, unhurried: true })
        assert.deepEqual(there, expected)
        if (folderAdded === 'shown') assert.equal(there.outcome, to === wild ? 'no' : 'match')
      }
    }
  })
})

suite('a search that is too much', () => {
  test('is ended at its deadline, and the next one has a thread again', () =>
    using(new Searches(300, mib), async (searches) => {
      const ended = await searches.run('one', textTask(slow.wanted, slow.text))
      assert.deepEqual(ended, { kind: 'ended', why: 'took longer than 0.3 s (MAILROOM_FILTER_TIMEOUT)' })
      assert.equal(answerOf(await searches.run('one', textTask('b', 'abc'), 30_000)), true)
    }))

  test('is ended at its memory, whatever the process has', () =>
    using(new Searches(60_000, 0), async (searches) => {
      const ended = await searches.run(
        'one',
        textTask('needle', '<i>abcdefghijklmnopq</i>'.repeat(2 * mib), 'text/html'),
      )
      assert.deepEqual(ended, { kind: 'ended', why: 'took more than 64 MiB of memory' })
    }))
})

suite('many searches', () => {
  test('of one owner wait for each other, and nobody else for them', () =>
    using(new Searches(1000, mib), async (searches) => {
      const order: string[] = []
      const run = async (owner: string, task: TextTask): Promise<void> => {
        const { kind } = await searches.run(owner, task, owner === 'bad' ? 1000 : 30_000)
        order.push(`${owner} ${kind}`)
      }
      const bad = Array.from({ length: 4 }, () => run('bad', textTask(slow.wanted, slow.text)))
      const good = Array.from({ length: 3 }, () => run('good', textTask('b', 'abc')))
      const other = run('other', textTask('b', 'abc'))
      await Promise.all([...good, other])
      assert(order.filter((one) => one === 'bad ended').length < 4, order.join())
      await Promise.all(bad)
      assert.deepEqual(order.toSorted(), [
        ...Array.from({ length: 4 }, () => 'bad ended'),
        ...Array.from({ length: 3 }, () => 'good found'),
        'other found',
      ])
    }))

  test('of two owners that are too much do not stop a third, nor does their end', () =>
    using(new Searches(2000, mib), async (searches) => {
      let ended = 0
      const bad = ['one', 'two'].map(async (owner) => {
        for (let n = 0; n < 3; n += 1) {
          const { kind } = await searches.run(owner, textTask(slow.wanted, slow.text))
          assert.equal(kind, 'ended')
          ended += 1
        }
      })
      while (ended < 4) assert.equal((await searches.run('other', textTask('b', 'abc'))).kind, 'found')
      await Promise.all(bad)
      assert.equal(ended, 6)
    }))

  test('are ended with the service: those under way, those that wait, and those that come later', async () => {
    const searches = new Searches(60_000, mib)
    const before = process.cpuUsage()
    const first = searches.run('one', textTask(slow.wanted, slow.text))
    const second = searches.run('one', textTask('b', 'abc'))
    const ends = Promise.all([first, second].map((one) => assert.rejects(one, { code: 'shutting_down' })))
    await until('it is under way', () => process.cpuUsage(before).user > 500_000, { withinMs: 30_000 })
    await searches.close()
    await ends
    await assert.rejects(searches.run('one', textTask('b', 'abc')), { code: 'shutting_down' })
  })
})
