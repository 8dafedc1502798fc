/**
 * Our own write and its echo on the watching connection, in every order: the watching connection sees it and tells it
 * before our command is answered; has asked by then and is answered afterwards; sees it afterwards. Told once each
 * time. The scripted server holds what it says until the test lets it go.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { plainCapabilities, fullCapabilities, type HookCall } from '../../support/imap-server/index.ts'
import { letterOf } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

const servers: readonly (readonly [string, readonly string[]])[] = [
  ['everything', fullCapabilities],
  ['IDLE alone', [...plainCapabilities, 'IDLE']],
]

interface Held {
  readonly release: () => void
}

/** Who says what. */
type Rule = (call: HookCall | null, response: string) => boolean

interface Play {
  readonly running: Running
  /** The watching connection. */
  readonly watcher: number
  /** Holds what fits the rule; one rule at a time beside the others. */
  readonly hold: (rule: Rule) => Held
  /** Lines that the watching connection has sent so far. */
  readonly asked: () => number
}

async function play(t: TestContext, capabilities: readonly string[]): Promise<Play> {
  // Polls would see what the pushes are held back from.
  const settings = {
    MAILROOM_FOLDER_POLL: '1h',
    MAILROOM_FOLDER_LIST: '1h',
    MAILROOM_GONE_HOLD: '1h',
    MAILROOM_COMMAND_TIMEOUT: '20s',
  }
  const running = await watchingAccounts(t, { capabilities, settings }, ({ server }) => {
    fill(server, 'INBOX', 4)
    fill(server, 'Archive', 3, 'a')
  })
  const { server } = running
  const idling = await until('the watching connection idles', () => server.connections.find((one) => one.idling))
  const rules = new Map<Rule, Promise<null>>()
  server.hooks = {
    send(response, call) {
      const held = [...rules].find(([rule]) => rule(call, response.toString('latin1')))
      return held === undefined ? response : held[1].then(() => response)
    },
  }
  return {
    running,
    watcher: idling.id,
    hold(rule) {
      const { promise, resolve } = Promise.withResolvers<null>()
      rules.set(rule, promise)
      return {
        release() {
          rules.delete(rule)
          resolve(null)
        },
      }
    },
    asked: () => server.log.filter(({ connection, line }) => connection === idling.id && line.startsWith('C: ')).length,
  }
}

interface Write {
  readonly name: string
  readonly story: readonly string[]
  /** The command whose answer is held. */
  readonly last: RegExp
  readonly run: (running: Running) => Promise<unknown>
  /** The watching connection has worked it into the index. */
  readonly seen: (running: Running) => Promise<boolean>
}

async function at(running: Running, subject: string, path: string) {
  const message = await running.message(subject)
  const place = message.placements.find((one) => one.path === path)
  assert(place, `${subject} lies in ${message.placements.map((one) => one.path).join(', ')}`)
  return [message, place] as const
}

const tells =
  (line: string): Write['seen'] =>
  async (running) =>
    (await running.story()).includes(line)
const hasLeft =
  (subject: string): Write['seen'] =>
  async (running) =>
    !(await running.subjects('INBOX')).includes(subject)

const writes: readonly Write[] = [
  {
    name: 'flags',
    story: ['flags_changed m1 INBOX'],
    last: /STORE/,
    run: async (running) =>
      running.accounts.setFlags(...(await at(running, 'm1', 'INBOX')), { add: ['\\Flagged'], remove: [] }),
    seen: tells('flags_changed m1 INBOX'),
  },
  {
    name: 'a move out of INBOX',
    story: ['folder_added m2 Archive', 'folder_removed m2 INBOX'],
    last: /MOVE|EXPUNGE/,
    run: async (running) =>
      running.accounts.move(...(await at(running, 'm2', 'INBOX')), await running.folder('Archive')),
    seen: hasLeft('m2'),
  },
  {
    name: 'a move into INBOX',
    story: ['folder_added a1 INBOX', 'folder_removed a1 Archive'],
    last: /MOVE|EXPUNGE/,
    run: async (running) =>
      running.accounts.move(...(await at(running, 'a1', 'Archive')), await running.folder('INBOX')),
    seen: tells('folder_added a1 INBOX'),
  },
  {
    name: 'a copy into INBOX',
    story: ['folder_added a2 INBOX'],
    last: /COPY/,
    run: async (running) =>
      running.accounts.copy(...(await at(running, 'a2', 'Archive')), await running.folder('INBOX')),
    seen: tells('folder_added a2 INBOX'),
  },
  {
    name: 'an append to INBOX',
    story: ['received ours INBOX'],
    last: /APPEND/,
    run: async (running) => running.accounts.append(await running.folder('INBOX'), letterOf(letter('ours'))),
    seen: tells('received ours INBOX'),
  },
  {
    name: 'a removal',
    story: ['deleted m4 INBOX'],
    last: /EXPUNGE/,
    run: async (running) => running.accounts.remove(await running.message('m4'), null),
    seen: hasLeft('m4'),
  },
]

type Order = (play: Play, write: Write) => Promise<void>

