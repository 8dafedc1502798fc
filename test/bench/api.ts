/**
 * The API under load: lists and single messages from the index, at concurrency 1 and 16, beside the same list asked of
 * the mail server by live FETCH, and bodies and attachments beside bare imapflow downloads; and the same lists by 2.0.
 * One service process, a real Dovecot. And what is asked of one mailbox of 200,000 messages (`--rows`).
 */
import { ImapFlow } from 'imapflow'
import { bigAttachment, corpusMessage } from '../support/corpus/index.ts'
import type { Json } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startBareHttp } from './lib/bare-http.ts'
import { startFleet, type Fleet } from './lib/fleet.ts'
import { httpLoad, workLoad, type Load } from './lib/load.ts'
import { largeReads, type NamedRead } from './large-lists.ts'
import { type StoreReads, storeReadChecks, storeReads } from './store-reads.ts'
import type { BenchOptions } from './lib/options.ts'
import { inParallel } from './lib/parallel.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round } from './lib/statistics.ts'

const goals = {
  list: 2500,
  message: 4000,
  overFetch: 8,
  overDownload: 2,
  v2: 1.3,
  heldMs: 50,
  healthMs: 250,
  listMs: 1000,
}
const attachmentBytes = 5 * 1024 * 1024

export async function api(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 100
  const mailPerAccount = options.count ?? 200
  const seconds = options.seconds ?? 8
  header('api', { store: options.store, accounts, mailPerAccount, seconds })
  const fleet = await startFleet({
    accounts,
    store: options.store,
    mailPerAccount,
    env: { MAILROOM_FOLDER_POLL: '5m' },
  })
  let loads: Load[] = []
  let rssMib = 0
  try {
    if (fleet.dovecot.warning !== null) say(`warning: ${fleet.dovecot.warning}`)
    await fleet.connect()
    await inParallel(fleet.users, 8, (id) =>
      until(`all mail of ${id}`, () => holds(fleet, id, mailPerAccount), { withinMs: 600_000, everyMs: 200 }),
    )
    loads = [
      ...(await indexLoads(fleet, seconds)),
      ...(await v2Loads(fleet, seconds)),
      ...(await contentLoads(fleet, seconds)),
    ]
    rssMib = round(fleet.service.rssKib() / 1024)
  } finally {
    await fleet.remove()
  }
  const large = await largeReads(options)
  const reads = options.store === 'mongodb' ? await storeReads() : null
  return report(options, { accounts, mailPerAccount, seconds, rssMib }, loads, large, reads)
}

const inbox = (user: string): string => `/lite/users/${user}/email_accounts/0/folders/INBOX/messages`

async function holds(fleet: Fleet, user: string, count: number): Promise<boolean> {
  return (await fleet.service.list(`${inbox(user)}?limit=1&offset=${count - 1}`)).length > 0
}

/** The list of 25 and the single message from the index, and the list by FETCH. */
async function indexLoads(fleet: Fleet, seconds: number): Promise<Load[]> {
  const { service } = fleet
  const lists = fleet.users.map(inbox)
  const flagged = lists.map((path) => `${path}?include_flags=1`)
  const pages = fleet.users.flatMap((user) => [0, 25, 50, 75, 100].map((offset) => `${inbox(user)}?offset=${offset}`))
  const ids = await inParallel(fleet.users, 8, async (user) => {
    const found = await fleet.service.list(`${inbox(user)}?limit=100`)
    return found.map((message) => `/lite/users/${user}/email_accounts/0/messages/${String(message['message_id'])}`)
  })
  const messages = ids.flat().filter((_, index) => index % 5 === 0)
  await httpLoad('warm', service, lists, 4, 2)
  const list = await httpLoad('list of 25', service, lists, 16, seconds)
  return [
    await httpLoad('list of 25', service, lists, 1, seconds),
    list,
    await bareHttpLoad(list.bytes, seconds),
    await httpLoad('list of 25, with flags', service, flagged, 16, seconds),
    await httpLoad('list of 25, five pages', service, pages, 16, seconds),
    await httpLoad('one message', service, messages, 1, seconds),
    await httpLoad('one message', service, messages, 16, seconds),
    await fetchLoad(fleet, 1, seconds),
    await fetchLoad(fleet, 16, seconds),
  ]
}

/** By lite, then the same by 2.0. */
const twins = ['users', 'messages of a source', 'messages of a folder', 'folders'] as const
const byV2 = (name: string): string => `${name}, 2.0`

