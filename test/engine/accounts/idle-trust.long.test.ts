/**
 * Servers whose IDLE pushes nothing: after three misses INBOX is asked, each host by its own record, until pushes come
 * again.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createPushRecords } from '../../../engine/accounts/watch.ts'
import { sealCredential } from '../../../engine/secrets/seal.ts'
import { fullCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { fill, letter, sealer } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

/** Polls are far enough apart that asking is told from them. */
const pace = { MAILROOM_FOLDER_POLL: '900ms', MAILROOM_INBOX_POLL: '250ms', MAILROOM_COMMAND_IDLE_CLOSE: '100ms' }
const bobId = 'e'.repeat(24)

/** Commands of a user's connections since the start. */
function count({ server }: Running, name: string, user = 'ann'): number {
  const own = new Set(server.connections.flatMap((one) => (one.user === user ? [one.id] : [])))
  const pattern = new RegExp(`^C: \\S+ ${name}\\b`)
  return server.log.filter(({ connection, line }) => own.has(connection) && pattern.test(line)).length
}

function isIdling({ server }: Running): boolean {
  return server.connections.some(({ user, idling }) => user === 'ann' && idling)
}

/** Mail that a poll finds: `times` misses. Each in an IDLE that nothing but the next poll will end. */
async function miss(running: Running, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    // The first may follow what was found before at once.
    await nextPoll(running)
    await nextPoll(running)
    await until('IDLE', () => isIdling(running))
    const before = (await running.told()).length
    running.server.append('ann', 'INBOX', letter(`missed ${before}`))
    await until('found by a poll', async () => (await running.told()).length > before)
  }
}

async function nextPoll(running: Running): Promise<void> {
  const before = count(running, 'LIST')
  await until('a poll', () => count(running, 'LIST') > before)
}

/** New mail was seen before the next poll began. */
async function isHeardBetweenPolls(running: Running): Promise<boolean> {
  await nextPoll(running)
  const polls = count(running, 'LIST')
  const subject = `asked for ${polls}`
  running.server.append('ann', 'INBOX', letter(subject))
  await until('heard', async () => (await running.subjects('INBOX')).includes(subject))
  return count(running, 'LIST') === polls
}

/** How servers are silent: on everything that they say while IDLE is open. */
const silences: readonly (readonly [string, Hooks])[] = [
  ['tells when IDLE ends', { silentIdle: 'late' }],
  ['tells with NOOP', { silentIdle: 'never' }],
]

suite('a server that pushes nothing', { concurrency: true }, () => {
  for (const [name, hooks] of silences) {
    test(`and ${name}: asked after exactly three misses, and mail is heard between polls`, async (t) => {
      const running = await watchingAccounts(t, { hooks, settings: pace })
      await miss(running, 2)
      await nextPoll(running)
      assert.equal(count(running, 'NOOP'), 0, 'two misses say nothing yet')
      await miss(running, 1)
      await until('asked', () => count(running, 'NOOP') >= 2)
      await until('heard between two polls', () => isHeardBetweenPolls(running))
      running.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
      await until('flags too', async () => (await running.story()).includes('flags_changed missed 0 INBOX'))
      await nextPoll(running)
      const asked = count(running, 'NOOP')
      await until('an answer to NOOP is no push: asked on', () => count(running, 'NOOP') >= asked + 2)
    })
  }

  test('and tells by STATUS alone: asked by STATUS, after three more misses', async (t) => {
    const deaf: Hooks = {
      silentIdle: 'never',
      send: (response, call) => (/EXISTS/.test(response.toString()) && call?.name !== 'SELECT' ? null : response),
    }
    const running = await watchingAccounts(t, { hooks: deaf, settings: pace })
    await miss(running, 3)
    await until('asked', () => count(running, 'NOOP') >= 2)
    assert.equal(count(running, 'STATUS'), 0)
    await miss(running, 3)
    await until('asked by STATUS', () => count(running, 'STATUS') >= 2)
    await until('heard between two polls', () => isHeardBetweenPolls(running))
  })
})

suite('a host', { concurrency: true }, () => {
  /** bob is on the same host. */
  async function startBob(running: Running): Promise<void> {
    running.server.addUser('bob')
    const bob = {
      ...running.account,
      id: bobId,
      label: 'bob::mail',
      email: 'bob@mail.example',
      username: 'bob',
      sealedCredential: sealCredential(sealer, bobId, { kind: 'password', password: 'secret' }),
    }
    await running.store.accounts.create(bob)
    running.accounts.start(bob)
    const read = async () => (await running.store.accounts.get(bobId))?.resume.initialSyncAt !== null
    await until('bob is read', read)
  }

  test('all of its accounts know at once, those to come too, and pushes bring it back', async (t: TestContext) => {
    const running = await watchingAccounts(t, { hooks: { silentIdle: 'never' }, settings: pace })
    await startBob(running)
    await miss(running, 2)
    assert.equal(count(running, 'NOOP', 'bob'), 0)
    await miss(running, 1)
    await until('bob is asked', () => count(running, 'NOOP', 'bob') >= 2)
    await running.accounts.stop(bobId)
    const bob = await running.store.accounts.get(bobId)
    assert(bob)
    running.accounts.start(bob)
    await until('bob is asked from the start', () => count(running, 'NOOP', 'bob') >= 2)
    running.server.hooks = {}
    const quiet = async (): Promise<boolean> => {
      let looks = 0
      await until('the middle of an IDLE', () => (looks = isIdling(running) ? looks + 1 : 0) >= 5)
      running.server.append('ann', 'INBOX', letter('pushed'))
      const before = count(running, 'NOOP')
      await nextPoll(running)
      return count(running, 'NOOP') === before
    }
    await until('ann is trusted again', quiet, { withinMs: 20_000 })
    const asked = count(running, 'NOOP', 'bob')
    await nextPoll(running)
    assert.equal(count(running, 'NOOP', 'bob'), asked, 'bob too')
  })

  test('without IDLE is asked from the start', async (t) => {
    const capabilities = fullCapabilities.filter((name) => name !== 'IDLE')
    const running = await watchingAccounts(t, { capabilities, settings: pace })
    await until('asked', () => count(running, 'NOOP') >= 3)
    await until('heard between two polls', () => isHeardBetweenPolls(running))
  })
})