const answerOf =
  (watcher: number, command: RegExp): Rule =>
  (call, response) =>
    call !== null && call.connection !== watcher && command.test(call.name) && response.startsWith(call.tag)

const orders: readonly (readonly [string, Order])[] = [
  [
    'before',
    async ({ running, watcher, hold }, { run, last, seen }) => {
      const answer = hold(answerOf(watcher, last))
      const written = run(running)
      await until('the watching connection has told it', () => seen(running))
      answer.release()
      await written
    },
  ],
  [
    'during',
    async ({ running, watcher, hold, asked }, { run, last }) => {
      const answer = hold(answerOf(watcher, last))
      const watched = hold((call) => call?.connection === watcher && call.name !== 'IDLE')
      const [before, { log }] = [asked(), running.server]
      const written = run(running)
      await until('our command is run', () => log.some(({ line }) => line.startsWith('C: ') && last.test(line)))
      await until('the watching connection asks', () => asked() > before + 1)
      answer.release()
      await written
      watched.release()
    },
  ],
  [
    'afterwards',
    async ({ running, watcher, hold }, { run }) => {
      const pushes = hold((call) => call?.connection === watcher)
      await run(running)
      pushes.release()
    },
  ],
]

/** Somebody else's news, behind whatever the watching connection had to work off. */
async function quiet(running: Running, round: string): Promise<string> {
  const line = `received ${round} INBOX`
  running.server.append('ann', 'INBOX', letter(round))
  await until(line, async () => (await running.story()).includes(line))
  return line
}

for (const [server, capabilities] of servers) {
  suite(`the echo of our own write, ${server}`, () => {
    for (const [name, order] of orders) {
      test(`${name}: told once`, async (t) => {
        const stage = await play(t, capabilities)
        const { running } = stage
        const told: string[] = []
        for (const write of writes) {
          await until('it idles', () =>
            running.server.connections.some(({ id, idling }) => id === stage.watcher && idling),
          )
          await order(stage, write)
          told.push(...write.story)
          assert.deepEqual((await running.story()).sort(), [...told].sort(), `${write.name}: when it is answered`)
          told.push(await quiet(running, `after ${write.name}`))
          assert.deepEqual((await running.story()).sort(), [...told].sort(), `${write.name}: after its echo`)
        }
        await running.accounts.syncFolder(accountId, 'INBOX')
        await running.accounts.syncFolder(accountId, 'Archive')
        assert.deepEqual((await running.story()).sort(), [...told].sort())
        const rest = writes.map(({ name: written }) => `after ${written}`)
        assert.deepEqual(await running.subjects('INBOX'), ['a1', 'a2', ...rest, 'm1', 'm3', 'ours'].sort())
        assert.deepEqual(await running.subjects('Archive'), ['a2', 'a3', 'm2'])
        const { messages } = (await running.folder('INBOX')).counts
        assert.equal(messages, running.server.folder('ann', 'INBOX').messages.length)
      })
    }

    test('a word from before our write, heard after it: no news, and the others in it are told', async (t) => {
      const { running, watcher, hold, asked } = await play(t, capabilities)
      const { hooks } = running.server
      // The echo would put right what the old word has spoilt.
      const isEcho = (call: HookCall | null, response: Buffer) =>
        call?.connection === watcher && response.includes('\\Flagged')
      running.server.hooks = {
        send: (response, call) => (isEcho(call, response) ? null : (hooks.send?.(response, call) ?? null)),
      }
      const watched = hold((call) => call?.connection === watcher && call.name !== 'IDLE')
      const before = asked()
      running.server.setFlags('ann', 'INBOX', 1, ['\\Answered'])
      running.server.setFlags('ann', 'INBOX', 3, ['\\Answered'])
      await until('the watching connection asks', () => asked() > before + 1)
      const run = (add: string[], remove: string[]) => async (subject: string) =>
        running.accounts.setFlags(...(await at(running, subject, 'INBOX')), { add, remove })
      assert.deepEqual(await run(['\\Flagged'], [])('m1'), ['\\Answered', '\\Flagged'])
      assert.deepEqual(await run([], ['\\Answered'])('m1'), ['\\Flagged'])
      watched.release()
      const line = await quiet(running, 'heard')
      running.server.hooks = hooks
      await running.accounts.syncFolder(accountId, 'INBOX')
      const flags = 'flags_changed m1 INBOX'
      assert.deepEqual((await running.story()).sort(), [flags, flags, 'flags_changed m3 INBOX', line].sort())
      assert.deepEqual((await at(running, 'm1', 'INBOX'))[1].flags, ['\\Flagged'])
    })

    test('flags to add and flags to remove: two commands, and what is seen between them is not told', async (t) => {
      const { running, watcher, hold, asked } = await play(t, capabilities)
      const set = async (add: string[], remove: string[]) =>
        running.accounts.setFlags(...(await at(running, 'm1', 'INBOX')), { add, remove })
      await set(['\\Flagged'], [])
      const line = await quiet(running, 'flagged')
      const [before, first] = [asked(), hold(answerOf(watcher, /STORE/))]
      const written = set(['\\Answered'], ['\\Flagged'])
      await until('the watching connection has seen the first', () => asked() > before + 2)
      await until('it idles again', () => running.server.connections.some(({ id, idling }) => id === watcher && idling))
      await running.tells(['flags_changed m1 INBOX', line])
      first.release()
      assert.deepEqual(await written, ['\\Answered'])
      const story = ['flags_changed m1 INBOX', line, 'flags_changed m1 INBOX', await quiet(running, 'over')]
      await running.tells(story)
      const told = await running.told()
      assert.deepEqual(
        told.filter(({ kind }) => kind === 'flags_changed').map((change) => change.flags),
        [['\\Flagged'], ['\\Answered']],
      )
    })

    test('the second of them refused: what the first has done is told', async (t) => {
      const { running, watcher, hold, asked } = await play(t, capabilities)
      const isSecond: Rule = (call) => call?.text.includes('-FLAGS') === true
      const [before, second] = [asked(), hold(isSecond)]
      running.server.hooks = {
        ...running.server.hooks,
        command: (call) => (isSecond(call, '') ? { tagged: 'NO not today' } : undefined),
      }
      const change = { add: ['\\Answered'], remove: ['\\Flagged'] }
      const written = running.accounts.setFlags(...(await at(running, 'm1', 'INBOX')), change)
      await until('the watching connection has seen the first', () => asked() > before + 2)
      await until('it idles again', () => running.server.connections.some(({ id, idling }) => id === watcher && idling))
      second.release()
      await assert.rejects(written, { code: 'server_refused' })
      await running.tells(['flags_changed m1 INBOX'])
      assert.deepEqual((await at(running, 'm1', 'INBOX'))[1].flags, ['\\Answered'])
    })

    test('an answer to our write that others have overtaken: the newest flags stay, and nothing is told twice', async (t) => {
      const { running, watcher, hold } = await play(t, capabilities)
      const answer = hold(answerOf(watcher, /STORE/))
      const written = running.accounts.setFlags(...(await at(running, 'm1', 'INBOX')), {
        add: ['\\Flagged'],
        remove: [],
      })
      await until('ours is told', async () => (await running.story()).length === 1)
      running.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
      await until('the other one is told', async () => (await running.story()).length === 2)
      answer.release()
      assert.deepEqual(await written, ['\\Flagged'])
      const line = await quiet(running, 'over')
      await running.tells(['flags_changed m1 INBOX', 'flags_changed m1 INBOX', line])
      assert.deepEqual((await at(running, 'm1', 'INBOX'))[1].flags, ['\\Seen'])
      assert.deepEqual(
        (await running.told()).slice(0, 2).map((change) => change.flags),
        [['\\Flagged'], ['\\Seen']],
      )
    })
  })
}

