/**
 * kill -9 of the service while it appends a message, moves another, makes a backup and seals its secrets anew, all at
 * once. Afterwards each message is in one place and listed once, each backup is whole, each secret opens. On MongoDB
 * there are no backups of ours. A kill counts for a work that had written something, and was not answered.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { readConfig } from '../../engine/config.ts'
import { createOperators } from '../../engine/operators.ts'
import { createSealer, keyFrom, openCredential } from '../../engine/secrets/seal.ts'
import { spoolPath } from '../../engine/spool.ts'
import { pagesOf } from '../../engine/store/keyed.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { apiKey, apiSecret, startService, type Json, type Service } from '../support/service.ts'
import { addAccounts, storeOf } from '../support/stopped-service.ts'
import { chosenStore } from '../support/store-choice.ts'
import { until } from '../support/until.ts'
import { createUser, listed } from '../support/users.ts'
import { fewKills, manyKills, roundsFor } from './kills.ts'
import { basicOf } from './stranger.ts'

const password = 'correct-horse'
/** Each account does one command of its callers at a time: messages are moved in one, and appended to the other. */
const emails = { move: 'ann@mail.example', append: 'bob@mail.example' } as const
/** Keys as they are: a pass phrase would take its time at each start. */
const secrets = ['ab'.repeat(32), 'cd'.repeat(32)] as const
const others = 300

type Work = 'append' | 'move' | 'reseal' | 'backup'

/** Commands that the mail server has done, and answers when it is told to. */
function createGate() {
  const [written, answered] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
  return {
    written: written.promise,
    answer: (): void => answered.resolve(undefined),
    hold: async (response: Buffer): Promise<Buffer> => {
      written.resolve(undefined)
      await answered.promise
      return response
    },
  }
}

/** The share of each work's time at which the kill comes: as many shares as kills, for each work in another order. */
function sharesOf(round: number, kills: number): Record<Work, number> {
  const share = (step: number): number => (((round * step) % kills) + 0.5) / kills
  return { append: share(1), move: share(7), reseal: share(11), backup: share(13) }
}

