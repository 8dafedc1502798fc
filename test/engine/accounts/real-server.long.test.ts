/** Accounts on real Dovecot: moves, flags, renames, own writes, and a server that is killed again and again. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { startDovecot, type Dovecot } from '../../support/dovecot.ts'
import { letterOf } from '../../support/mail.ts'
import type { RawImap } from '../../support/raw-imap.ts'
import { needs } from '../../support/require.ts'
import { until } from '../../support/until.ts'
import { accountId, letter } from './stage.ts'
import { openAccounts, type Running } from './running.ts'

interface Real {
  readonly dovecot: Dovecot
  readonly running: Running
  readonly client: RawImap
}

async function onDovecot(t: TestContext, settings: Readonly<Record<string, string>> = {}): Promise<Real> {
  const dovecot = await startDovecot()
  t.after(() => dovecot.remove())
  const client = await dovecot.connect('ann')
  t.after(() => client.close())
  for (const subject of ['m1', 'm2', 'm3', 'm4']) await client.append('INBOX', [letter(subject)])
  const target = { host: dovecot.host, port: dovecot.port, password: dovecot.password }
  const running = await openAccounts(t, { target, settings: { MAILROOM_GONE_HOLD: '1s', ...settings } })
  running.accounts.start(running.account)
  await running.settled()
  return { dovecot, running, client }
}

suite('on Dovecot', needs('dovecot'), () => {
  test('NOTIFY: mail and flags of another folder, and a new folder, are heard without a poll', async (t) => {
    const { running, client } = await onDovecot(t, { MAILROOM_FOLDER_POLL: '1h', MAILROOM_INBOX_POLL: '1h' })
    const tells = async (line: string, work: Promise<unknown>): Promise<number> => {
      await work
      const from = performance.now()
      await until(line, async () => (await running.story()).includes(line), { everyMs: 5 })
      return performance.now() - from
    }
    // Opens the command connection.
    await tells('received w1 Archive', client.append('Archive', [letter('w1')]))
    const times: number[] = []
    for (const subject of ['w2', 'w3', 'w4', 'w5', 'w6'])
      times.push(await tells(`received ${subject} Archive`, client.append('Archive', [letter(subject)])))
    // Dovecot gathers changes for half a second.
    const [, , median = 0] = times.sort((one, other) => one - other)
    assert(median < 600, `heard after ${times.map(Math.round).join(', ')} ms`)
    await client.command('SELECT Archive')
    await tells('flags_changed w1 Archive', client.command('UID STORE 1 +FLAGS (\\Flagged)'))
    // Dovecot 2.3 tells this name in UTF-8, and takes it in modified UTF-7 alone.
    await client.command('CREATE F&APw-r')
    for (const subject of ['w7', 'w9'])
      await tells(`received ${subject} Für`, client.append('F&APw-r', [letter(subject)]))
    await tells('received w8 INBOX', client.append('INBOX', [letter('w8')]))
  })

  test('a day: arrivals, flags, a move, a deletion, a rename, a new folder', async (t) => {
    const { running, client } = await onDovecot(t)
    await client.append('INBOX', [letter('n1'), letter('n2')])
    await client.append('Sent', [letter('reply', [], 'ann@mail.example')])
    await client.command('SELECT INBOX')
    await client.command('UID STORE 3 +FLAGS (\\Flagged $Label1)')
    await client.command('UID MOVE 1 Archive')
    await client.command('UID STORE 2 +FLAGS.SILENT (\\Deleted)')
    await client.command('EXPUNGE')
    await client.command('CREATE Projekte')
    await client.command('UID MOVE 4 Projekte')
    const day = [
      'received n1 INBOX',
      'received n2 INBOX',
      'sent reply Sent',
      'flags_changed m3 INBOX',
      'folder_added m1 Archive',
      'folder_removed m1 INBOX',
      'deleted m2 INBOX',
      'folder_added m4 Projekte',
      'folder_removed m4 INBOX',
    ]
    await until('the day is told', async () => {
      const story = await running.story()
      return day.every((line) => story.includes(line))
    })
    // \Deleted may have been seen before the EXPUNGE.
    assert.deepEqual(
      (await running.story()).filter((line) => line !== 'flags_changed m2 INBOX').sort(),
      [...day].sort(),
    )
    assert.deepEqual((await running.message('m3')).placements[0]?.flags, ['$Label1', '\\Flagged'])
    await client.command('RENAME Projekte "Entw&APw-rfe"')
    await until('renamed', async () =>
      (await running.store.folders.list(accountId)).some((one) => one.path === 'Entwürfe'),
    )
    await until('told', async () => (await running.story()).includes('folder_added m4 Entwürfe'))
  })

  const at = async (running: Running, subject: string) => {
    const message = await running.message(subject)
    const place = message.placements[0]
    assert(place)
    return [message, place] as const
  }

  /** The end of the day: what was to be told has been, holds included. */
  const quiet = async ({ running, client }: Real): Promise<string> => {
    const line = 'received the end INBOX'
    await client.append('INBOX', [letter('the end')])
    const from = performance.now()
    await until(
      'the hold is over',
      async () => performance.now() - from > 2000 && (await running.story()).includes(line),
    )
    return line
  }

  test('own writes are told when they answer, and once', async (t) => {
    const real = await onDovecot(t)
    const { running } = real
    const { accounts } = running
    const archive = await running.folder('Archive')
    await accounts.setFlags(...(await at(running, 'm1')), { add: ['\\Seen'], remove: [] })
    await accounts.move(...(await at(running, 'm2')), archive)
    await accounts.copy(...(await at(running, 'm3')), archive)
    await accounts.remove(await running.message('m4'), null)
    await accounts.append(await running.folder('INBOX'), letterOf(letter('ours')))
    assert.deepEqual(await running.subjects('INBOX'), ['m1', 'm3', 'ours'])
    assert.deepEqual(await running.subjects('Archive'), ['m2', 'm3'])
    const story = [
      'flags_changed m1 INBOX',
      'folder_added m2 Archive',
      'folder_removed m2 INBOX',
      'folder_added m3 Archive',
      'deleted m4 INBOX',
      'received ours INBOX',
    ]
    assert.deepEqual(await running.story(), story)
    story.push(await quiet(real))
    assert.deepEqual(await running.story(), story)
  })

  test('back and forth, while somebody else writes too: each is told once', async (t) => {
    const real = await onDovecot(t)
    const { running, client } = real
    const { accounts } = running
    const folders = [await running.folder('Archive'), await running.folder('INBOX')]
    const wanted: string[] = []
    await client.command('SELECT INBOX')
    for (let round = 0; round < 10; round += 1) {
      const change = round % 2 === 0 ? { add: ['\\Seen'], remove: [] } : { add: [], remove: ['\\Seen'] }
      const theirs = client.command(`UID STORE 3 ${round % 2 === 0 ? '+' : '-'}FLAGS (\\Flagged)`)
      await accounts.setFlags(...(await at(running, 'm1')), change)
      const [to] = folders.splice(0, 1)
      assert(to)
      const [from] = folders
      await accounts.move(...(await at(running, 'm2')), to)
      folders.push(to)
      wanted.push('flags_changed m1 INBOX', `folder_added m2 ${to.path}`, `folder_removed m2 ${from?.path}`)
      await theirs
    }
    wanted.push(await quiet(real))
    const ours = (await running.story()).filter((line) => !line.includes(' m3 '))
    assert.deepEqual(ours.sort(), wanted.sort())
    await until('its flags', async () => (await at(running, 'm3'))[1].flags.length === 0)
  })

  test('killed and started five times under a stream of mail: nothing lost, nothing twice, no DISABLED', async (t) => {
    const { dovecot, running } = await onDovecot(t)
    const wanted: string[] = []
    for (let round = 1; round <= 5; round += 1) {
      for (let n = 1; n <= 4; n += 1) {
        const subject = `r${round}n${n}`
        wanted.push(`received ${subject} INBOX`)
        await dovecot.append('ann', 'INBOX', letter(subject))
      }
      await dovecot.kill()
      await dovecot.start()
    }
    await until('all told', async () => (await running.told()).length >= wanted.length, { withinMs: 20_000 })
    assert.deepEqual(await running.story(), wanted)
    assert.deepEqual(running.listener.statuses, [])
  })

  test('UIDVALIDITY changes under the watching actor', async (t) => {
    const { running, client } = await onDovecot(t)
    await client.command('CREATE Box')
    await client.append('Box', [letter('b1'), letter('b2')])
    await running.tells(['received b1 Box', 'received b2 Box'])
    await client.command('SELECT Box')
    const before = (await running.folder('Box')).cursor?.uidValidity
    // The same mail in a mailbox of the same name.
    await client.command('CREATE Kept')
    await client.command('UID COPY 1:2 Kept')
    await client.command('UNSELECT')
    await client.command('DELETE Box')
    await client.command('RENAME Kept Box')
    await client.append('Box', [letter('b3')])
    await until('read anew', async () => (await running.folder('Box')).cursor?.uidValidity !== before)
    await until('b3', async () => (await running.story()).includes('received b3 Box'))
    await until('settled', async () => (await running.subjects('Box')).length === 3)
    const story = await running.story()
    assert.deepEqual(story.filter((line) => line.startsWith('received')).sort(), [
      'received b1 Box',
      'received b2 Box',
      'received b3 Box',
    ])
    assert.deepEqual(
      story.filter((line) => line.startsWith('deleted')),
      [],
    )
  })
})