test('a wrong UID for a copy that the watching connection has told already', async (t) => {
  const { running, watcher, hold } = await play(t, fullCapabilities)
  const { server } = running
  const { send } = server.hooks
  const copyUid = /(COPYUID \d+ \d+ )(\d+)/
  server.hooks = {
    send: (response, call) =>
      send?.(
        Buffer.from(
          response.toString('latin1').replace(copyUid, (_, to: string, uid: string) => `${to}${Number(uid) + 7}`),
          'latin1',
        ),
        call,
      ) ?? null,
  }
  const answer = hold(answerOf(watcher, /MOVE/))
  const moved = running.accounts.move(...(await at(running, 'a1', 'Archive')), await running.folder('INBOX'))
  await until('the watching connection has told it', async () => (await running.story()).length === 1)
  answer.release()
  await moved
  const story = ['folder_added a1 INBOX', 'folder_removed a1 Archive']
  assert.deepEqual(await running.story(), story)
  story.push(await quiet(running, 'behind it'))
  assert.deepEqual(await running.story(), story)
  assert.deepEqual(
    (await running.message('a1')).placements.map(({ path, uid }) => `${path} ${uid}`),
    ['INBOX 5'],
  )
})

test('a slow MOVE, longer than the hold: the watching connection does not take it for a deletion', async (t) => {
  const running = await watchingAccounts(
    t,
    { settings: { MAILROOM_GONE_HOLD: '1ms', MAILROOM_COMMAND_TIMEOUT: '20s' } },
    ({ server }) => {
      fill(server, 'INBOX', 2)
    },
  )
  const { promise, resolve } = Promise.withResolvers<null>()
  const isAnswer = answerOf(0, /MOVE/)
  running.server.hooks = {
    send: (response, call) => (isAnswer(call, response.toString()) ? promise.then(() => response) : response),
  }
  const [message, place] = await at(running, 'm1', 'INBOX')
  const moved = running.accounts.move(message, place, await running.folder('Archive'))
  await until('it is seen to vanish', () => hasLeft('m1')(running))
  const polls = (): number => running.server.log.filter(({ line }) => /^C: \S+ LIST/.test(line)).length
  const before = polls()
  await until('polls, each of which tells what is due', () => polls() > before + 2)
  assert.deepEqual(await running.story(), [])
  resolve(null)
  await moved
  assert.deepEqual(await running.story(), ['folder_added m1 Archive', 'folder_removed m1 INBOX'])
})