suite('a server that pushes is not asked', () => {
  const settings = { ...pace, MAILROOM_FOLDER_POLL: '500ms', MAILROOM_INBOX_POLL: '100ms' }

  test('because flags are compared now and then, or were changed without a word', async (t) => {
    const hooks: Hooks = {
      send: (response, call) => (/FETCH/.test(response.toString()) && call?.name === 'IDLE' ? null : response),
    }
    const capabilities = fullCapabilities.filter((name) => name !== 'CONDSTORE' && name !== 'ENABLE')
    const running = await watchingAccounts(
      t,
      { capabilities, hooks, settings: { ...settings, MAILROOM_FLAG_COMPARE: '0ms' } },
      ({ server }) => fill(server, 'INBOX', 6),
    )
    for (let uid = 1; uid <= 6; uid += 1) {
      running.server.setFlags('ann', 'INBOX', uid, ['\\Seen'])
      await until('found', async () => (await running.message(`m${uid}`)).placements[0]?.flags.includes('\\Seen'))
    }
    const polls = count(running, 'LIST')
    await until('more polls', () => count(running, 'LIST') >= polls + 5)
    assert.equal(count(running, 'NOOP'), 0)
  })

  test('because mail is pushed between two polls', async (t) => {
    const running = await watchingAccounts(t, { settings: pace })
    for (let n = 1; n <= 6; n += 1) {
      running.server.append('ann', 'INBOX', letter(`n${n}`))
      await until('told', async () => (await running.told()).length === n)
    }
    await nextPoll(running)
    assert.equal(count(running, 'NOOP'), 0)
  })
})

suite('the record of a host', () => {
  const join = (records = createPushRecords(0), wake = (): void => undefined) => records.join('imap.example.com', wake)

  test('three misses of one or of several accounts', () => {
    const records = createPushRecords(0)
    const [one, other] = [join(records), records.join('IMAP.Example.com', () => undefined)]
    one.missed()
    other.reportedLate()
    assert.deepEqual([one.asking(true), other.asking(true)], ['never', 'never'])
    one.missed()
    assert.deepEqual([one.asking(true), other.asking(true)], ['noop', 'noop'])
    assert.equal(records.join('other.example.com', () => undefined).asking(true), 'never')
  })

  test('a push of one account is believed by those that missed nothing themselves', () => {
    const records = createPushRecords(0)
    const [silent, other] = [join(records), join(records)]
    for (let n = 0; n < 3; n += 1) silent.missed()
    other.pushed()
    assert.deepEqual([silent.asking(true), other.asking(true)], ['noop', 'never'])
    silent.pushed()
    assert.equal(silent.asking(true), 'never')
    silent.missed()
    silent.missed()
    assert.equal(silent.asking(true), 'never', 'the count starts anew')
  })

  test('what NOOP does not tell either is asked by STATUS, what IDLE tells late is not', () => {
    const one = join()
    for (let n = 0; n < 10; n += 1) one.reportedLate()
    assert.equal(one.asking(true), 'noop')
    for (let n = 0; n < 2; n += 1) one.missed()
    assert.equal(one.asking(true), 'noop')
    one.missed()
    assert.equal(one.asking(true), 'status')
    one.reportedLate()
    assert.equal(one.asking(true), 'status')
    one.answered()
    assert.equal(one.asking(true), 'noop')
  })

  test('without IDLE NOOP is asked from the start, and STATUS where it is deaf', () => {
    const one = join()
    assert.equal(one.asking(false), 'noop')
    for (let n = 0; n < 6; n += 1) one.missed()
    assert.equal(one.asking(false), 'status')
  })

  test('the others are woken once, when it is found out, and not those that have ended', async () => {
    const records = createPushRecords(0)
    const woken: string[] = []
    const one = join(records, () => woken.push('one'))
    join(records, () => woken.push('other'))
    join(records, () => woken.push('ended')).end()
    for (let n = 0; n < 8; n += 1) one.missed()
    await until('woken', () => woken.length >= 2)
    assert.deepEqual(woken.sort(), ['one', 'other'])
  })

  test('outlives its accounts while it says something', () => {
    const records = createPushRecords(0)
    const one = join(records)
    for (let n = 0; n < 3; n += 1) one.missed()
    one.end()
    const next = join(records)
    assert.equal(next.asking(true), 'noop')
    next.pushed()
    next.end()
    assert.equal(join(records).asking(true), 'never')
  })
})
