/** One mailbox on a real server with both of its sides: the API, and another mail program. */
import type { PrivateServer } from '../support/daemon.ts'
import type { Callback } from '../support/callbacks.ts'
import { mail } from '../support/mail.ts'
import { quote, type RawImap } from '../support/raw-imap.ts'
import type { Json, Service } from '../support/service.ts'
import { until } from '../support/until.ts'
import { createUser, createWebhook } from '../support/users.ts'
import type { Letter } from './letters.ts'
import { openStage, type Stage } from './stage.ts'

/** How a server is started, and what tells it from others. */
export interface ServerKind {
  readonly name: string
  start(): Promise<PrivateServer>
  /** Stands between the levels of a folder's name. */
  readonly delimiter: '/' | '.'
  /** What the names of all folders but INBOX begin with. */
  readonly personal: '' | 'INBOX'
  /** Whether the mail outlives a restart of the server. */
  readonly keepsMail: boolean
  /** The server does not know MOVE. */
  readonly lacksMove?: true
  /** Why a part of a message does not come byte for byte; absent = it does. */
  readonly inexactParts?: string
}

/** A server of its own, and the service beside it. */
export interface Day {
  readonly kind: ServerKind
  readonly server: PrivateServer
  readonly stage: Stage
  readonly service: Service
  close(): Promise<void>
}

export interface Mailbox {
  readonly email: string
  readonly userId: string
  /** '/lite/users/{id}/email_accounts/0' */
  readonly path: string
  readonly imap: RawImap
  /** A folder's name as callers write it: '/' between its levels. */
  name(folder: string): string
  /** A folder's name as the server has it; not ASCII: in modified UTF-7. */
  wire(folder: string): string
  /** The path of a folder in the API. */
  folder(folder: string): string
  /** Puts a plain letter into a folder. */
  send(folder: string, subject: string): Promise<void>
  /** Messages as the API lists them; `query` with its question mark. */
  subjects(query?: string, folder?: string): Promise<string[]>
  /** Resolves when the API lists exactly these in the folder, in any order. */
  lists(folder: string, subjects: readonly string[]): Promise<void>
  /** The message of this subject, wherever it lies. */
  message(subject: string): Promise<Json>
  messageId(subject: string): Promise<string>
  /** Subjects in a folder on the server. */
  onServer(folder: string): Promise<string[]>
  /** Selects the folder on the server and answers the UID there. */
  uid(folder: string, subject: string): Promise<number>
  /** A webhook of the user's: answers the callbacks that it has brought so far. */
  webhook(): Promise<() => Callback[]>
  /** The change log from its begin: '<event> <message_id> <folder>'. */
  told(): Promise<string[]>
}

export async function openDay(kind: ServerKind, env: Readonly<Record<string, string>>): Promise<Day> {
  const parts = new AsyncDisposableStack()
  try {
    const server = await kind.start()
    parts.defer(() => server.remove())
    const stage = await openStage({ env })
    parts.defer(() => stage.remove())
    return { kind, server, stage, service: stage.service, close: () => parts.disposeAsync() }
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

/** A user with this mail in INBOX, and with the folders Archive and Sent; all of it is in the index. */
export async function openMailbox(day: Day, name: string, letters: readonly Letter[]): Promise<Mailbox> {
  const { kind, server, service } = day
  const email = `${name}@mail.example`
  const imap = await server.connect(email)
  const wire = (folder: string): string => wireName(kind, folder)
  // Most servers make them by themselves.
  for (const folder of ['Archive', 'Sent']) await imap.command(`CREATE ${quote(wire(folder))}`).catch(() => undefined)
  for (const { raw } of letters) await imap.append('INBOX', [raw])
  const userId = await createUser(service, server, email)
  const mailbox = mailboxOf(day, imap, email, userId)
  // A 503 until all folders have been read.
  const all = async (): Promise<boolean> => (await mailbox.subjects('?sort_order=asc')).length === letters.length
  await until('the mailbox in the index', all, { withinMs: 20_000 })
  return mailbox
}

function wireName({ personal, delimiter }: ServerKind, folder: string): string {
  if (folder === 'INBOX') return folder
  return [...(personal === '' ? [] : [personal]), ...folder.split('/')].join(delimiter)
}

function mailboxOf({ service, stage, kind }: Day, imap: RawImap, email: string, userId: string): Mailbox {
  const path = `/lite/users/${userId}/email_accounts/0`
  const name = (folder: string): string =>
    folder === 'INBOX' || kind.personal === '' ? folder : `${kind.personal}/${folder}`
  const wire = (folder: string): string => wireName(kind, folder)
  const folder = (one: string): string => `${path}/folders/${encodeURIComponent(name(one))}`
  const subjects = async (query = '?limit=100', where?: string): Promise<string[]> => {
    const base = where === undefined ? path : folder(where)
    return (await service.list(`${base}/messages${query}`)).map((one) => String(one['subject']))
  }
  const message = async (subject: string): Promise<Json> => {
    const [found] = await service.list(`${path}/messages?limit=1&subject=${encodeURIComponent(subject)}`)
    if (found === undefined) throw new Error(`no message "${subject}" in the list`)
    return found
  }
  return {
    email,
    userId,
    path,
    imap,
    name,
    wire,
    folder,
    send: (where, subject) => imap.append(wire(where), [mail({ to: 'bob@example.org', subject })]),
    subjects,
    async lists(where, wanted) {
      const sorted = [...wanted].sort().join('\n')
      const found = async () => (await subjects('?limit=100', where)).sort().join('\n') === sorted
      await until(`${where} with ${wanted.join(', ') || 'nothing'}`, found, { withinMs: 20_000, everyMs: 50 })
    },
    message,
    messageId: async (subject) => String((await message(subject))['message_id']),
    onServer: (where) => subjectsOnServer(imap, wire(where)),
    uid: async (where, subject) => {
      await imap.command(`SELECT ${quote(wire(where))}`)
      const found = (await imap.command(`UID SEARCH SUBJECT ${quote(subject)}`)).join(' ')
      const [, uid] = /SEARCH (\d+)/.exec(found) ?? []
      if (uid === undefined) throw new Error(`no "${subject}" in ${where}: ${found}`)
      return Number(uid)
    },
    webhook: async () => {
      const id = await createWebhook(service, userId, `${stage.receiver.url}/mail`)
      return () => stage.receiver.accepted().filter(({ body }) => body['webhook_id'] === id)
    },
    told: () => changesOf(service, userId),
  }
}

async function subjectsOnServer(imap: RawImap, folder: string): Promise<string[]> {
  const selected = await imap.command(`SELECT ${quote(folder)}`)
  if (selected.includes('* 0 EXISTS')) return []
  const lines = await imap.command('FETCH 1:* (BODY.PEEK[HEADER.FIELDS (SUBJECT)])')
  return lines.flatMap((line) => /^Subject: (.*)$/i.exec(line)?.[1] ?? []).sort()
}

async function changesOf(service: Service, userId: string): Promise<string[]> {
  const { changes } = await service.ok('GET', `/lite/users/${userId}/changes?limit=1000`)
  return (changes as Json[]).map(
    (one) => `${String(one['event'])} ${String(one['message_id'])} ${String(one['folder'])}`,
  )
}
