/**
 * kill -9 at random moments of a burst, again and again: every message is told, under one webhook-id only, and each
 * account's messages in their order. The moments come from a seed, which is printed; MAILROOM_TEST_SEED repeats them.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { suite, test } from 'node:test'
import { part, type Callback, type CallbackReceiver } from '../support/callbacks.ts'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { mail } from '../support/mail.ts'
import type { RawImap } from '../support/raw-imap.ts'
import { needs } from '../support/require.ts'
import { chosenStore } from '../support/store-choice.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'
import { openStage, settled, type Stage } from './stage.ts'

const accounts = 20
const messagesEach = 100
const kills = 10
const total = accounts * messagesEach
/** Users that have a webhook of their own beside the application's. */
const withOwn = 4
const callbacks = total + withOwn * messagesEach
/** A kill that waits for callbacks does not wait longer than this. */
const patienceMs = 4000
/**
 * Small batches: more places to be killed at, and less to do again. The database may share the machine with other
 * tests.
 */
const env = { MAILROOM_SYNC_BATCH: '20', MAILROOM_STORE_TIMEOUT: '30s' }

type Random = (below: number) => number

/** mulberry32: small, and the same everywhere. */
function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

interface Mailbox {
  readonly name: string
  readonly userId: string
  /** Paths of the webhooks that are told of it, and their ids. */
  readonly webhooks: ReadonlyMap<string, string>
  readonly client: RawImap
  /** Message-IDs in the order of their UIDs. */
  readonly sent: string[]
}

async function openMailbox(stage: Stage, dovecot: Dovecot, index: number, everybody: string): Promise<Mailbox> {
  const name = `box${index}@mail.example`
  const client = await dovecot.connect(name)
  await client.append('INBOX', [mail({ to: name, subject: `old ${index}` })])
  const userId = await createUser(stage.service, dovecot, name)
  await listed(stage.service, userId, `old ${index}`, 60_000)
  const webhooks = new Map([[`/lite/webhooks/${everybody}`, everybody]])
  if (index < withOwn) {
    const own = await createWebhook(stage.service, userId, `${stage.receiver.url}/own`)
    webhooks.set(`/lite/users/${userId}/webhooks/${own}`, own)
  }
  return { name, userId, webhooks, client, sent: [] }
}

/** Some messages of every mailbox, a few at a time, mailboxes side by side. */
async function appendShare(mailboxes: readonly Mailbox[], share: number, random: Random): Promise<void> {
  const sizes = mailboxes.map(() => [...pieces(share, random)])
  await Promise.all(
    mailboxes.map(async ({ name, client, sent }, index) => {
      for (const size of sizes[index] ?? []) {
        const ids = Array.from({ length: size }, (_, offset) => `${name.split('@')[0]}-${sent.length + offset}`)
        await client.append(
          'INBOX',
          ids.map((id) => mail({ to: name, subject: `burst ${id}`, id })),
        )
        sent.push(...ids.map((id) => `<${id}@sender.example>`))
      }
    }),
  )
}

function* pieces(share: number, random: Random): Generator<number> {
  for (let left = share; left > 0;) {
    const size = Math.min(left, 1 + random(20))
    left -= size
    yield size
  }
}

/** Half of the burst at once, the rest over the other kills. */
function shares(): number[] {
  const rest = Math.floor(messagesEach / 2 / (kills - 1))
  return [messagesEach - rest * (kills - 1), ...Array.from({ length: kills - 1 }, () => rest)]
}

/**
 * SIGKILL either some time after the start began, so that some fall before it is ready, or while a callback waits for
 * its answer: told, and the service cannot know. Answers what it was.
 */
async function killSometime({ service, receiver }: Stage, random: Random): Promise<string> {
  const { promise: killed, resolve } = Promise.withResolvers<undefined>()
  const kill = (): void => resolve(service.kill9().then(() => undefined))
  let left = random(2) === 0 ? 1 + random(60) : Number.POSITIVE_INFINITY
  const delayMs = random(2500)
  const planned = left
  receiver.onCallback(() => {
    left -= 1
    if (left === 0) kill()
  })
  const timer = setTimeout(kill, Number.isFinite(left) ? patienceMs : delayMs)
  await killed
  clearTimeout(timer)
  receiver.onCallback(() => undefined)
  return left <= 0 ? `callback ${planned}` : `${Number.isFinite(planned) ? patienceMs : delayMs} ms`
}

/** The whole burst with all its kills; the service is up again when it resolves. Answers when each kill came. */
async function burst(stage: Stage, mailboxes: readonly Mailbox[], random: Random): Promise<string[]> {
  const moments: string[] = []
  let starting: Promise<void> = Promise.resolve()
  for (const share of shares()) {
    const appended = appendShare(mailboxes, share, random)
    moments.push(await killSometime(stage, random))
    await Promise.allSettled([starting])
    await appended
    starting = stage.service.start()
    starting.catch(() => undefined)
  }
  await starting
  return moments
}

