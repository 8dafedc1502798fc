/** Live mail with real actors: what arrives, moves, changes and goes is reported once, as what it is. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fullCapabilities, type Hooks, plainCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, moveOnServer } from './stage.ts'
import { openAccounts, watchingAccounts } from './running.ts'

const without = (...names: readonly string[]) => fullCapabilities.filter((name) => !names.includes(name))

/** Each kind of server that other folders and flags are followed on in another way. */
const servers: readonly (readonly [string, readonly string[]])[] = [
  ['everything', fullCapabilities],
  ['no CONDSTORE', without('CONDSTORE', 'ENABLE')],
  ['no LIST-STATUS', without('LIST-STATUS', 'LIST-EXTENDED')],
  ['no IDLE', without('IDLE')],
  ['plain RFC 3501', plainCapabilities],
]

for (const [name, capabilities] of servers) {
  suite(`a server with ${name}`, () => {
    test('arrivals in every folder, by their kinds', async (t) => {
      const { server, tells } = await watchingAccounts(t, { capabilities }, (stage) => fill(stage.server, 'INBOX', 3))
      server.append('ann', 'INBOX', letter('one'))
      server.append('ann', 'INBOX', letter('two'))
      server.append('ann', 'Archive', letter('three'))
      server.append('ann', 'Sent', letter('four', [], 'ann@mail.example'))
      server.append('ann', 'Drafts', letter('five', [], 'ann@mail.example'), ['\\Draft'])
      await tells([
        'received one INBOX',
        'received two INBOX',
        'received three Archive',
        'sent four Sent',
        'draft five Drafts',
      ])
    })

    test('flags that others set', async (t) => {
      const running = await watchingAccounts(
        t,
        { capabilities, settings: { MAILROOM_FLAG_COMPARE: '200ms' } },
        (stage) => {
          fill(stage.server, 'INBOX', 3)
          fill(stage.server, 'Archive', 2, 'a')
        },
      )
      running.server.setFlags('ann', 'INBOX', 2, ['\\Seen'])
      running.server.setFlags('ann', 'Archive', 1, ['\\Flagged'])
      await running.tells(['flags_changed m2 INBOX', 'flags_changed a1 Archive'])
      assert.deepEqual((await running.message('m2')).placements[0]?.flags, ['\\Seen'])
      await until('unread counted', async () => (await running.folder('INBOX')).counts.unseen === 2)
      running.server.setFlags('ann', 'INBOX', 2, [])
      await running.tells(['flags_changed m2 INBOX', 'flags_changed a1 Archive', 'flags_changed m2 INBOX'])
    })

    test('moves, deletions, and back again', async (t) => {
      const running = await watchingAccounts(t, { capabilities }, (stage) => fill(stage.server, 'INBOX', 3))
      const there = moveOnServer(running.server, 1, 'INBOX', 'Archive')
      running.server.expunge('ann', 'INBOX', 2)
      await running.tells(['folder_added m1 Archive', 'folder_removed m1 INBOX', 'deleted m2 INBOX'])
      moveOnServer(running.server, there, 'Archive', 'INBOX')
      await running.tells([
        'folder_added m1 Archive',
        'folder_removed m1 INBOX',
        'deleted m2 INBOX',
        'folder_added m1 INBOX',
        'folder_removed m1 Archive',
      ])
      assert.deepEqual(await running.subjects('INBOX'), ['m1', 'm3'])
      assert.equal((await running.folder('INBOX')).counts.messages, 2)
    })
  })
}

test('mail that arrives while a fetch is under way, and during the back-fill', async (t) => {
  const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '10', MAILROOM_BACKFILL_PAUSE: '20ms' } })
  fill(running.server, 'INBOX', 100)
  let extra = 0
  running.server.hooks = {
    command({ name, text }) {
      if (
        name === 'UID FETCH' &&
        text.includes('BODYSTRUCTURE') &&
        running.accounts.view(accountId)?.state !== 'connecting'
      ) {
        if (extra < 10) {
          extra += 1
          running.server.append('ann', 'INBOX', letter(`n${extra}`))
        }
      }
      return undefined
    },
  }
  running.accounts.start(running.account)
  await running.settled()
  await running.tells(Array.from({ length: 10 }, (_, index) => `received n${index + 1} INBOX`))
  assert.equal((await running.subjects('INBOX')).length, 110)
  // One that came between SELECT and its answer is counted twice until the UIDs have been compared.
  await until('the count', async () => (await running.folder('INBOX')).counts.messages === 110)
  assert.equal(running.listener.initialSyncs, 1)
})

test('back in the same folder within the hold: nothing is told', async (t) => {
  const running = await watchingAccounts(t, { settings: { MAILROOM_GONE_HOLD: '5s' } }, (stage) =>
    fill(stage.server, 'INBOX', 2),
  )
  const archived = moveOnServer(running.server, 1, 'INBOX', 'Archive')
  await until('gone from INBOX', async () => (await running.message('m1')).gone.length === 1)
  moveOnServer(running.server, archived, 'Archive', 'INBOX')
  await until('back', async () => (await running.subjects('INBOX')).length === 2)
  running.server.append('ann', 'INBOX', letter('later'))
  await until('all told', async () => (await running.message('m1')).gone.length === 0, { withinMs: 20_000 })
  const story = await running.story()
  assert(!story.includes('folder_removed m1 INBOX'), story.join(', '))
  assert(!story.includes('deleted m1 INBOX'), story.join(', '))
})

