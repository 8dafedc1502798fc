/**
 * All of Mailroom in this process: the real engine on a real store, the real routes on a free port with every answer
 * checked against its schema, and a scripted mail server. MAILROOM_TEST_STORE=mongodb takes MongoDB instead of the
 * embedded store, and MAILROOM_TEST_NODES=2 beside that two nodes.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp, createServer, type App } from '../../../api/app.ts'
import {
  createEngine,
  readConfig,
  silentLogger,
  type Config,
  type Engine,
  type EngineDeps,
  type Logger,
  type MessageRecord,
} from '../../../engine/index.ts'
import { createImapServer, type ImapServer, type UserOptions } from '../../support/imap-server/index.ts'
import { mail, type MailParts } from '../../support/mail.ts'
import { engineOver, nodeCount, nodeSettings, oneOf } from '../../support/nodes.ts'
import { chosenStore } from '../../support/store-choice.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { apiKey, apiSecret, basic, callRaw, type Answer, type CallOptions } from '../core/raw-call.ts'

export { apiKey, basic } from '../core/raw-call.ts'

export type Json = Record<string, unknown>

export interface LiteRig {
  readonly url: string
  readonly port: number
  readonly engine: Engine
  /** The engine of each node, for tests that change its parts: a call may go to any node. */
  readonly engines: readonly Engine[]
  readonly app: App
  readonly imap: ImapServer
  /** One call with Basic, the path exactly as given; a body that is an object goes as JSON. Any status is an answer. */
  call(method: string, path: string, body?: Json, options?: CallOptions): Promise<Answer>
  /** The same for calls that must answer 200: the JSON object. */
  ok(method: string, path: string, body?: Json): Promise<Json>
  /** And for those that must answer 200 with an array. */
  list(path: string): Promise<Json[]>
  /**
   * A mailbox on the mail server (password `secret`) and a user of it; `subjects` lie in INBOX before it is connected.
   */
  mailbox(name: string, options?: MailboxOptions): Promise<TestMailbox>
  close(): Promise<void>
}

export interface MailboxOptions extends UserOptions {
  readonly subjects?: readonly string[]
  /** Added to POST /lite/users. */
  readonly extra?: Json
}

export interface TestMailbox {
  readonly userId: string
  readonly email: string
  readonly label: string
  /** '/lite/users/{id}/email_accounts/{label}' */
  readonly path: string
  /** The record's id. */
  readonly accountId: string
  /** New mail in a folder, and resolves when the index has it; answers our message id. */
  deliver(parts: Partial<MailParts> & { readonly subject: string }, folder?: string): Promise<string>
  /** Raw mail, likewise. */
  deliverRaw(raw: string | Buffer, subject: string, folder?: string): Promise<string>
  /** Resolves when the index has a message with this subject; answers our message id. */
  indexed(subject: string): Promise<string>
}

export interface RigOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly log?: Logger
  /** Milliseconds since 1970, for signatures and limits of the front. */
  readonly now?: () => number
  readonly capabilities?: readonly string[]
  /** The mail server's, '/' unless told. */
  readonly delimiter?: string
  /** Where discovery looks; nowhere otherwise, so that no test ever asks the network. */
  readonly lookUps?: EngineDeps['lookUps']
  /** false = answers are not checked against their schema, where a test looks at time. */
  readonly checkAnswers?: boolean
}

const nowhere: NonNullable<EngineDeps['lookUps']> = {
  http: { get: () => Promise.resolve({ status: 404, headers: {}, body: '' }) },
  probe: () => Promise.resolve([]),
  resolver: { resolveSrv: () => Promise.resolve([]), resolveMx: () => Promise.resolve([]) },
}

/** Quick where a test would wait, without limits where a test would hit them. */
export const quickSettings = {
  MAILROOM_API_KEY: apiKey,
  MAILROOM_API_SECRET: apiSecret,
  MAILROOM_ALLOW_PRIVATE: '1',
  MAILROOM_SQLITE_SYNC: 'off',
  MAILROOM_RATE_CALLS_PER_HOUR: '0',
  MAILROOM_RATE_IMAP_PER_MINUTE: '0',
  MAILROOM_LOGINS_PER_MINUTE: '0',
  MAILROOM_FOLDER_POLL: '300ms',
  MAILROOM_BACKOFF_FIRST: '50ms',
  MAILROOM_BACKOFF_MAX: '200ms',
  MAILROOM_WEBHOOK_SCHEDULE: '50ms,100ms,200ms,400ms',
  MAILROOM_WEBHOOK_JITTER: '0',
  MAILROOM_SHUTDOWN_TIMEOUT: '3s',
}

