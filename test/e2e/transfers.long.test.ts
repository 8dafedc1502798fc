/**
 * A message goes from one source to another on real Dovecot, and the process is killed at each step of it: the message
 * lies in one of the two mailboxes at least; the same call again ends with one copy, and all of it is told once.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { type ImapGate, type Moment, startImapGate } from '../support/imap-gate.ts'
import { mail } from '../support/mail.ts'
import { quote, type RawImap } from '../support/raw-imap.ts'
import { needs } from '../support/require.ts'
import { apiKey, apiSecret, type Json } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { userBody } from '../support/users.ts'
import { openStage, type Stage } from './stage.ts'

const from = 'anna@mail.example'
const to = 'work@mail.example'
const quick = {
  MAILROOM_FOLDER_POLL: '200ms',
  MAILROOM_FOLDER_POLL_COLD: '200ms',
  MAILROOM_GONE_HOLD: '300ms',
  MAILROOM_MESSAGE_LIMIT: String(128 * 1024 * 1024),
}

interface Step {
  readonly subject: string
  readonly command: RegExp
  readonly moment: Moment
  /** Where the message lies when the process is dead: in the first mailbox, in the other one. */
  readonly dead: readonly [number, number]
}

const steps: readonly Step[] = [
  { subject: 'read', command: /BODY\.PEEK\[\]/, moment: 'before', dead: [1, 0] },
  { subject: 'unasked', command: /APPEND/, moment: 'before', dead: [1, 0] },
  { subject: 'halfway', command: /APPEND/, moment: 'middle', dead: [1, 0] },
  { subject: 'unheard', command: /APPEND/, moment: 'after', dead: [1, 1] },
  { subject: 'kept', command: /UID STORE/, moment: 'before', dead: [1, 1] },
  { subject: 'marked', command: /UID STORE/, moment: 'after', dead: [1, 1] },
  { subject: 'left', command: /UID EXPUNGE/, moment: 'before', dead: [1, 1] },
  { subject: 'gone', command: /UID EXPUNGE/, moment: 'after', dead: [0, 1] },
]