suite('kill -9 of the service', () => {
  const parts = new AsyncDisposableStack()
  const choice = chosenStore()
  const hasBackups = choice.kind === 'sqlite'
  const kills = choice.kind === 'sqlite' ? manyKills : fewKills
  const mostRounds = roundsFor(kills)
  let client: MongoClient | null = null
  const works: readonly Work[] = ['append', 'move', 'reseal', ...(hasBackups ? (['backup'] as const) : [])]
  let server: ImapServer
  let service: Service
  const users = { move: '', append: '' }
  let token = ''
  /** Their Message-IDs are their subjects; `move 3` begins in INBOX. */
  const idOf = new Map<string, string>()
  const answered = { append: new Set<string>(), move: new Set<string>() }
  /** The key that the service seals with, and the number of email accounts that it seals: at most a half at a start. */
  let sealedBy: 0 | 1 = 0
  let sealed = others + 2

  const env = () => ({ MAILROOM_SECRET: secrets[sealedBy], MAILROOM_SECRET_OLD: secrets[sealedBy === 0 ? 1 : 0] })
  const base = (which: keyof typeof users): string => `/lite/users/${users[which]}/email_accounts/0`
  const messagesOf = (which: keyof typeof users): Promise<Json[]> => service.list(`${base(which)}/messages?limit=100`)

  before(async () => {
    parts.defer(() => choice.remove())
    if (choice.env.MONGODB_URI !== undefined) client = await MongoClient.connect(choice.env.MONGODB_URI)
    parts.defer(() => client?.close())
    server = await createImapServer({ users: { [emails.move]: { password }, [emails.append]: { password } } })
    parts.defer(() => server.close())
    for (let n = 0; n <= mostRounds; n += 1)
      server.append(emails.move, 'INBOX', mail({ to: emails.move, subject: `move ${n}` }))
    server.append(emails.append, 'INBOX', mail({ to: emails.append, subject: 'first' }))
    service = await startService({ env: { ...choice.env, ...env() } })
    parts.defer(() => service.remove())
    for (const which of ['append', 'move'] as const)
      users[which] = await createUser(service, { ...server, password }, emails[which])
    await listed(service, users.append, 'first')
    await until('all of it', async () => (await messagesOf('move')).length > mostRounds)
    for (const one of await messagesOf('move')) idOf.set(String(one['subject']), String(one['message_id']))
    await service.stop()
    await using store = await storeOf(service, choice)
    await addAccounts(store, secrets[0], others)
    token = (await createOperators({ store, config: readConfig({}) }).createToken('test', ['keys', 'act'])).token
    turnKeys()
  })
  after(() => parts.disposeAsync())

  const subjectsOn = (email: string, folder: string): string[] =>
    server.folder(email, folder).messages.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw.toString())?.[1] ?? '')

  async function append(subject: string): Promise<void> {
    const form = new FormData()
    form.append('dst_folder', 'Archive')
    const letter = mail({ to: emails.append, subject, text: 'words\r\n'.repeat(5_000) })
    form.append('message', new Blob([letter], { type: 'message/rfc822' }), 'mail.eml')
    const headers = { authorization: basicOf(apiKey, apiSecret) }
    const path = `${service.url}/2.0/accounts/${users.append}/messages`
    const answer = await fetch(path, { method: 'POST', headers, body: form })
    assert.equal(answer.status, 200, await answer.text())
    answered.append.add(subject)
  }

  async function move(subject: string): Promise<void> {
    await service.ok('PUT', `${base('move')}/messages/${idOf.get(subject) ?? ''}?new_folder_id=Archive`)
    answered.move.add(subject)
  }

  async function admin(path: string): Promise<Json> {
    const answer = await fetch(service.url + path, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
    assert.equal(answer.status, 200, await answer.clone().text())
    return (await answer.json()) as Json
  }

  async function reseal(): Promise<void> {
    while ((await admin('/admin/reseal'))['done'] !== true);
  }

  /** The next start has at least a half of the email accounts to seal. */
  function turnKeys(): void {
    if (sealed <= (others + 2) / 2) return
    sealedBy = sealedBy === 0 ? 1 : 0
    sealed = others + 2 - sealed
  }

  /** Email accounts that the key in force seals. */
  async function countSealed(): Promise<number> {
    const prefix = `v2.${createSealer(keyFrom(secrets[sealedBy])).keyId}.`
    if (client !== null) {
      const ofKey = { sealedCredential: { $gte: prefix, $lt: `${prefix}~` } }
      return client.db().collection('accounts').countDocuments(ofKey)
    }
    using database = new DatabaseSync(join(service.dataDir, 'mailroom.sqlite'), { readOnly: true })
    const count = database.prepare(
      `SELECT count(*) AS n FROM accounts WHERE doc ->> '$.sealedCredential' LIKE ? || '%'`,
    )
    return Number(count.get(prefix)?.['n'])
  }

  /** The names of whole backups and of others, without their endings. */
  function backups(): string[] {
    const directory = join(service.dataDir, 'backups')
    const names = existsSync(directory) ? readdirSync(directory) : []
    return [...new Set(names.map((name) => name.replace(/\.db.*$/, '')))]
  }

  /**
   * Begins to append and to move: the mail server does both, and its answers wait. Returns the ways to wait for the
   * first write of each work, and to have it answered. A backup is quick: they follow each other until the kill.
   */
  function begin(n: number) {
    const gates = { append: createGate(), move: createGate() }
    const commands = new Map([
      ['APPEND', gates.append],
      ['UID MOVE', gates.move],
    ])
    server.hooks = { send: (response, call) => commands.get(call?.name ?? '')?.hold(response) ?? response }
    const calls = { append: append(`append ${n}`), move: move(`move ${n}`) }
    const there = new Set(backups())
    let made = 0
    const isBackupUnderWay = (): boolean => backups().filter((name) => !there.has(name)).length > made
    const written: Record<Work, () => Promise<unknown>> = {
      append: () => gates.append.written,
      move: () => gates.move.written,
      reseal: () => until('a sealed value', async () => (await countSealed()) > sealed, { everyMs: 1 }),
      backup: () => until('the file of a backup', isBackupUnderWay, { everyMs: 1 }),
    }
    const answers: Record<Work, () => Promise<unknown>> = {
      append: () => (gates.append.answer(), calls.append),
      move: () => (gates.move.answer(), calls.move),
      reseal,
      async backup() {
        for (; ; made += 1) await admin('/admin/backup')
      },
    }
    return { written, answers, isBackupUnderWay, failed: Promise.all(Object.values(calls)) }
  }

  /** From the first write of a work to its answer; reseal: of all accounts. And how long the first write takes. */
  const tookMs: Record<Work, number> = { append: 50, move: 100, reseal: 500, backup: 50 }
  const writtenMs: Record<Work, number> = { append: 0, move: 0, reseal: 0, backup: 0 }

  /**
   * Starts the service and kills it when each work has had its share of the time between its first write and its
   * answer. Returns the works that the kill met under way: they had written something, and were not answered.
   */
  async function round(n: number): Promise<Work[]> {
    const shares = sharesOf(n, kills)
    await service.start(env())
    const { written, answers, isBackupUnderWay, failed } = begin(n)
    await Promise.race([Promise.all([written.append(), written.move()]), failed])
    const left = 1 - sealed / (others + 2)
    const age = (work: Work): number => shares[work] * tookMs[work] * (work === 'reseal' ? left : 1)
    const lead = (work: Work): number => age(work) + writtenMs[work]
    const longest = Math.max(...works.map(lead))
    const begun: Promise<unknown>[] = []
    const ends = works.map(async (work) => {
      await pause(longest - lead(work))
      const went = performance.now()
      const answer = answers[work]()
      const first = written[work]().then(() => (writtenMs[work] = performance.now() - went))
      begun.push(first)
      await answer
      await first
      const ms = performance.now() - went - writtenMs[work]
      tookMs[work] = work === 'reseal' ? ms / left : ms
    })
    const settled = Promise.allSettled(ends)
    await pause(longest)
    await Promise.all(begun)
    const sealedNow = await countSealed()
    await service.kill9()
    const results = await settled
    server.hooks = {}
    sealed = sealedNow
    turnKeys()
    return works.filter((work, index) => {
      const result = results[index]
      if (result?.status !== 'rejected') return false
      if (!(result.reason instanceof TypeError)) throw result.reason
      // The work may take longer by now.
      if (shares[work] > 0.8) tookMs[work] *= 1.2
      return work !== 'backup' || isBackupUnderWay()
    })
  }

  test(`${kills} times: nothing is lost, nothing is there twice`, { timeout: 600_000 }, async () => {
    const met = { append: 0, move: 0, reseal: 0, backup: 0 }
    for (let n = 0; works.some((work) => met[work] < kills); n += 1) {
      assert(n < mostRounds, `${kills} kills of each under way wanted: ${JSON.stringify(met)} made`)
      for (const work of await round(n)) met[work] += 1
    }
    await service.start(env())
    const all: string[] = []
    for (const which of ['append', 'move'] as const) {
      const places = ['Archive', 'INBOX'].map((folder) => [folder, subjectsOn(emails[which], folder)] as const)
      const onServer = places.flatMap(([, subjects]) => subjects)
      assert.equal(new Set(onServer).size, onServer.length, 'nothing is twice on the server')
      for (const subject of answered[which]) assert(subjectsOn(emails[which], 'Archive').includes(subject), subject)
      const there = places.flatMap(([folder, subjects]) => subjects.map((subject) => `${subject} in ${folder}`)).sort()
      await until('the list is as the server', async () => {
        const place = (one: Json): string => `${String(one['subject'])} in ${(one['folders'] as string[]).join()}`
        const shown = (await messagesOf(which)).map(place).sort()
        return shown.join() === there.join()
      })
      all.push(...onServer)
    }
    assert.deepEqual(
      all.filter((subject) => subject.startsWith('move')).sort(),
      [...idOf.keys()].sort(),
      'none is lost',
    )
    for (const one of await messagesOf('move'))
      assert.equal(one['message_id'], idOf.get(String(one['subject'])), 'the id stays')
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
      const directory = join(service.dataDir, 'backups')
      const whole = readdirSync(directory).filter((name) => name.endsWith('.db'))
      assert(whole.length > 0)
      for (const name of whole) {
        const backup = new DatabaseSync(join(directory, name), { readOnly: true })
        assert.equal(backup.prepare('PRAGMA quick_check').get()?.['quick_check'], 'ok', name)
        assert.equal(backup.prepare('SELECT count(*) AS n FROM accounts').get()?.['n'], others + 2, name)
        backup.close()
      }
    })

  test('each secret opens with the key that is in force', async () => {
    await reseal()
    const inForce = secrets[sealedBy]
    await service.stop()
    await using store = await storeOf(service, choice)
    const accounts = (await Array.fromAsync(pagesOf((after, limit) => store.accounts.page(after, limit)))).flat()
    const sealer = createSealer(keyFrom(inForce))
    for (const account of accounts) assert.equal(openCredential(sealer, account).kind, 'password')
    assert.equal(accounts.length, others + 2)
  })
})