test('a message that leaves two folders one after the other is deleted once', async (t) => {
  const running = await watchingAccounts(t, {}, (stage) => {
    fill(stage.server, 'INBOX', 2)
  })
  const copy = running.server.folder('ann', 'INBOX').messages[0]
  assert(copy)
  const second = running.server.append('ann', 'Archive', copy.raw, [], new Date(copy.internalDate))
  await running.tells(['folder_added m1 Archive'])
  running.server.expunge('ann', 'INBOX', 1)
  running.server.expunge('ann', 'Archive', second)
  await until('both told', async () => (await running.told()).length === 3)
  const kinds = (await running.story())
    .slice(1)
    .map((line) => line.split(' ')[0])
    .sort()
  assert.deepEqual(kinds, ['deleted', 'folder_removed'])
})

test('moved into a folder that was made just now: told as a move', async (t) => {
  const running = await watchingAccounts(t, {}, (stage) => fill(stage.server, 'INBOX', 3))
  running.server.createFolder('ann', 'Projects')
  moveOnServer(running.server, 2, 'INBOX', 'Projects')
  running.server.append('ann', 'Projects', letter('filed by a rule'))
  await running.tells(['folder_added m2 Projects', 'folder_removed m2 INBOX', 'received filed by a rule Projects'])
})

/** Servers that name mod-sequences which say nothing, each in its own way. */
const idleTalk: readonly (readonly [string, readonly string[], Hooks])[] = [
  ['without CONDSTORE, by LIST-STATUS', without('CONDSTORE', 'ENABLE'), { send: withModseq(() => 7) }],
  ['without CONDSTORE, by STATUS', ['IMAP4rev1', 'IDLE'], { send: withModseq(() => 7) }],
  ['without CONDSTORE, another each time', without('CONDSTORE', 'ENABLE'), { send: withModseq(() => Date.now()) }],
  [
    'with CONDSTORE, of folders that it opens as ones without',
    fullCapabilities,
    {
      send: (response) => response.toString('latin1').replace(/\[HIGHESTMODSEQ \d+\]/, '[NOMODSEQ]'),
    },
  ],
]

function withModseq(value: () => number): NonNullable<Hooks['send']> {
  return (response) => response.toString('latin1').replace(/^(\* STATUS .*)\)\r\n/, `$1 HIGHESTMODSEQ ${value()})\r\n`)
}

for (const [name, capabilities, hooks] of idleTalk) {
  test(`a STATUS that names HIGHESTMODSEQ ${name}: polls find nothing`, async (t) => {
    const running = await watchingAccounts(
      t,
      { capabilities, hooks, settings: { MAILROOM_COMMAND_IDLE_CLOSE: '100ms' } },
      ({ server }) => {
        fill(server, 'INBOX', 2)
        fill(server, 'Archive', 2, 'a')
      },
    )
    const { log } = running.server
    let from = 0
    const asked = (pattern: RegExp) => log.slice(from).filter(({ line }) => pattern.test(line))
    const polls = () => asked(/^S: \* STATUS "?Archive/).length
    // By then no poll compares flags.
    let last = { polls: -1, at: 0 }
    await until('seldom polls', () => {
      if (polls() !== last.polls) last = { polls: polls(), at: Date.now() }
      return Date.now() - last.at > 1000
    })
    await until('only IDLE', () => running.server.connections.length === 1 && running.server.connections[0]?.idling)
    const { accepted } = running.server
    from = log.length
    await until('two polls', () => polls() >= 2)
    assert(log.slice(from).some(({ line }) => line.includes('HIGHESTMODSEQ')))
    assert.deepEqual(asked(/^C: \S+ (?:SELECT|UID )/), [])
    assert.equal(running.server.accepted, accepted, 'no second connection')
    running.server.setFlags('ann', 'Archive', 1, ['\\Seen'])
    await running.tells(['flags_changed a1 Archive'])
  })
}

test('what came and went unseen does not keep the account busy', async (t) => {
  const running = await watchingAccounts(t, {}, (stage) => fill(stage.server, 'Archive', 3, 'a'))
  running.server.folder('ann', 'Archive').uidNext += 5
  await until('the cursor follows', async () => (await running.folder('Archive')).cursor?.uidNext === 9)
  // A list that was asked for before the cursor moved may lead to one SELECT more.
  const polls = () => {
    const lines = running.server.log.map(({ line }) => line)
    const selected = lines.findLastIndex((line) => /SELECT "?Archive/.test(line))
    return lines.slice(selected).filter((line) => line.includes(' LIST ')).length
  }
  await until('three polls without a SELECT', () => polls() >= 3)
})
