/**
 * All of Mailroom in this process on a real Dovecot: the real engine, the real routes with every answer checked against
 * its schema. What scripted servers cannot show: real MIME, real searches, real echoes of our own writes.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp, createServer } from '../../../api/app.ts'
import { createEngine, readConfig, silentLogger, type Engine, type FolderRecord } from '../../../engine/index.ts'
import { startDovecot, type Dovecot } from '../../support/dovecot.ts'
import { chosenStore } from '../../support/store-choice.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { basic } from '../core/raw-call.ts'
import { allRead, quickSettings } from './rig.ts'

export type Json = Record<string, unknown>

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  /** Parsed on demand. */
  json(): Json
}

export interface MessageRig {
  readonly url: string
  readonly engine: Engine
  readonly dovecot: Dovecot
  /** Path exactly as given; `auth` false = without any. Body as JSON. Any status is an answer. */
  call(method: string, path: string, options?: { readonly body?: Json; readonly auth?: boolean }): Promise<RawAnswer>
  /** GET (or another method) that must answer 200. */
  ok(path: string, method?: string, body?: Json): Promise<Json>
  /** GET that must answer an array. */
  list(path: string): Promise<Json[]>
  /** Appends mail to INBOX, makes a user of the mailbox, resolves when all of it is indexed. */
  mailbox(name: string, raws: readonly (string | Buffer)[]): Promise<Mailbox>
  close(): Promise<void>
}

export interface Mailbox {
  readonly email: string
  readonly userId: string
  readonly accountId: string
  /** '/lite/users/{id}/email_accounts/0' */
  readonly path: string
  /** Resolves when this many messages are indexed. */
  holds(count: number): Promise<void>
  /** Our id of the message with this UID in a folder. */
  idOf(uid: number, folder?: string): Promise<string>
}

export async function startMessageRig(env: Readonly<Record<string, string>> = {}): Promise<MessageRig> {
  const folder = mkdtempSync(join(tmpdir(), 'mailroom-messages-'))
  const store = chosenStore()
  const config = readConfig({ ...quickSettings, MAILROOM_DATA_DIR: folder, ...store.env, ...env })
  const dovecot = await startDovecot()
  const engine = await createEngine({ config, log: silentLogger })
  await engine.developers.ensureFirst()
  const app = createApp({ engine, checkAnswers: true })
  const server = createServer(app, config).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  engine.setBaseUrl(url)
  await engine.start()
  const client = createClient(port)
  return {
    url,
    engine,
    dovecot,
    ...client,
    mailbox: (name, raws) => createMailbox(engine, dovecot, client, `${name}@mail.example`, raws),
    async close() {
      server.closeAllConnections()
      server.close()
      await app.close()
      await engine.stop()
      await dovecot.remove()
      await store.remove()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

type Client = Pick<MessageRig, 'call' | 'ok' | 'list'>

function createClient(port: number): Client {
  const call: Client['call'] = (method, path, { body, auth = true } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>()
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      ...(auth ? { authorization: basic } : {}),
      ...(text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
    }
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const bytes = Buffer.concat(chunks)
        const json = (): Json => JSON.parse(bytes.toString('utf8')) as Json
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, json })
      })
    })
    sent.once('error', reject)
    sent.end(text)
    return promise
  }
  const ok: Client['ok'] = async (path, method = 'GET', body) => {
    const answer = await call(method, path, body === undefined ? {} : { body })
    if (answer.status === 200) return answer.json()
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.bytes.toString('utf8')}`)
  }
  return { call, ok, list: async (path) => (await ok(path)) as unknown as Json[] }
}

async function createMailbox(
  engine: Engine,
  dovecot: Dovecot,
  client: Client,
  email: string,
  raws: readonly (string | Buffer)[],
): Promise<Mailbox> {
  const imap = await dovecot.connect(email)
  for (const raw of raws) await imap.append('INBOX', [raw])
  await imap.close()
  const made = await client.ok('/lite/users', 'POST', userBody(dovecot, email))
  const userId = String(made['id'])
  const [account] = await engine.store.accounts.listByUser(userId)
  if (account === undefined) throw new Error(`no account: ${JSON.stringify(made)}`)
  const mailbox: Mailbox = {
    email,
    userId,
    accountId: account.id,
    path: `/lite/users/${userId}/email_accounts/0`,
    async holds(count) {
      // The cursor of a folder comes after its messages: until then the folder is not read to its end.
      const isRead = ({ cursor, selectable }: FolderRecord): boolean =>
        !selectable || (cursor !== null && cursor.backfillBelow <= 1)
      const full = async (): Promise<boolean> =>
        (await engine.store.messages.count(account.id)) >= count &&
        (await engine.store.folders.list(account.id)).every(isRead)
      await until(`${count} messages of ${email} in the index`, full, {
        withinMs: 60_000,
        explain: () => JSON.stringify(engine.accounts.view(account.id)),
      })
    },
    async idOf(uid, path = 'INBOX') {
      const folder = await engine.store.folders.byPath(account.id, path)
      const validity = folder?.cursor?.uidValidity ?? ''
      const [known] = await engine.store.messages.knownUids(folder?.id ?? '', validity, uid, uid)
      if (known === undefined) throw new Error(`no message with UID ${uid} in ${path}`)
      return known.messageId
    },
  }
  await mailbox.holds(raws.length)
  await allRead(engine, account.id)
  return mailbox
}