export async function startLiteRig(options: RigOptions = {}): Promise<LiteRig> {
  const folder = mkdtempSync(join(tmpdir(), 'mailroom-lite-'))
  const store = chosenStore()
  const config = readConfig({
    ...quickSettings,
    MAILROOM_DATA_DIR: folder,
    ...store.env,
    ...nodeSettings,
    ...options.env,
  })
  const imap = await createImapServer({
    users: {},
    ...(options.capabilities === undefined ? {} : { capabilities: options.capabilities }),
    ...(options.delimiter === undefined ? {} : { delimiter: options.delimiter }),
  })
  const first = await openNode(config, options)
  const nodes: [TestNode, ...TestNode[]] = [first]
  while (nodes.length < nodeCount) nodes.push(await openNode(config, options))
  for (const { engine } of nodes) engine.setBaseUrl(first.url)
  await Promise.all(nodes.map(({ engine, app }) => engine.start(nodeCount === 1 ? undefined : app.peerCallback())))
  const engine = await engineOver([first.engine, ...nodes.slice(1).map((node) => node.engine)])
  const client = createClient(nodes)
  return {
    ...first,
    ...client,
    engine,
    engines: nodes.map((node) => node.engine),
    imap,
    mailbox: (name, mailbox = {}) => createMailbox({ engine, imap, client }, name, mailbox),
    async close() {
      await Promise.all(nodes.map((node) => node.close()))
      await imap.close()
      await store.remove()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface Front {
  readonly app: App
  readonly server: Server
  readonly port: number
  readonly url: string
}

interface TestNode extends Front {
  readonly engine: Engine
  close(): Promise<void>
}

async function openNode(config: Config, options: RigOptions): Promise<TestNode> {
  const lookUps = { ...nowhere, ...options.lookUps }
  const engine = await createEngine({ config, log: options.log ?? silentLogger, lookUps })
  await engine.developers.ensureFirst()
  const front = await startFront(engine, config, options)
  return {
    ...front,
    engine,
    async close() {
      front.server.closeAllConnections()
      front.server.close()
      await front.app.close()
      await engine.stop()
    },
  }
}

async function startFront(engine: Engine, config: Config, options: RigOptions): Promise<Front> {
  const { now, checkAnswers = true } = options
  const app = createApp({ engine, checkAnswers, ...(now === undefined ? {} : { now }) })
  const server = createServer(app, config).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { app, server, port, url: `http://127.0.0.1:${port}` }
}

type Client = Pick<LiteRig, 'call' | 'ok' | 'list'>

/** As through a load balancer: whichever node a call goes to, it names the first one's address. */
function createClient(nodes: readonly [TestNode, ...TestNode[]]): Client {
  const { host } = new URL(nodes[0].url)
  const call: Client['call'] = (method, path, body, options = {}) => {
    const given = body === undefined ? options : withJson(body, options)
    const headers = { host, ...(given.headers ?? { authorization: basic }) }
    return callRaw(oneOf(nodes).port, method, path, nodes.length === 1 ? given : { ...given, headers })
  }
  const must = async (method: string, path: string, body?: Json): Promise<unknown> => {
    const answer = await call(method, path, body)
    if (answer.status === 200) return JSON.parse(answer.text) as unknown
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`)
  }
  return {
    call,
    ok: async (method, path, body) => (await must(method, path, body)) as Json,
    list: async (path) => (await must('GET', path)) as Json[],
  }
}

function withJson(body: Json, options: CallOptions): CallOptions {
  const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`
  return {
    headers: { authorization, 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify(body),
  }
}

/** From then on a short list is the whole list. */
export async function allRead(engine: Engine, accountId: string): Promise<void> {
  const read = async () => (await engine.store.accounts.get(accountId))?.resume.initialSyncAt
  await until('all folders read', read, {
    withinMs: 60_000,
    explain: () => JSON.stringify(engine.accounts.view(accountId)),
  })
}

/** MongoDB shows a message before the rest of its batch is written; the cursor is last. */
async function isWhole({ store }: Engine, { accountId, placements }: MessageRecord): Promise<boolean> {
  const folders = new Map((await store.folders.list(accountId)).map((folder) => [folder.id, folder]))
  return placements.every(({ folderId, uid }) => {
    const folder = folders.get(folderId)
    return folder === undefined || (folder.cursor?.uidNext ?? 0) > uid
  })
}

interface MailboxDeps {
  readonly engine: Engine
  readonly imap: ImapServer
  readonly client: Client
}

async function createMailbox(
  { engine, imap, client }: MailboxDeps,
  name: string,
  options: MailboxOptions,
): Promise<TestMailbox> {
  const { subjects = [], extra = {}, ...user } = options
  const email = `${name}@mail.example`
  imap.addUser(email, user)
  for (const subject of subjects) imap.append(email, 'INBOX', mail({ to: email, subject }))
  const server = { host: imap.host, port: imap.port, password: user.password ?? 'secret' }
  const made = await client.ok('POST', '/lite/users', userBody(server, email, extra))
  if (made['success'] !== true) throw new Error(`no user for ${email}: ${JSON.stringify(made)}`)
  const userId = String(made['id'])
  const [account] = await engine.store.accounts.listByUser(userId)
  if (account === undefined) throw new Error(`no account for ${email}`)
  const indexed = (subject: string): Promise<string> =>
    until(`"${subject}" of ${email} in the index`, async () => {
      const [found] = await engine.store.messages.list(account.id, { subject }, { limit: 1, offset: 0 })
      return found && (await isWhole(engine, found)) ? found.id : null
    })
  const deliverRaw: TestMailbox['deliverRaw'] = (raw, subject, folder = 'INBOX') => {
    imap.append(email, folder, raw)
    return indexed(subject)
  }
  for (const subject of subjects) await indexed(subject)
  await allRead(engine, account.id)
  const path = `/lite/users/${userId}/email_accounts/${encodeURIComponent(account.label)}`
  return {
    userId,
    email,
    label: account.label,
    path,
    accountId: account.id,
    indexed,
    deliverRaw,
    deliver: (parts, folder) => deliverRaw(mail({ to: email, ...parts }), parts.subject, folder),
  }
}

/** Every filter of a webhook, as it is given and shown, and the text that it searches bodies for. */
export const everyFilter = {
  filter_to: 'a@b.example, *@c.example',
  filter_from: '/^boss/',
  filter_cc: 'Carl',
  filter_subject: 'report',
  filter_thread: '<one@x.example>',
  filter_file_name: '*.pdf',
  filter_folder_added: 'INBOX',
  filter_folder_removed: 'Archive/2024',
  filter_to_domain: 'b.example,c.example',
  filter_from_domain: 'd.example',
  body_search: 'invoice',
  body_type: 'text/plain',
}
