/**
 * A mailbox of very many messages behind the API, the reads of it that no index bounds, and those who wait meanwhile: a
 * health check and another developer.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import type { Answer } from '../api/core/raw-call.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'
import type { FolderRecord } from '../../engine/index.ts'
import { newId } from '../../engine/store/ids.ts'
import type { Hooks } from './imap-server/index.ts'
import { holdOf } from './loop-held.ts'
import { mail } from './mail.ts'
import { copyMessages, copyMessagesOnMongo } from './many-messages.ts'
import { chosenStore, type StoreChoice } from './store-choice.ts'
import { standstill, until } from './until.ts'
import { userBody } from './users.ts'

/** In milliseconds. */
export interface LargeRead {
  readonly tookMs: number
  /** How long it held the event loop, in processor time. */
  readonly heldMs: number
  /** The longest wait meanwhile for /healthz, and for a list of another developer. */
  readonly healthMs: number
  readonly listMs: number
}

export interface LargeMailbox {
  readonly read: (list: LargeList) => Promise<LargeRead>
  readonly close: () => Promise<void>
}

export interface LargeList {
  readonly name: string
  readonly path: (lite: string, v2: string, count: number) => string
  /** Entries of the answer; null = it is no list. */
  readonly entries: number | null
}

const list = (name: string, entries: number | null, path: LargeList['path']): LargeList => ({ name, path, entries })

export const largeLists: readonly LargeList[] = [
  list('subject= without a match', 0, (lite) => `${lite}/messages?subject=nowhere`),
  list('from and subject', 0, (lite) => `${lite}/messages?from=sender.example&subject=nowhere`),
  list('a high offset', 10, (lite, _v2, count) => `${lite}/messages?offset=${count - 9}`),
  list('a high offset of 2.0', 10, (_lite, v2, count) => `${v2}/messages?offset=${count - 9}`),
  list('a high offset in a folder', 10, (lite, _v2, count) => `${lite}/folders/INBOX/messages?offset=${count - 9}`),
  list('include_thread_size', 25, (_lite, v2) => `${v2}/messages?include_thread_size=1`),
  list('include_thread_size of a thread of half the mailbox', 10, (_lite, v2, count) => {
    return `${v2}/messages?include_thread_size=1&offset=${count - 9}`
  }),
  list('GET /2.0/accounts/{id}', null, (_lite, v2) => v2),
  list('text that all bodies hold', 25, (lite) => `${lite}/messages?body_search_string=Hello`),
  list('threads', 25, (_lite, v2) => `${v2}/threads?limit=25`),
]

/** On the store that the test runs on, or on this one. */
export async function openLargeMailbox(count: number, store = chosenStore()): Promise<LargeMailbox> {
  const parts = new AsyncDisposableStack()
  const directory = mkdtempSync(join(tmpdir(), 'mr-large-'))
  parts.defer(() => rmSync(directory, { recursive: true }))
  parts.defer(() => store.remove())
  const rig = await startLiteRig({
    env: { MAILROOM_DATA_DIR: directory, MAILROOM_FOLDER_POLL: '1h', MAILROOM_FOLDER_LIST: '1h', ...store.env },
    checkAnswers: false,
  })
  parts.defer(() => rig.close())
  const box = await rig.mailbox('large', { subjects: ['Plain'] })
  await copy(rig, box, { count, directory, store })
  const neighbour = await openNeighbour(rig)
  rig.imap.hooks = { command: searched(count + 1, (await inboxOf(rig, box)).cursor?.uidValidity ?? '') }
  return {
    async read({ name, path, entries }) {
      let [tookMs, over] = [0, false]
      const ask = async (): Promise<Answer> => {
        const began = performance.now()
        const answer = await rig.call('GET', path(box.path, `/2.0/accounts/${box.userId}`, count))
        tookMs = performance.now() - began
        over = true
        return answer
      }
      const health = () => rig.call('GET', '/healthz')
      const { value, ms } = await holdOf(() =>
        Promise.all([ask(), longestWait(health, () => over), longestWait(neighbour, () => over)]),
      )
      const [{ status, text }, healthMs, listMs] = value
      assert.equal(status, 200, `${name}: ${text}`)
      const answer = JSON.parse(text) as readonly unknown[] | { readonly nb_messages: number }
      if ('nb_messages' in answer) assert.equal(answer.nb_messages, count + 1)
      else assert.equal(answer.length, entries, name)
      return { tookMs, heldMs: ms, healthMs, listMs }
    },
    close: () => parts.disposeAsync(),
  }
}