async function v2Loads({ service, users }: Fleet, seconds: number): Promise<Load[]> {
  const pathsOf = (user: string): Record<(typeof twins)[number], readonly [lite: string, v2: string]> => {
    const [lite, v2] = [`/lite/users/${user}/email_accounts/0`, `/2.0/accounts/${user}`]
    return {
      users: ['/lite/users?limit=25', '/2.0/accounts?limit=25'],
      'messages of a source': [`${lite}/messages`, `${v2}/messages`],
      'messages of a folder': [inbox(user), `${v2}/sources/0/folders/INBOX/messages`],
      folders: [`${lite}/folders`, `${v2}/sources/0/folders?include_extended_counts=1`],
    }
  }
  const loads: Load[] = []
  for (const twin of twins) {
    const paths = users.map((user) => pathsOf(user)[twin])
    const [lite, v2] = [paths.map(([path]) => path), paths.map(([, path]) => path)]
    loads.push(await httpLoad(twin, service, lite, 16, seconds), await httpLoad(byV2(twin), service, v2, 16, seconds))
  }
  return loads
}

/** The same number of bytes from a server that does nothing for them: how fast this machine is today. */
async function bareHttpLoad(bytes: number, seconds: number): Promise<Load> {
  const peer = await startBareHttp(bytes)
  try {
    return await httpLoad('bare HTTP', peer, ['/'], 16, seconds)
  } finally {
    peer.close()
  }
}

async function openBare(fleet: Fleet, mailbox: string): Promise<ImapFlow> {
  const { host, port, password } = fleet.dovecot
  const client = new ImapFlow({
    host,
    port,
    secure: false,
    auth: { user: mailbox, pass: password },
    logger: false,
    disableAutoIdle: true,
  })
  await client.connect()
  await client.mailboxOpen('INBOX', { readOnly: true })
  return client
}

/** The same 25 messages asked of the server, over connections that are open and in the folder already. */
async function fetchLoad(fleet: Fleet, width: number, seconds: number): Promise<Load> {
  const clients = await inParallel(fleet.mailboxes.slice(0, width), 8, (mailbox) => openBare(fleet, mailbox))
  const list = (client: ImapFlow) => async (): Promise<number> => {
    const last = client.mailbox === false ? 0 : client.mailbox.exists
    const wanted = {
      uid: true,
      flags: true,
      envelope: true,
      bodyStructure: true,
      internalDate: true,
      size: true,
      headers: ['references', 'received', 'list-id'],
    }
    const found = await client.fetchAll(`${Math.max(1, last - 24)}:*`, wanted)
    return JSON.stringify(found.map(({ envelope, bodyStructure, uid }) => ({ envelope, bodyStructure, uid }))).length
  }
  const load = await workLoad('list of 25 by FETCH', clients.map(list), seconds)
  for (const client of clients) client.close()
  return load
}

/** A body and an attachment, one at a time and from several accounts, beside the same by a bare client. */
async function contentLoads(fleet: Fleet, seconds: number): Promise<Load[]> {
  const width = Math.min(8, fleet.mailboxes.length)
  const raws = [corpusMessage('related').raw, bigAttachment(attachmentBytes).raw]
  const targets = await inParallel(fleet.mailboxes.slice(0, width), 4, (mailbox, index) =>
    contentTarget(fleet, mailbox, fleet.users[index] ?? '', raws),
  )
  const { service } = fleet
  const body = targets.map(({ related }) => `${related}/body?type=text/plain`)
  const file = targets.map(({ big }) => `${big}/attachments/0`)
  const clients = await inParallel(targets, 4, ({ mailbox }) => openBare(fleet, mailbox))
  const bare = (uids: (index: number) => number, part: string) =>
    clients.map((client, index) => () => downloadBare(client, uids(index), part))
  const relatedUid = (index: number): number => targets[index]?.relatedUid ?? 0
  const bigUid = (index: number): number => targets[index]?.bigUid ?? 0
  const loads: Load[] = [
    await httpLoad('body', service, body.slice(0, 1), 1, seconds),
    await workLoad('body, bare', bare(relatedUid, '1.1').slice(0, 1), seconds),
    await httpLoad('attachment of 5 MB', service, file.slice(0, 1), 1, seconds),
    await workLoad('attachment of 5 MB, bare', bare(bigUid, '2').slice(0, 1), seconds),
  ]
  for (const client of clients) client.close()
  return loads
}

async function downloadBare(client: ImapFlow, uid: number, part: string): Promise<number> {
  const { content } = await client.download(String(uid), part, { uid: true })
  let bytes = 0
  if (content === undefined) throw new Error(`no part ${part} of UID ${uid}`)
  for await (const chunk of content) bytes += (chunk as Buffer).length
  return bytes
}

interface Target {
  readonly mailbox: string
  readonly related: string
  readonly big: string
  readonly relatedUid: number
  readonly bigUid: number
}

