/**
 * What the API writes is told once, to the change log and to webhooks, also when the process is killed in between:
 * before it hears the mail server's answer, or after the caller was answered and before the sync has seen the echo.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import type { Json } from '../support/service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook, listed } from '../support/users.ts'
import { openStage, type Stage } from './stage.ts'

const email = 'kim@mail.example'
const password = 'correct-horse'
// A write waits for the answer to IDLE, which does not come, as long as a command may take.
const quick = {
  MAILROOM_FOLDER_POLL: '200ms',
  MAILROOM_FOLDER_POLL_COLD: '200ms',
  MAILROOM_GONE_HOLD: '300ms',
  MAILROOM_COMMAND_TIMEOUT: '3s',
}

type Killed = 'unanswered' | 'unseen'

interface Write {
  readonly killed: Killed
  readonly subject: 'flagged' | 'here' | 'there'
  /** Method, and what follows the message's path. */
  readonly call: readonly [method: string, path: string]
  /** Does it on the server. */
  readonly command: RegExp
  readonly story: readonly string[]
}

const flag = (killed: Killed, method: string): Write => ({
  killed,
  subject: 'flagged',
  call: [method, '/read'],
  command: /UID STORE/,
  story: ['flags_changed flagged INBOX'],
})

const move = (killed: Killed, subject: 'here' | 'there', from: string, to: string): Write => ({
  killed,
  subject,
  call: ['PUT', `?new_folder_id=${to}`],
  command: /UID MOVE/,
  story: [`folder_added ${subject} ${to}`, `folder_removed ${subject} ${from}`],
})

const writes: readonly Write[] = [
  flag('unanswered', 'POST'),
  flag('unseen', 'DELETE'),
  move('unanswered', 'here', 'INBOX', 'Archive'),
  move('unseen', 'here', 'Archive', 'INBOX'),
  move('unanswered', 'there', 'Archive', 'INBOX'),
  move('unseen', 'there', 'INBOX', 'Archive'),
]

suite(`own writes and kill -9, ${chosenStore().kind} store`, () => {
  let server: ImapServer
  let stage: Stage
  let user = ''
  const subjects = new Map<string, string>()
  const parts = new AsyncDisposableStack()
  before(async () => {
    server = await createImapServer({ users: { [email]: { password } } })
    parts.defer(() => server.close())
    stage = await openStage({ env: quick })
    parts.defer(() => stage.remove())
    const { service, receiver } = stage
    for (const subject of ['flagged', 'here']) server.append(email, 'INBOX', mail({ to: email, subject }))
    server.append(email, 'Archive', mail({ to: email, subject: 'there' }))
    user = await createUser(service, { host: server.host, port: server.port, password }, email)
    await listed(service, user, 'here')
    await until('all of it in the index', async () => {
      const { status, body } = await service.api('GET', `${base()}/messages`)
      for (const one of status === 200 ? (body as Json[]) : [])
        subjects.set(String(one['message_id']), String(one['subject']))
      return subjects.size === 3
    })
    await createWebhook(service, user, `${receiver.url}/kim`, { receive_all_changes: 1 })
  })
  after(() => parts.disposeAsync())

  const base = (): string => `/lite/users/${user}/email_accounts/0`
  const changes = async (): Promise<Json[]> => {
    const page = await stage.service.ok('GET', `/lite/users/${user}/changes?limit=1000`)
    return page['changes'] as Json[]
  }
  const story = async (): Promise<string[]> =>
    (await changes()).map(
      (one) => `${String(one['event'])} ${subjects.get(String(one['message_id'])) ?? 'fence'} ${String(one['folder'])}`,
    )

  /** As a client does: a 503 says when to try again. Beside another node the user may just be handed over. */
  async function makeCall({ subject, call: [method, path] }: Write, signal?: AbortSignal): Promise<void> {
    const [id] = [...subjects].find(([, name]) => name === subject) ?? assert.fail(subject)
    for (;;) {
      const { status, headers, body } = await stage.service.api(method, `${base()}/messages/${id}${path}`)
      if (status === 200) return
      assert.equal(status, 503, JSON.stringify(body))
      await pause(1000 * Number(headers.get('retry-after')), undefined, { signal })
    }
  }

  /** Kills the process in the middle of the write. */
  async function cutShort(write: Write): Promise<void> {
    if (write.killed === 'unseen') {
      server.hooks = { send: (response, doing) => (doing?.name === 'IDLE' ? null : response) }
      await makeCall(write)
      await stage.service.kill9()
      return
    }
    let done = false
    server.hooks = {
      send(response, doing) {
        if (doing === null || !write.command.test(doing.name)) return response
        done ||= response.toString().startsWith(doing.tag)
        return null
      },
    }
    const killed = new AbortController()
    const unanswered = makeCall(write, killed.signal).then(
      () => assert.fail('the call was answered'),
      (error: unknown) => (killed.signal.aborted ? undefined : Promise.reject(error as Error)),
    )
    await Promise.race([until('the server has done it', () => done), unanswered])
    killed.abort()
    await stage.service.kill9()
    await unanswered
  }

  const told: string[] = []
  for (const write of writes) {
    const [method, path] = write.call
    test(`${method} ${path}, ${write.killed}: told once`, async () => {
      await cutShort(write)
      server.hooks = {}
      await stage.service.start()
      told.push(...write.story)
      await until('it is told', async () => (await changes()).length >= told.length, { withinMs: 30_000 })
      // New mail behind it: whatever there was to find has been found.
      for (const folder of ['INBOX', 'Archive']) {
        server.append(email, folder, mail({ to: email, subject: `fence ${folder} ${told.length}` }))
        told.push(`received fence ${folder}`)
      }
      await until('all is told', async () => (await changes()).length >= told.length, { withinMs: 30_000 })
      assert.deepEqual((await story()).sort(), [...told].sort())
    })
  }

  test('a callback for each change, and for none of them two', async () => {
    const ids = (): number => new Set(stage.receiver.accepted().map(({ headers }) => headers['webhook-id'])).size
    await until('all callbacks', () => ids() >= told.length, { withinMs: 30_000 })
    assert.equal(ids(), told.length)
    assert.equal((await changes()).length, told.length)
  })
})
