/**
 * kill -9 of the service while it appends a message, moves another, makes a backup and seals its secrets anew, all at
 * once. Afterwards each message is in one place and listed once, each backup is whole, each secret opens. On MongoDB
 * there are no backups of ours.
 */
import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { readConfig } from '../../engine/config.ts'
import { createOperators } from '../../engine/operators.ts'
import { createSealer, keyFrom, openCredential } from '../../engine/secrets/seal.ts'
import { spoolPath } from '../../engine/spool.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { apiKey, apiSecret, startService, type Json, type Service } from '../support/service.ts'
import { addAccounts, storeOf } from '../support/stopped-service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, listed } from '../support/users.ts'
import { kills } from './kills.ts'
import { basicOf } from './stranger.ts'

const email = 'ann@mail.example'
const password = 'correct-horse'
/** Keys as they are: a pass phrase would take its time at each start. */
const secrets = ['ab'.repeat(32), 'cd'.repeat(32)] as const
const others = 300

suite('kill -9 of the service', () => {
  const parts = new AsyncDisposableStack()
  const choice = chosenStore()
  const hasBackups = choice.kind === 'sqlite'
  let server: ImapServer
  let service: Service
  let user = ''
  let token = ''
  /** Their Message-IDs are their subjects; `move 3` begins in INBOX. */
  const idOf = new Map<string, string>()
  const answered = { append: new Set<string>(), move: new Set<string>() }
  /** The secret that everything is sealed with, or is about to be. */
  let sealedBy: 0 | 1 = 0

  const env = () => ({ MAILROOM_SECRET: secrets[sealedBy], MAILROOM_SECRET_OLD: secrets[sealedBy === 0 ? 1 : 0] })
  const base = (): string => `/lite/users/${user}/email_accounts/0`

  before(async () => {
    parts.defer(() => choice.remove())
    server = await createImapServer({ users: { [email]: { password } } })
    parts.defer(() => server.close())
    for (let n = 0; n <= kills; n += 1) server.append(email, 'INBOX', mail({ to: email, subject: `move ${n}` }))
    service = await startService({ env: { ...choice.env, ...env() } })
    parts.defer(() => service.remove())
    user = await createUser(service, { ...server, password }, email)
    await listed(service, user, 'move 0')
    await until('all of it', async () => (await service.list(`${base()}/messages?limit=100`)).length > kills)
    for (const one of await service.list(`${base()}/messages?limit=100`))
      idOf.set(String(one['subject']), String(one['message_id']))
    await service.stop()
    await using store = await storeOf(service, choice)
    await addAccounts(store, secrets[0], others)
    token = (await createOperators({ store, config: readConfig({}) }).createToken('test', ['keys', 'act'])).token
  })
  after(() => parts.disposeAsync())

  const subjectsOn = (folder: string): string[] =>
    server.folder(email, folder).messages.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw.toString())?.[1] ?? '')

  async function append(subject: string): Promise<void> {
    const form = new FormData()
    form.append('dst_folder', 'Archive')
    const letter = mail({ to: email, subject, text: 'words\r\n'.repeat(5_000) })
    form.append('message', new Blob([letter], { type: 'message/rfc822' }), 'mail.eml')
    const headers = { authorization: basicOf(apiKey, apiSecret) }
    const path = `${service.url}/2.0/accounts/${user}/messages`
    const answer = await fetch(path, { method: 'POST', headers, body: form })
    assert.equal(answer.status, 200, await answer.text())
    answered.append.add(subject)
  }

  async function move(subject: string): Promise<void> {
    const path = `${base()}/messages/${idOf.get(subject) ?? ''}?new_folder_id=Archive`
    await service.ok('PUT', path)
    answered.move.add(subject)
  }

  async function admin(path: string): Promise<Json> {
    const headers = { authorization: `Bearer ${token}` }
    return (await (await fetch(service.url + path, { method: 'POST', headers })).json()) as Json
  }

  async function reseal(): Promise<void> {
    while ((await admin('/admin/reseal'))['done'] !== true);
    sealedBy = sealedBy === 0 ? 1 : 0
  }

  test(`${kills} times: nothing is lost, nothing is there twice`, { timeout: 300_000 }, async () => {
    const work = (n: number): Promise<unknown>[] => [
      append(`append ${n}`),
      move(`move ${n}`),
      ...(hasBackups ? [admin('/admin/backup')] : []),
      reseal(),
    ]
    await service.start(env())
    const began = performance.now()
    await Promise.all(work(kills))
    const wholeMs = performance.now() - began
    await service.kill9()
    for (let n = 0; n < kills; n += 1) {
      await service.start(env())
      const ended = Promise.allSettled(work(n))
      await pause((wholeMs * n) / kills)
      await service.kill9()
      await ended
    }
    assert(answered.append.size > 0 && answered.append.size <= kills, `${answered.append.size} appended`)
    await service.start(env())
    const archived = subjectsOn('Archive')
    const inInbox = subjectsOn('INBOX')
    const onServer = [...archived, ...inInbox]
    assert.equal(new Set(onServer).size, onServer.length, 'nothing is twice on the server')
    assert.deepEqual(
      onServer.filter((subject) => subject.startsWith('move')).sort(),
      [...idOf.keys()].sort(),
      'none is lost on the server',
    )
    for (const subject of [...answered.append, ...answered.move]) assert(archived.includes(subject), subject)
    await until('the list is as the server', async () => {
      const shown = await service.list(`${base()}/messages?limit=100`)
      const places = (one: Json): string => (one['folders'] as string[]).join()
      const said = shown.map((one) => `${String(one['subject'])} in ${places(one)}`).sort()
      const there = [
        ...archived.map((subject) => `${subject} in Archive`),
        ...inInbox.map((subject) => `${subject} in INBOX`),
      ].sort()
      return said.join() === there.join()
    })
    for (const one of await service.list(`${base()}/messages?limit=100`)) {
      const known = idOf.get(String(one['subject']))
      if (known !== undefined) assert.equal(one['message_id'], known, 'the id stays')
    }
  })

  test('no file of an upload stays', async () => {
    await service.kill9()
    // A kill between the two steps of an upload leaves this file; no kill of the test above need have met that moment.
    writeFileSync(spoolPath(service.dataDir), '')
    await service.start(env())
    const names = readdirSync(service.dataDir)
    assert.deepEqual(
      names.filter((name) => name.startsWith('spool-')),
      [],
    )
  })

  if (hasBackups)
    test('each backup is whole', () => {
      const backups = readdirSync(join(service.dataDir, 'backups')).filter((name) => name.endsWith('.db'))
      assert(backups.length > 0)
      for (const name of backups) {
        const backup = new DatabaseSync(join(service.dataDir, 'backups', name), { readOnly: true })
        assert.equal(backup.prepare('PRAGMA quick_check').get()?.['quick_check'], 'ok', name)
        assert.equal(backup.prepare('SELECT count(*) AS n FROM accounts').get()?.['n'], others + 1, name)
        backup.close()
      }
    })

  test('each secret opens with the key that is in force', async () => {
    await reseal()
    const inForce = secrets[sealedBy === 0 ? 1 : 0]
    await service.stop()
    await using store = await storeOf(service, choice)
    const sealer = createSealer(keyFrom(inForce))
    let number = 0
    for (let after: string | null = null; ;) {
      const page: Awaited<ReturnType<typeof store.accounts.page>> = await store.accounts.page(after, 500)
      for (const account of page) {
        assert.equal(openCredential(sealer, account).kind, 'password')
        number += 1
      }
      after = page.at(-1)?.id ?? null
      if (after === null) break
    }
    assert.equal(number, others + 1)
  })
})
