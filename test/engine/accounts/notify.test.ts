/** NOTIFY (RFC 5465): one session hears of all folders; what it is not told is found by the polls. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fullCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { letter } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

const capabilities = [...fullCapabilities, 'NOTIFY']

const pace = { MAILROOM_FOLDER_POLL: '100ms', MAILROOM_FOLDER_LIST: '1h' }
const noPolls = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_FOLDER_LIST: '1h' }

const open = (t: TestContext, settings: Readonly<Record<string, string>>, hooks: Hooks = {}): Promise<Running> =>
  watchingAccounts(t, { capabilities, settings, hooks })

const lists = ({ server }: Running): number => server.log.filter(({ line }) => /^C: \S+ LIST/.test(line)).length

const isIdling = ({ server }: Running): boolean => server.connections.some(({ idling }) => idling)

const isUnasked: (...sent: Parameters<NonNullable<Hooks['send']>>) => boolean = (response, call) =>
  /^\* STATUS/.test(response.toString()) && !/^(?:LIST|STATUS)$/.test(call?.name ?? '')

const isOfArchive = (response: Buffer): boolean => /^\* (?:LIST|STATUS) .*Archive/.test(response.toString())

async function heard(running: Running, subject: string, folder = 'Archive'): Promise<void> {
  running.server.append('ann', folder, letter(subject))
  await until(subject, async () => (await running.subjects(folder)).includes(subject))
}

suite('NOTIFY', { concurrency: true }, () => {
  test('mail, flags and removals of other folders are heard without a poll', async (t) => {
    const running = await open(t, noPolls)
    await until('IDLE', () => isIdling(running))
    const before = lists(running)
    await heard(running, 'one')
    await heard(running, 'two', 'Sent')
    running.server.setFlags('ann', 'Archive', 1, ['\\Flagged'])
    await until('flags', async () => (await running.story()).includes('flags_changed one Archive'))
    assert.equal(lists(running), before)
    await heard(running, 'three', 'INBOX')
    running.server.expunge('ann', 'Archive', 1)
    await until('gone', async () => (await running.story()).includes('deleted one Archive'), { withinMs: 20_000 })
  })

  test('while it tells of them the folders are not polled for what comes to INBOX, but once another was left', async (t) => {
    const running = await open(t, { ...pace, MAILROOM_FOLDER_POLL: '1s' })
    await until('IDLE', () => isIdling(running))
    const first = lists(running)
    await until('the poll after the start', () => lists(running) > first)
    const before = lists(running)
    for (let count = 1; count <= 5; count += 1) await heard(running, `mail ${count}`, 'INBOX')
    await pause(1500)
    assert.equal(lists(running), before)
    await heard(running, 'filed')
    await until('a poll', () => lists(running) > before)
    await pause(1500)
    assert.equal(lists(running), before + 1)
  })

  test('a folder that it names for the first time is looked for', async (t) => {
    const running = await open(t, noPolls)
    await until('IDLE', () => isIdling(running))
    running.server.createFolder('ann', 'Neu')
    running.server.append('ann', 'Neu', letter('new'))
    running.server.say('* LIST () "/" Neu', 'ann')
    await until('read', async () => (await running.subjects('Neu')).includes('new'), { withinMs: 15_000 })
  })

  test('a server that reports no more changes (NOTIFICATIONOVERFLOW) is connected anew', async (t) => {
    let isSilent = false
    const running = await open(t, noPolls, {
      command({ name }) {
        if (name === 'NOTIFY') isSilent = false
        return undefined
      },
      send: (response, call) => (isSilent && isUnasked(response, call) ? null : response),
    })
    await until('IDLE', () => isIdling(running))
    isSilent = true
    running.server.say('* OK [NOTIFICATIONOVERFLOW] too many changes', 'ann')
    await heard(running, 'unreported')
  })

  test('another session lists the folders anew when a list has lost a folder', async (t) => {
    let staleConnection = 0
    const running = await open(t, noPolls, {
      send: (response, call) =>
        call?.connection === staleConnection && call.name !== 'STATUS' && isOfArchive(response) ? null : response,
    })
    await until('IDLE', () => isIdling(running))
    const idling = running.server.connections.find((one) => one.idling)
    const first = lists(running)
    running.server.say('* LIST () "/" Sent', 'ann')
    await until('a list of the watching session', () => lists(running) > first && isIdling(running))
    staleConnection = idling?.id ?? assert.fail('no session in IDLE')
    running.server.append('ann', 'Archive', letter('unlisted'))
    running.server.say('* LIST () "/" Sent', 'ann')
    await until('told', async () => (await running.subjects('Archive')).includes('unlisted'), { withinMs: 20_000 })
    assert(!(await running.story()).some((told) => told.startsWith('deleted')))
  })

  test('a folder that a command removes ends no session', async (t) => {
    const running = await open(t, noPolls)
    await until('IDLE', () => isIdling(running))
    const idling = running.server.connections.find((one) => one.idling)
    await running.accounts.deleteFolder(running.account.id, 'Archive')
    await heard(running, 'later', 'INBOX')
    await pause(300)
    await until('IDLE', () => isIdling(running))
    assert.deepEqual(
      running.server.connections.find((one) => one.idling),
      idling,
    )
  })

  for (const [name, hooks] of [
    [
      'refused',
      { command: ({ name }) => (name === 'NOTIFY' ? { tagged: 'NO [BADEVENT (FlagChange)] no' } : undefined) },
    ],
    [
      'folders of others besides',
      {
        command: ({ name }) =>
          name === 'NAMESPACE'
            ? { lines: ['* NAMESPACE (("" "/")) (("Others/" "/")) NIL'], tagged: 'OK done' }
            : undefined,
      },
    ],
    [
      'a lie',
      {
        send: (response, call) => (isUnasked(response, call) ? null : response),
      },
    ],
  ] as const satisfies readonly (readonly [string, Hooks])[]) {
    test(`${name}: the folders are polled`, async (t) => {
      const running = await open(t, pace, hooks)
      await until('IDLE', () => isIdling(running))
      let polls = 0
      for (let round = 1; polls < 3 && round <= 10; round += 1) {
        await heard(running, `mail ${round}`)
        const from = lists(running)
        await pause(1000)
        polls = lists(running) - from
      }
      assert(polls >= 3, `${polls} polls`)
    })
  }
})