interface Told {
  readonly messageId: string
  readonly webhookIds: Set<string>
  readonly sequences: Set<number>
}

const nameOf = ({ body }: Callback): string => String(part(body, 'message_data')['email_message_id'])

/**
 * Counts messages that arrived at least once, for each webhook; looks at every callback once, however often it is
 * asked.
 */
function distinctAt({ all }: CallbackReceiver): () => number {
  const seen = new Set<string>()
  let next = 0
  return () => {
    for (const callback of all.slice(next)) seen.add(`${String(callback.body['webhook_id'])} ${nameOf(callback)}`)
    next = all.length
    return seen.size
  }
}

/** What one webhook was told of one user, in the order of first arrivals. */
function toldTo(stage: Stage, webhookId: string, userId: string): Told[] {
  const told = new Map<string, Told>()
  for (const callback of stage.receiver.all) {
    if (callback.body['webhook_id'] !== webhookId || callback.body['user_id'] !== userId) continue
    const messageId = nameOf(callback)
    const one = told.get(messageId) ?? { messageId, webhookIds: new Set(), sequences: new Set() }
    one.webhookIds.add(String(callback.headers['webhook-id']))
    one.sequences.add(Number(callback.body['sequence']))
    told.set(messageId, one)
  }
  return [...told.values()]
}

/** All of the mailbox, in order, each under one webhook-id and one sequence number. Answers the webhook-ids. */
function assertTold(stage: Stage, { name, userId, sent }: Mailbox, webhookId: string): string[] {
  const told = toldTo(stage, webhookId, userId)
  assert.deepEqual(
    told.map(({ messageId }) => messageId),
    sent,
    `${name}: all, in order`,
  )
  const twice = told.filter(({ webhookIds, sequences }) => webhookIds.size !== 1 || sequences.size !== 1)
  assert.deepEqual(twice, [], `${name}: one webhook-id and one sequence number each`)
  const sequences = told.flatMap((one) => [...one.sequences])
  assert(
    sequences.every((sequence, index) => index === 0 || sequence > (sequences[index - 1] ?? Number.NaN)),
    `${name}: sequence goes up: ${sequences.join(' ')}`,
  )
  return told.flatMap((one) => [...one.webhookIds])
}

async function nothingWaits(stage: Stage, path: string): Promise<void> {
  assert.deepEqual(await stage.service.list(`${path}/deliveries?state=pending&limit=1`), [], path)
  assert.deepEqual(await stage.service.list(`${path}/deliveries?state=failed&limit=1`), [], path)
}

suite(`a burst and kill -9, Dovecot, ${chosenStore().kind} store`, needs('dovecot'), () => {
  test(`${kills} kills in ${total} messages: none lost, none under two webhook-ids, in order`, async (t) => {
    const seed = Number(process.env['MAILROOM_TEST_SEED'] ?? randomInt(2 ** 31))
    t.diagnostic(`MAILROOM_TEST_SEED=${seed}`)
    const random = seededRandom(seed)
    const dovecot = await startDovecot({ mailboxes: accounts * 2 })
    t.after(() => dovecot.remove())
    const stage = await openStage({ env })
    t.after(() => stage.remove())
    const { service, receiver } = stage
    const bodies = { include_body: 1, body_type: 'text/plain' }
    const created = await service.ok('POST', '/lite/webhooks', { callback_url: `${receiver.url}/all`, ...bodies })
    const everybody = String(created['webhook_id'])
    const mailboxes = await Promise.all(
      Array.from({ length: accounts }, (_, index) => openMailbox(stage, dovecot, index, everybody)),
    )

    const began = performance.now()
    const moments = await burst(stage, mailboxes, random)
    await settled(stage, distinctAt(receiver), callbacks, 60_000)
    const repeated = receiver.all.length - callbacks
    t.diagnostic(`killed at ${moments.join(', ')}; ${repeated} repetitions`)
    t.diagnostic(`all told after ${Math.round(performance.now() - began)} ms`)

    assert.equal(mailboxes.flatMap(({ sent }) => sent).length, total)
    const ids = mailboxes.flatMap((mailbox) =>
      [...mailbox.webhooks.values()].flatMap((webhookId) => assertTold(stage, mailbox, webhookId)),
    )
    assert.equal(new Set(ids).size, callbacks, 'no webhook-id for two events')
    const unanswered = moments.filter((moment) => moment.startsWith('callback')).length
    assert(repeated >= unanswered, `${unanswered} callbacks were not answered, ${repeated} repeated`)
    for (const path of new Set(mailboxes.flatMap(({ webhooks }) => [...webhooks.keys()])))
      await nothingWaits(stage, path)
    assert.doesNotMatch(service.log(), /^mailroom: /m, 'a start failed by itself')
    await Promise.all(mailboxes.map(({ client }) => client.close()))
  })
})