async function contentTarget(fleet: Fleet, mailbox: string, user: string, raws: readonly Buffer[]): Promise<Target> {
  const imap = await fleet.dovecot.connect(mailbox)
  for (const raw of raws) await imap.append('INBOX', [raw])
  await imap.command('SELECT INBOX')
  const uidOf = async (subject: string): Promise<number> => {
    const line = (await imap.command(`UID SEARCH SUBJECT "${subject}"`)).find((one) => one.startsWith('* SEARCH')) ?? ''
    return Number(line.split(' ').at(-1))
  }
  const [relatedUid, bigUid] = [await uidOf('Related'), await uidOf('Big')]
  await imap.close()
  const pathOf = async (subject: string): Promise<string> => {
    const found = await until(
      `${subject} of ${mailbox}`,
      async (): Promise<Json | undefined> => (await fleet.service.list(`${inbox(user)}?subject=${subject}`))[0],
      { withinMs: 60_000 },
    )
    return `/lite/users/${user}/email_accounts/0/messages/${String(found['message_id'])}`
  }
  return { mailbox, related: await pathOf('Related'), big: await pathOf('Big'), relatedUid, bigUid }
}

function report(
  options: BenchOptions,
  settings: Readonly<Record<string, number>>,
  loads: readonly Load[],
  large: readonly NamedRead[],
  reads: StoreReads | null,
): boolean {
  table(
    ['', 'concurrency', 'per second', 'p50 ms', 'p99 ms', 'cpu µs', 'bytes', 'failed'],
    loads.map(({ name, concurrency, perSecond, p50, p99, cpuMicros, bytes, failed }) => [
      name,
      concurrency,
      perSecond,
      p50,
      p99,
      cpuMicros ?? '',
      bytes,
      failed,
    ]),
  )
  const mostOf = (what: 'heldMs' | 'healthMs' | 'listMs'): number => Math.max(...large.map((read) => read[what]))
  const besideLarge = (words: string, what: Parameters<typeof mostOf>[0]): [string, number, boolean] => {
    const most = mostOf(what)
    return [`${words} a read of a large mailbox, in ms (at most ${goals[what]})`, most, most <= goals[what]]
  }
  const best = (name: string): number =>
    Math.max(...loads.filter((load) => load.name === name).map((load) => load.perSecond))
  const median = (name: string): number => loads.find((load) => load.name === name)?.p50 ?? Number.NaN
  const cpu = (name: string): number => loads.find((load) => load.name === name)?.cpuMicros ?? Number.NaN
  const checks: readonly [string, number, boolean][] = [
    [`list of 25, per second (at least ${goals.list})`, best('list of 25'), best('list of 25') >= goals.list],
    [`one message, per second (at least ${goals.message})`, best('one message'), best('one message') >= goals.message],
    ratio(
      'list of 25 over bare HTTP of as many bytes (for comparison)',
      best('list of 25') / best('bare HTTP'),
      () => true,
    ),
    ratio(
      `list over FETCH (at least ${goals.overFetch})`,
      best('list of 25') / best('list of 25 by FETCH'),
      (value) => value >= goals.overFetch,
    ),
    ratio(
      `body over a bare download (at most ${goals.overDownload})`,
      median('body') / median('body, bare'),
      (value) => value <= goals.overDownload,
    ),
    ratio(
      `attachment over a bare download (at most ${goals.overDownload})`,
      median('attachment of 5 MB') / median('attachment of 5 MB, bare'),
      (value) => value <= goals.overDownload,
    ),
    // The time that passes varies with what else the machine does; both are in the table.
    ...twins.map((twin) =>
      ratio(
        `${twin}: processor time of 2.0 over that of lite (at most ${goals.v2})`,
        cpu(byV2(twin)) / cpu(twin),
        (value) => value <= goals.v2,
      ),
    ),
    besideLarge('longest hold of the loop by', 'heldMs'),
    besideLarge('longest wait for /healthz beside', 'healthMs'),
    besideLarge('longest wait for another list beside', 'listMs'),
    ...(reads === null ? [] : storeReadChecks(reads)),
    ['answers that were no 200', failures(loads), failures(loads) === 0],
  ]
  for (const [words, value, met] of checks) say(`${words}: ${value} ${met ? 'met' : 'MISSED'}`)
  const ok = checks.every(([, , met]) => met)
  jsonLine('api', { store: options.store, ...settings, loads, large, reads, ok })
  return ok
}

function ratio(words: string, value: number, met: (value: number) => boolean): [string, number, boolean] {
  return [words, Math.round(value * 100) / 100, met(value)]
}

function failures(loads: readonly Load[]): number {
  return loads.reduce((sum, load) => sum + load.failed, 0)
}
