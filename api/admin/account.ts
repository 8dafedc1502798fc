/** One email account in the admin API: its state in full and in words, its live events, and the actions on it. */
import { Readable } from 'node:stream'
import { z } from 'zod'
import {
  type AccountNews,
  type AccountRecord,
  connectUrl,
  type Engine,
  explainAccount,
  folderName,
  namesOf,
  type FolderRecord,
  notFound,
  progressOf,
  progressWords,
  quarantineOf,
  shownCounts,
  reconnectToken,
  utc,
  type WireLine,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { address, answer, exampleOf, time, view } from '../examples.ts'
import { eventStreamHeaders, StreamAnswer } from '../route.ts'
import { filledText } from '../values.ts'
import { accountFields, accountRow, type AccountRow, findAccount, presentAccount } from './accounts.ts'
import { adminRoute, count, presentActor, stepView, wayFields } from './shared.ts'

export const explanationView = answer({
  why: [z.string(), 'The connection to imap.example.com was closed (network), for the third time in a row.'],
  since: [z.int(), time],
  next: [z.string(), 'It connects again at 22:14:00 UTC.'],
  would_change: [
    z.array(z.string()),
    ['The mail server answers again.', 'Reconnect tries at once (mailroom reconnect 7c9e6679f81d4b1c8a2e3d4f).'],
  ],
  quarantined: [
    z.array(
      answer({
        folder: [z.string(), 'INBOX'],
        uid: [z.int(), 4711],
        reason: [z.string(), 'NO [SERVERBUG] System Error', 'what the mail server said'],
        next_try: [z.int(), time, 'read-anew of the folder tries at once'],
      }),
    ),
    [],
    'messages that the mail server does not give and the index therefore lacks; the first 200',
  ],
})

const lineView = answer({
  at: [z.number(), time],
  connection: [z.int().nullable(), 3, 'of this account, counted since the start; null = a step of its actor'],
  line: [z.string(), '> A3 NOOP'],
})
export type LineRow = z.input<typeof lineView>
const presentLine = (line: WireLine): LineRow => ({ ...line, at: line.at / 1000 })

const accountView = view('AdminAccountDetail', {
  ...accountFields,
  developer_name: [z.string().nullable(), 'Example'],
  user_name: [z.string().nullable(), 'Anna Example', 'name or address'],
  port: [z.int().min(1).max(65_535), 993],
  use_ssl: [z.boolean(), true],
  username: [z.string(), address],
  auth_type: [z.enum(['password', 'oauth2']), 'password'],
  created: [z.int(), time],
  last_connected: [z.int().nullable(), time],
  paused: [z.boolean(), false, 'by an operator, until it is resumed'],
  tags: [z.array(z.string()), ['ok', 'waiting']],
  active: [
    z.array(z.string()),
    ['running.life.waiting.backoff', 'running.status.ok'],
    'the states of its chart that are active, as paths',
  ],
  ...wayFields,
  explain: explanationView,
  steps: [z.array(stepView), [], 'the last 100, oldest first'],
  wire: [z.array(lineView), [exampleOf(lineView)], 'the last 200 lines, secrets and content masked'],
  frozen: [
    answer({
      at: [z.int(), time],
      failure: [z.string(), 'network'],
      connection: [z.int().nullable(), 3, 'the one that failed'],
      lines: [z.array(lineView), [exampleOf(lineView)]],
    }).nullable(),
    null,
    'the last failure: the lines of its connection, and the steps since that was opened',
  ],
  folders: [
    z.array(
      answer({
        name: [z.string(), 'INBOX'],
        messages: [count, 120],
        indexed: [count, 120],
        unseen: [count, 3],
        complete: [z.boolean(), true, 'its older mail is read'],
      }),
    ),
    [],
  ],
  reading: [
    answer({
      messages: [count, 5000, 'of all folders on the mail server'],
      indexed: [count, 1200],
      per_second: [z.number().min(0).nullable(), 950, 'null = none was read in the last minute'],
      seconds_left: [count.nullable(), 4],
    }).nullable(),
    null,
    'how far the older mail is read; null = to its end',
  ],
  queues: [z.array(answer({ name: [z.string(), 'commands'], waiting: [count, 0], running: [count, 1] })), []],
})
export type AccountDetail = z.input<typeof accountView>

export async function accountDetail(engine: Engine, id: string): Promise<AccountDetail> {
  const account = await findAccount(engine, id)
  const seen = engine.accounts.view(id)
  const wire = engine.accounts.wire(id)
  const frozen = wire?.frozen() ?? null
  const folders = await engine.store.folders.list(id)
  const name = await namesOf(engine.store, { developers: [account.developerId], users: [account.userId] })
  const { port, useSsl, username, authType, createdAt, resume, paused } = account
  return {
    ...presentAccount(account, seen),
    ...{ port, username, paused },
    developer_name: name(account.developerId),
    user_name: name(account.userId),
    use_ssl: useSsl,
    auth_type: authType,
    created: seconds(createdAt),
    last_connected: secondsOrNull(resume.lastConnectedAt),
    ...presentActor(seen),
    active: [...(seen?.active ?? [])],
    explain: await presentExplanation(engine, account, folders),
    wire: (wire?.lines() ?? []).map(presentLine),
    frozen: frozen && { ...frozen, at: seconds(frozen.at), lines: frozen.lines.map(presentLine) },
    folders: folders.map(presentFolder),
    reading: presentReading(readingOf(engine, account, folders)),
    queues: engine.accounts.queues(id),
  }
}

/** null = all older mail is read. */
function readingOf({ accounts }: Engine, { id, completeAt }: AccountRecord, folders: readonly FolderRecord[]) {
  return typeof completeAt === 'number' ? null : progressOf(folders, accounts.pace(id))
}

function presentReading(progress: ReturnType<typeof readingOf>): AccountDetail['reading'] {
  if (progress === null) return null
  const { read: indexed, total: messages, perSecond, secondsLeft } = progress
  return { messages, indexed, per_second: perSecond, seconds_left: secondsLeft }
}

function presentFolder(folder: FolderRecord): AccountDetail['folders'][number] {
  const complete = !folder.selectable || folder.completeAt !== null
  return { name: folderName(folder), indexed: folder.counts.messages, ...shownCounts(folder), complete }
}

/** A regular comment line lets both ends notice a lost connection. */
const beatMs = 15_000
/** A client with more unread bytes is disconnected. */
const mostWaiting = 262_144

/** An endless stream. Its events are `step`, a step of the account's actor, and `line`, a line of its connections. */
function accountEvents({ accounts }: Engine, id: string, signal: AbortSignal): StreamAnswer {
  const events = new Readable({ read: () => undefined, highWaterMark: mostWaiting })
  const send = (text: string): void => {
    if (!events.destroyed && !events.push(text)) events.destroy()
  }
  const leave = accounts.listen(id, (news) => send(eventOf(news)))
  const beat = setInterval(() => send(':\n\n'), beatMs).unref()
  signal.addEventListener('abort', () => events.destroy(), { once: true })
  events.once('close', () => {
    leave()
    clearInterval(beat)
  })
  send(':\n\n')
  return new StreamAnswer(events, eventStreamHeaders)
}

function eventOf(news: AccountNews): string {
  const [name, data] =
    'line' in news ? ['line', presentLine(news.line)] : ['step', { ...news.step, at: news.step.at / 1000 }]
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** The event that ends a failure, by the failure's class. */
const remedies: Readonly<Record<string, string>> = {
  auth_rejected: 'The user gives another password, or edits the one at the mail server back.',
  auth_unavailable: 'The login service of the mail server, or of the provider, works again.',
  consent_lost: 'The user gives the consent at the provider again.',
  permission: 'The mail server allows this login again: IMAP may be switched off for the mailbox.',
  throttled: 'The time that the mail server asked for is over.',
  connection_limit: 'Other programs close connections to this mailbox, or the mail server allows more.',
  network: 'The mail server can be reached again.',
  tls: 'The mail server shows a valid certificate, or the settings of the account name another host or port.',
  protocol: 'The mail server answers as IMAP asks for.',
}

async function presentExplanation(
  engine: Engine,
  account: AccountRecord,
  folders: readonly FolderRecord[],
): Promise<z.input<typeof explanationView>> {
  const { why, since, next, state, failure } = explainAccount(engine, account)
  const by = state === 'paused' ? await pausedBy(engine, account.id) : null
  const reading = readingOf(engine, account, folders)
  const words = by === null ? why : `${why} It was paused by ${by}.`
  const ahead = reading === null || reading.total === 0 ? next : `${next} Its older mail: ${progressWords(reading)}.`
  const quarantined = quarantineOf(engine.config, folders).map(({ nextTryAt, ...message }) => ({
    ...message,
    next_try: seconds(Math.max(nextTryAt, Date.now())),
  }))
  return {
    why: words,
    since: seconds(since),
    next: ahead,
    would_change: changesOf(account, state, failure),
    quarantined,
  }
}

/** The operator who paused the account, when it is among the last 50 actions on the account. */
async function pausedBy({ store }: Engine, id: string): Promise<string | null> {
  const actions = await store.audit.list([id], { limit: 50, offset: 0 })
  const last = actions.find(({ action, status }) => action === 'accounts pause' && status < 400)
  return last === undefined ? null : `${last.by} ${last.actorName} from ${last.address} at ${utc(last.at)}`
}

function changesOf({ id, status }: AccountRecord, state: string, failure: string | null): string[] {
  const way = (command: string): string => `(mailroom ${command} ${id})`
  if (state === 'paused') return [`Resume connects it again ${way('resume')}.`]
  const remedy = failure === null ? undefined : remedies[failure]
  const now = ['waiting', 'disabled'].includes(state) ? [`Reconnect tries at once ${way('reconnect')}.`] : []
  const link = status === 'DISABLED' ? [`Its user logs in again by a reconnect link ${way('link')}.`] : []
  const check = failure === null ? [] : [`Check status tries a login beside it ${way('check')}.`]
  return [...(remedy === undefined ? [] : [remedy]), ...now, ...check, ...link]
}

export const checkView = answer({
  success: [z.boolean(), true],
  failure: [z.string().nullable(), null, 'class of the failure; null = the login went well'],
  message: [z.string().nullable(), null],
  account: accountRow,
})

async function rowOf(engine: Engine, id: string): Promise<AccountRow> {
  return presentAccount(await findAccount(engine, id), engine.accounts.view(id))
}

/** Compares a whole folder with the mail server. `name`: the folder's name in the API, or its path on the server. */
export async function readFolderAnew(engine: Engine, id: string, name: string): Promise<void> {
  await findAccount(engine, id)
  const folders = await engine.store.folders.list(id)
  const folder = folders.find((one) => folderName(one) === name) ?? folders.find(({ path }) => path === name)
  if (folder === undefined) throw notFound('folder', name)
  await engine.accounts.readAnew(id, folder.path)
}

const linkView = answer({
  url: [z.string(), 'https://mail.example.com/connect/k3v9x1m7q2w8e5r4'],
  expires: [z.int(), time],
})

/** A link to the connect wizard, where the user of the account gives the password or the consent again. */
export async function reconnectLink({ store, baseUrl }: Engine, account: AccountRecord) {
  const made = reconnectToken(account, Date.now())
  await store.tokens.create(made)
  return { url: connectUrl(baseUrl(), made.token), expires: seconds(made.expiresAt) }
}

/** The route of an action whose name is that of the engine's method. */
const acting = (name: 'reconnect' | 'pause' | 'resume', summary: string, errors: number[] = []) =>
  adminRoute(`POST /admin/accounts/{id}/${name}`, {
    ...{ scope: 'act', summary, errors, response: accountRow },
    handler: ({ path: { id } }, { engine }) => engine.accounts[name](id).then(() => rowOf(engine, id)),
  })

export const accountRoutes = [
  adminRoute('GET /admin/accounts/{id}', {
    summary: 'Get an email account: states, steps, the last lines of its connections, folders, queues',
    response: accountView,
    handler: ({ path }, { engine }) => accountDetail(engine, path.id),
  }),
  adminRoute('GET /admin/accounts/{id}/explain', {
    summary: 'Why an email account is in its state, since when, and what would change it',
    response: explanationView,
    handler: async ({ path: { id } }, { engine }) =>
      presentExplanation(engine, await findAccount(engine, id), await engine.store.folders.list(id)),
  }),
  adminRoute('GET /admin/accounts/{id}/events', {
    summary: 'Watch an email account: each step and each line of its connections, as server-sent events',
    description: '`step` and `line` are as in GET /admin/accounts/{id}. It does not end by itself.',
    response: 'events',
    async handler({ path }, { engine, signal }) {
      await findAccount(engine, path.id)
      return accountEvents(engine, path.id, signal)
    },
  }),
  acting('reconnect', 'Give up the session and the wait of an email account, and connect now', [409]),
  acting('pause', 'Close the connections of an email account until it is resumed, over restarts too'),
  acting('resume', 'End the pause of an email account'),
  adminRoute('POST /admin/accounts/{id}/check', {
    scope: 'act',
    summary: 'Try the login of an email account now, beside its own; a rejection makes it DISABLED',
    response: checkView,
    async handler({ path: { id } }, { engine }) {
      const { failure } = await engine.accounts.checkNow(id)
      const outcome = { failure: failure?.failure ?? null, message: failure?.message ?? null }
      return { success: failure === null, ...outcome, account: await rowOf(engine, id) }
    },
  }),
  adminRoute('POST /admin/accounts/{id}/link', {
    scope: 'act',
    summary: 'Make a link by which the user of an email account logs in again; good for 24 hours, and once',
    response: linkView,
    handler: async ({ path: { id } }, { engine }) => reconnectLink(engine, await findAccount(engine, id)),
  }),
  adminRoute('POST /admin/accounts/{id}/read-anew', {
    ...{ scope: 'act', response: accountRow },
    summary: 'Compare a folder with the mail server from end to end, and read what is missing',
    body: z.object({ folder: filledText.meta({ description: 'name of the folder', examples: ['INBOX'] }) }),
    handler: ({ path: { id }, body }, { engine }) =>
      readFolderAnew(engine, id, body.folder).then(() => rowOf(engine, id)),
  }),
]
