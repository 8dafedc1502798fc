/**
 * Our own write and its echo on the watching connection, in every order: the watching connection sees it and tells it
 * before our command is answered; has asked by then and is answered afterwards; sees it afterwards. Told once each
 * time. The scripted server holds what it says until the test lets it go.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { plainCapabilities, fullCapabilities, type HookCall } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { watchingWing, type Wing } from './wing.ts'

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
  readonly wing: Wing
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
  const wing = await watchingWing(t, { capabilities, settings }, ({ server }) => {
    fill(server, 'INBOX', 4)
    fill(server, 'Archive', 3, 'a')
  })
  const { server } = wing
  const idling = await until('the watching connection idles', () => server.connections.find((one) => one.idling))
  const rules = new Map<Rule, Promise<null>>()
  server.hooks = {
    send(response, call) {
      const held = [...rules].find(([rule]) => rule(call, response.toString('latin1')))
      return held === undefined ? response : held[1].then(() => response)
    },
  }
  return {
    wing,
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
  readonly run: (wing: Wing) => Promise<unknown>
  /** The watching connection has worked it into the index. */
  readonly seen: (wing: Wing) => Promise<boolean>
}

async function at(wing: Wing, subject: string, path: string) {
  const message = await wing.message(subject)
  const place = message.placements.find((one) => one.path === path)
  assert(place, `${subject} lies in ${message.placements.map((one) => one.path).join(', ')}`)
  return [message, place] as const
}

const tells =
  (line: string): Write['seen'] =>
  async (wing) =>
    (await wing.story()).includes(line)
const hasLeft =
  (subject: string): Write['seen'] =>
  async (wing) =>
    !(await wing.subjects('INBOX')).includes(subject)

const writes: readonly Write[] = [
  {
    name: 'flags',
    story: ['flags_changed m1 INBOX'],
    last: /STORE/,
    run: async (wing) =>
      wing.accounts.setFlags(accountId, ...(await at(wing, 'm1', 'INBOX')), { add: ['\\Flagged'], remove: [] }),
    seen: tells('flags_changed m1 INBOX'),
  },
  {
    name: 'a move out of INBOX',
    story: ['folder_added m2 Archive', 'folder_removed m2 INBOX'],
    last: /MOVE|EXPUNGE/,
    run: async (wing) =>
      wing.accounts.move(accountId, ...(await at(wing, 'm2', 'INBOX')), await wing.folder('Archive')),
    seen: hasLeft('m2'),
  },
  {
    name: 'a move into INBOX',
    story: ['folder_added a1 INBOX', 'folder_removed a1 Archive'],
    last: /MOVE|EXPUNGE/,
    run: async (wing) =>
      wing.accounts.move(accountId, ...(await at(wing, 'a1', 'Archive')), await wing.folder('INBOX')),
    seen: tells('folder_added a1 INBOX'),
  },
  {
    name: 'a copy into INBOX',
    story: ['folder_added a2 INBOX'],
    last: /COPY/,
    run: async (wing) =>
      wing.accounts.copy(accountId, ...(await at(wing, 'a2', 'Archive')), await wing.folder('INBOX')),
    seen: tells('folder_added a2 INBOX'),
  },
  {
    name: 'an append to INBOX',
    story: ['received ours INBOX'],
    last: /APPEND/,
    run: async (wing) =>
      wing.accounts.append(accountId, await wing.folder('INBOX'), Buffer.from(letter('ours')), [], Date.now()),
    seen: tells('received ours INBOX'),
  },
  {
    name: 'a removal',
    story: ['deleted m4 INBOX'],
    last: /EXPUNGE/,
    run: async (wing) => wing.accounts.remove(accountId, ...(await at(wing, 'm4', 'INBOX'))),
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
    async ({ wing, watcher, hold }, { run, last, seen }) => {
      const answer = hold(answerOf(watcher, last))
      const written = run(wing)
      await until('the watching connection has told it', () => seen(wing))
      answer.release()
      await written
    },
  ],
  [
    'during',
    async ({ wing, watcher, hold, asked }, { run, last }) => {
      const answer = hold(answerOf(watcher, last))
      const watched = hold((call) => call?.connection === watcher && call.name !== 'IDLE')
      const [before, { log }] = [asked(), wing.server]
      const written = run(wing)
      await until('our command is run', () => log.some(({ line }) => line.startsWith('C: ') && last.test(line)))
      await until('the watching connection asks', () => asked() > before + 1)
      answer.release()
      await written
      watched.release()
    },
  ],
  [
    'afterwards',
    async ({ wing, watcher, hold }, { run }) => {
      const pushes = hold((call) => call?.connection === watcher)
      await run(wing)
      pushes.release()
    },
  ],
]

/** Somebody else's news, behind whatever the watching connection had to work off. */
async function quiet(wing: Wing, round: string): Promise<string> {
  const line = `received ${round} INBOX`
  wing.server.append('ann', 'INBOX', letter(round))
  await until(line, async () => (await wing.story()).includes(line))
  return line
}