suite(`from one source to another and kill -9, ${chosenStore().kind} store`, needs('dovecot'), () => {
  let server: Dovecot
  let gate: ImapGate
  let stage: Stage
  let boxes: readonly [RawImap, RawImap]
  let user = ''
  let labels: string[] = []
  const raws = new Map<string, string>()
  const ids = new Map<string, string>()
  const parts = new AsyncDisposableStack()

  before(async () => {
    server = await startDovecot()
    parts.defer(() => server.remove())
    gate = await startImapGate(server)
    parts.defer(() => gate.close())
    stage = await openStage({ env: quick })
    parts.defer(() => stage.remove())
    const { service, receiver } = stage
    boxes = [await server.connect(from), await server.connect(to)]
    for (const { subject } of steps) {
      const raw = mail({ to: from, subject, text: `${subject}\n`.repeat(30_000) })
      raws.set(subject, raw)
      const how = `INBOX (\\Seen) " 3-Feb-2021 04:05:06 +0000" {${raw.length}+}`
      await boxes[0].command(`APPEND ${how}\r\n${raw}`)
    }
    await boxes[1].append('Archive', [mail({ to, subject: 'old' })])
    const mailbox = { host: gate.host, port: gate.port, password: server.password }
    user = String((await service.ok('POST', '/2.0/accounts', userBody(mailbox, from)))['id'])
    await service.ok('POST', `/2.0/accounts/${user}/sources`, userBody(mailbox, to))
    labels = (await service.list(`/2.0/accounts/${user}/sources`)).map((one) => String(one['label']))
    for (const [label, count] of [
      [labels[0], steps.length],
      [labels[1], 1],
    ] as const)
      await until(`${label} in the index`, async () => (await listOf(label ?? '')).length === count, {
        withinMs: 30_000,
      })
    for (const one of await listOf(labels[0] ?? '')) ids.set(String(one['subject']), String(one['message_id']))
    const hook = { callback_url: `${receiver.url}/all`, failure_notif_url: receiver.url, receive_all_changes: 1 }
    await service.ok('POST', `/lite/users/${user}/webhooks`, hook)
  })
  after(() => parts.disposeAsync())

  const listOf = async (label: string): Promise<Json[]> => {
    const { status, body } = await stage.service.api(
      'GET',
      `/lite/users/${user}/email_accounts/${encodeURIComponent(label)}/messages?limit=100`,
    )
    return status === 200 ? (body as Json[]) : []
  }
  const onServer = async (subject: string): Promise<number[]> => {
    const counts: number[] = []
    for (const [box, folder] of [
      [boxes[0], 'INBOX'],
      [boxes[1], 'Archive'],
    ] as const) {
      await box.command(`SELECT ${quote(folder)}`)
      const found = (await box.command(`UID SEARCH SUBJECT ${quote(subject)}`)).join(' ')
      counts.push((/SEARCH([ \d]*)/.exec(found)?.[1] ?? '').trim().split(' ').filter(Boolean).length)
    }
    return counts
  }
  const move = (subject: string) =>
    stage.service.api('POST', `/2.0/accounts/${user}/messages/${ids.get(subject) ?? assert.fail(subject)}`, {
      dst_folder: 'Archive',
      dst_source: labels[1] ?? '',
      move: 1,
      flag_flagged: 1,
    })

  for (const { subject, command, moment, dead } of steps) {
    test(`killed ${moment} ${command.source}: nothing is lost, and the same call again ends it`, async () => {
      gate.hold(command, moment)
      const cut = assert.rejects(move(subject))
      await until('the moment', () => gate.held(), {
        withinMs: 20_000,
        explain: () => stage.service.log().slice(-2000),
      })
      await stage.service.kill9()
      await cut
      gate.open()
      assert.deepEqual(await onServer(subject), dead)
      await stage.service.start()
      let last: unknown
      const done = async (): Promise<boolean> => {
        const answer = await move(subject)
        last = answer.body
        return answer.status === 200
      }
      await until('the same call again', done, { withinMs: 30_000, everyMs: 200, explain: () => JSON.stringify(last) })
      assert.deepEqual(await onServer(subject), [0, 1])
    })
  }

  test('bytes, flags and time of arrival are those of the original', async () => {
    const [, box] = boxes
    await box.command('SELECT "Archive"')
    for (const [subject, raw] of raws) {
      const found = (await box.command(`UID SEARCH SUBJECT ${quote(subject)}`)).join(' ')
      const uid = /SEARCH (\d+)/.exec(found)?.[1] ?? assert.fail(found)
      const said = (await box.command(`UID FETCH ${uid} (FLAGS RFC822.SIZE INTERNALDATE)`)).join(' ')
      assert.match(said, /INTERNALDATE "[ 0]?3-Feb-2021 04:05:06 /)
      assert.match(said, /\\Seen/)
      assert.match(said, /\\Flagged/)
      assert.doesNotMatch(said, /\\Deleted/)
      assert.match(said, new RegExp(`RFC822.SIZE ${raw.length}\\b`))
    }
    const arrived = new Map((await listOf(labels[1] ?? '')).map((one) => [one['subject'], one['message_id']]))
    for (const subject of raws.keys()) {
      const there = await stage.service.file(
        `/lite/users/${user}/email_accounts/${encodeURIComponent(labels[1] ?? '')}/messages/${String(arrived.get(subject))}/raw`,
      )
      assert.equal(there.toString(), raws.get(subject))
    }
  })

  test('told once: received in the one, deleted in the other, and a callback for each', async () => {
    const arrived = new Map((await listOf(labels[1] ?? '')).map((one) => [String(one['message_id']), one['subject']]))
    const subjects = new Map([...ids].map(([subject, id]) => [id, subject]))
    const wanted = steps.flatMap(({ subject }) => [`deleted ${subject} INBOX`, `received ${subject} Archive`])
    let told: string[] = []
    const story = async (): Promise<string[]> => {
      const { changes } = await stage.service.ok('GET', `/lite/users/${user}/changes?limit=1000`)
      return (changes as Json[]).flatMap(({ event, message_id: id, folder }) => {
        const subject = subjects.get(String(id)) ?? arrived.get(String(id))
        // \Deleted before the end is a change of its own.
        return event === 'flags_changed' ? [] : [`${String(event)} ${String(subject)} ${String(folder)}`]
      })
    }
    const isReported = async (): Promise<boolean> => (told = await story()).length >= wanted.length
    await until('all of it', isReported, { withinMs: 20_000, explain: () => told.join('\n') })
    assert.deepEqual(told.sort(), wanted.sort())
    const events = () => stage.receiver.accepted().map(({ headers }) => String(headers['webhook-id']))
    await until('a callback for each', () => new Set(events()).size >= wanted.length, { withinMs: 20_000 })
  })

  test('a message of 120 MB comes in and goes on, and is never whole in memory', async () => {
    const mib = 1024 * 1024
    const upload = async (subject: string, bytes: number): Promise<string> => {
      const head = mail({ to: from, subject, text: '' })
      const line = `${'0123456789'.repeat(7)}\r\n`
      const raw = head + line.repeat(Math.floor((bytes - head.length) / line.length))
      const form = new FormData()
      form.append('dst_folder', 'Archive')
      form.append('message', new Blob([raw]), 'mail.eml')
      const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`
      const answer = await fetch(`${stage.service.url}/2.0/accounts/${user}/messages`, {
        ...{ method: 'POST', headers: { authorization }, body: form },
      })
      const text = await answer.text()
      assert.equal(answer.status, 200, text)
      return String((JSON.parse(text) as Json)['message_id'])
    }
    const send = async (id: string): Promise<Json> =>
      stage.service.ok('POST', `/2.0/accounts/${user}/messages/${id}`, {
        ...{ dst_folder: 'Archive', dst_source: labels[1] ?? '', move: 1 },
      })
    await send(await upload('small', 2 * mib))
    const before = stage.service.rssKib()
    let most = before
    const look = setInterval(() => (most = Math.max(most, stage.service.rssKib())), 20)
    try {
      await send(await upload('large', 120 * mib))
    } finally {
      clearInterval(look)
    }
    const [, box] = boxes
    await box.command('SELECT "Archive"')
    const found = (await box.command(`UID SEARCH LARGER ${119 * mib}`)).join(' ')
    assert.match(found, /SEARCH \d+/)
    // What a process of this kind takes for a while is about a third of that.
    assert(most - before < 90 * 1024, `the process grew by ${Math.round((most - before) / 1024)} MiB`)
  })
})