/** A list of another developer's mailbox, of one message: each time another one, which no kept answer serves. */
async function openNeighbour({ engine, imap, call }: LiteRig): Promise<() => Promise<Answer>> {
  const [id, apiKey, secret, email] = [newId(), 'neighbour', 'neighbour-secret', 'neighbour@mail.example']
  const sealedSecret = engine.sealer.seal(secret, id)
  await engine.store.developers.create({ id, apiKey, sealedSecret, statusCallbackUrl: null, createdAt: Date.now() })
  const headers = { authorization: `Basic ${btoa(`${apiKey}:${secret}`)}` }
  imap.addUser(email, { password: secret })
  imap.append(email, 'INBOX', mail({ to: email, subject: 'Own' }))
  const made = await call('POST', '/lite/users', userBody({ ...imap, password: secret }, email), { headers })
  const path = `/lite/users/${String(made.json['id'])}/email_accounts/0/messages?date_before=`
  // Seconds since 1970 that no mail has come to.
  let before = 3_000_000_000
  const list = () => call('GET', `${path}${(before += 1)}`, undefined, { headers })
  await until('the mail of the neighbour', async () => (await list()).text.includes('"Own"'))
  return list
}

/** Asks again and again until `over`; each answer is a 200. While this process stands still nobody waits for it. */
async function longestWait(ask: () => Promise<Answer>, over: () => boolean): Promise<number> {
  const still = standstill()
  let most = 0
  do {
    const [began, lost] = [performance.now(), still.lost()]
    const { status, text } = await ask()
    assert.equal(status, 200, text)
    most = Math.max(most, performance.now() - began - (still.lost() - lost))
    await pause(10)
  } while (!over())
  still.stop()
  return most
}

/** The server of the copies: it has as many messages, UIDs 1 to `exists`, and finds each of them. */
export function searched(exists: number, uidValidity: string): NonNullable<Hooks['command']> {
  const lines = [`* ${exists} EXISTS`, `* OK [UIDVALIDITY ${uidValidity}] ok`, `* OK [UIDNEXT ${exists + 1}] ok`]
  return ({ name, text }) => {
    if (name === 'SELECT') return { lines, tagged: 'OK done' }
    if (name !== 'UID SEARCH') return undefined
    const [from = 1, to = exists] = (/ SEARCH (\d+):(\d+) /.exec(text) ?? []).slice(1).map(Number)
    const found = Array.from({ length: to - from + 1 }, (_, index) => from + index)
    return { lines: [`* SEARCH ${found.join(' ')}`], tagged: 'OK done' }
  }
}

async function inboxOf({ engine }: LiteRig, { accountId }: TestMailbox): Promise<FolderRecord> {
  const inbox = await engine.store.folders.byPath(accountId, 'INBOX')
  assert(inbox)
  return inbox
}

async function copy(
  { engine }: LiteRig,
  { accountId }: TestMailbox,
  { count, directory, store }: { readonly count: number; readonly directory: string; readonly store: StoreChoice },
): Promise<void> {
  const [message] = await engine.store.messages.list(accountId, {}, { limit: 1, offset: 0 })
  assert(message)
  const { MONGODB_URI: uri } = store.env
  if (uri !== undefined) return copyMessagesOnMongo(uri, message.id, count)
  const path = join(directory, 'mailroom.sqlite')
  copyMessages(path, message.id, count)
  // Else the store's next write would move all of it from the log into the file. After a write no read is open.
  await engine.store.accounts.edit(accountId, { paused: false })
  const database = new DatabaseSync(path)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}