for (const [server, capabilities] of servers) {
  suite(`the echo of our own write, ${server}`, () => {
    for (const [name, order] of orders) {
      test(`${name}: told once`, async (t) => {
        const stage = await play(t, capabilities)
        const { wing } = stage
        const told: string[] = []
        for (const write of writes) {
          await until('it idles', () =>
            wing.server.connections.some(({ id, idling }) => id === stage.watcher && idling),
          )
          await order(stage, write)
          told.push(...write.story)
          assert.deepEqual((await wing.story()).sort(), [...told].sort(), `${write.name}: when it is answered`)
          told.push(await quiet(wing, `after ${write.name}`))
          assert.deepEqual((await wing.story()).sort(), [...told].sort(), `${write.name}: after its echo`)
        }
        await wing.accounts.syncFolder(accountId, 'INBOX')
        await wing.accounts.syncFolder(accountId, 'Archive')
        assert.deepEqual((await wing.story()).sort(), [...told].sort())
        const rest = writes.map(({ name: written }) => `after ${written}`)
        assert.deepEqual(await wing.subjects('INBOX'), ['a1', 'a2', ...rest, 'm1', 'm3', 'ours'].sort())
        assert.deepEqual(await wing.subjects('Archive'), ['a2', 'a3', 'm2'])
        const { messages } = await wing.folder('INBOX')
        assert.equal(messages, wing.server.folder('ann', 'INBOX').messages.length)
      })
    }

    test('a word from before our write, heard after it: no news, and the others in it are told', async (t) => {
      const { wing, watcher, hold, asked } = await play(t, capabilities)
      const { hooks } = wing.server
      // The echo would put right what the old word has spoilt.
      const isEcho = (call: HookCall | null, response: Buffer) =>
        call?.connection === watcher && response.includes('\\Flagged')
      wing.server.hooks = {
        send: (response, call) => (isEcho(call, response) ? null : (hooks.send?.(response, call) ?? null)),
      }
      const watched = hold((call) => call?.connection === watcher && call.name !== 'IDLE')
      const before = asked()
      wing.server.setFlags('ann', 'INBOX', 1, ['\\Answered'])
      wing.server.setFlags('ann', 'INBOX', 3, ['\\Answered'])
      await until('the watching connection asks', () => asked() > before + 1)
      const run = (add: string[], remove: string[]) => async (subject: string) =>
        wing.accounts.setFlags(accountId, ...(await at(wing, subject, 'INBOX')), { add, remove })
      assert.deepEqual(await run(['\\Flagged'], [])('m1'), ['\\Answered', '\\Flagged'])
      assert.deepEqual(await run([], ['\\Answered'])('m1'), ['\\Flagged'])
      watched.release()
      const line = await quiet(wing, 'heard')
      wing.server.hooks = hooks
      await wing.accounts.syncFolder(accountId, 'INBOX')
      const flags = 'flags_changed m1 INBOX'
      assert.deepEqual((await wing.story()).sort(), [flags, flags, 'flags_changed m3 INBOX', line].sort())
      assert.deepEqual((await at(wing, 'm1', 'INBOX'))[1].flags, ['\\Flagged'])
    })

    test('an answer to our write that others have overtaken: the newest flags stay, and nothing is told twice', async (t) => {
      const { wing, watcher, hold } = await play(t, capabilities)
      const answer = hold(answerOf(watcher, /STORE/))
      const written = wing.accounts.setFlags(accountId, ...(await at(wing, 'm1', 'INBOX')), {
        add: ['\\Flagged'],
        remove: [],
      })
      await until('ours is told', async () => (await wing.story()).length === 1)
      wing.server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
      await until('the other one is told', async () => (await wing.story()).length === 2)
      answer.release()
      assert.deepEqual(await written, ['\\Flagged'])
      const line = await quiet(wing, 'over')
      await wing.tells(['flags_changed m1 INBOX', 'flags_changed m1 INBOX', line])
      assert.deepEqual((await at(wing, 'm1', 'INBOX'))[1].flags, ['\\Seen'])
      assert.deepEqual(
        (await wing.told()).slice(0, 2).map((change) => change.flags),
        [['\\Flagged'], ['\\Seen']],
      )
    })
  })
}

test('a wrong UID for a copy that the watching connection has told already', async (t) => {
  const { wing, watcher, hold } = await play(t, fullCapabilities)
  const { server } = wing
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
  const moved = wing.accounts.move(accountId, ...(await at(wing, 'a1', 'Archive')), await wing.folder('INBOX'))
  await until('the watching connection has told it', async () => (await wing.story()).length === 1)
  answer.release()
  await moved
  const story = ['folder_added a1 INBOX', 'folder_removed a1 Archive']
  assert.deepEqual(await wing.story(), story)
  story.push(await quiet(wing, 'behind it'))
  assert.deepEqual(await wing.story(), story)
  assert.deepEqual(
    (await wing.message('a1')).placements.map(({ path, uid }) => `${path} ${uid}`),
    ['INBOX 5'],
  )
})

test('a slow MOVE, longer than the hold: the watching connection does not take it for a deletion', async (t) => {
  const wing = await watchingWing(
    t,
    { settings: { MAILROOM_GONE_HOLD: '1ms', MAILROOM_COMMAND_TIMEOUT: '20s' } },
    ({ server }) => {
      fill(server, 'INBOX', 2)
    },
  )
  const { promise, resolve } = Promise.withResolvers<null>()
  const isAnswer = answerOf(0, /MOVE/)
  wing.server.hooks = {
    send: (response, call) => (isAnswer(call, response.toString()) ? promise.then(() => response) : response),
  }
  const [message, place] = await at(wing, 'm1', 'INBOX')
  const moved = wing.accounts.move(accountId, message, place, await wing.folder('Archive'))
  await until('it is seen to vanish', () => hasLeft('m1')(wing))
  const polls = (): number => wing.server.log.filter(({ line }) => /^C: \S+ LIST/.test(line)).length
  const before = polls()
  await until('polls, each of which tells what is due', () => polls() > before + 2)
  assert.deepEqual(await wing.story(), [])
  resolve(null)
  await moved
  assert.deepEqual(await wing.story(), ['folder_added m1 Archive', 'folder_removed m1 INBOX'])
})
