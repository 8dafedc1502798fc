/** An account of 2.0 with two sources on real Dovecot, and calls that are written as the OpenAPI document has them. */
import assert from 'node:assert/strict'
import { raw } from '../api/v2/rig.ts'
import type { Callback } from '../support/callbacks.ts'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { mail } from '../support/mail.ts'
import { quote, type RawImap } from '../support/raw-imap.ts'
import { apiKey, apiSecret, type ApiAnswer, type Json } from '../support/service.ts'
import { until } from '../support/until.ts'
import { userBody } from '../support/users.ts'
import { openStage, type Stage } from './stage.ts'

export const account = '/2.0/accounts/{id}'
export const source = `${account}/sources/{label}`
export const folder = `${source}/folders/{folder}`
export const first = 'anna@mail.example'
export const second = 'work@mail.example'
export const labels = ['anna::imap', 'work::imap'] as const

/** One field of each. */
export const names = (list: readonly Json[], field = 'subject'): unknown[] => list.map((one) => one[field])

type Values = Readonly<Record<string, string | number>>

export interface Request {
  /** In the place of {name} in the path; id and label are those of the first source otherwise. */
  readonly path?: Values
  readonly query?: Values
  readonly body?: Json | FormData
}

/** What is the same under /message/ and /messages/, for each its own messages. */
export const spellings = ['message', 'messages'] as const
const writes = ['flagged', 'copied', 'moved', 'sent', 'given', 'foldered', 'dropped'] as const

export interface World {
  readonly server: Dovecot
  readonly stage: Stage
  readonly id: string
  /** The mailboxes as another mail program sees them. */
  readonly boxes: readonly [RawImap, RawImap]
  /** '<METHOD> <path>' of the document: all that were answered with 200. */
  readonly answered: ReadonlySet<string>
  /** `operation` = '<METHOD> <path>' of the document; any status is an answer. */
  call(operation: string, request?: Request): Promise<ApiAnswer>
  /** The same, for calls that must answer 200. */
  ok(operation: string, request?: Request): Promise<Json>
  list(operation: string, request?: Request): Promise<Json[]>
  text(operation: string, request?: Request): Promise<string>
  /** The path that such a call goes to. */
  path(template: string, path?: Values): string
  /** Our id of the only message with this subject that the source lists. */
  idOf(subject: string, label?: string): Promise<string>
  mailbox(email: string, extra?: Json): Json
  sentTo(webhookId: string): Callback[]
  close(): Promise<void>
}

const quick = { MAILROOM_FOLDER_POLL: '200ms', MAILROOM_FOLDER_POLL_COLD: '200ms', MAILROOM_GONE_HOLD: '300ms' }

/** The mail of the first source; `parts` answers `root`. */
export const letters: readonly (readonly [subject: string, raw: string])[] = [
  ['root', mail({ to: first, from: 'Bob B <bob@x.example>', subject: 'root', date: new Date('2024-05-01T00:00:00Z') })],
  ['parts', raw('parts', first)],
  ['alone', mail({ to: first, subject: 'alone' })],
  ...spellings.flatMap((word) =>
    writes.map((name) => [`${word} ${name}`, mail({ to: first, subject: `${word} ${name}` })] as const),
  ),
]

export async function openWorld(): Promise<World> {
  const parts = new AsyncDisposableStack()
  try {
    const server = await startDovecot()
    parts.defer(() => server.remove())
    const stage = await openStage({ env: quick })
    parts.defer(() => stage.remove())
    const boxes = [await server.connect(first), await server.connect(second)] as const
    for (const [, letter] of letters) await boxes[0].append('INBOX', [letter])
    await boxes[1].append('INBOX', [mail({ to: second, subject: 'old' })])
    return await accountOf(server, stage, boxes, () => parts.disposeAsync())
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

async function accountOf(
  server: Dovecot,
  stage: Stage,
  boxes: readonly [RawImap, RawImap],
  close: () => Promise<void>,
): Promise<World> {
  const answered = new Set<string>()
  let id = ''
  const path = (template: string, values: Values = {}): string => {
    const all: Values = { id, label: labels[0], ...values }
    return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(all[name] ?? assert.fail(name)))
  }
  const call = async (operation: string, request: Request = {}): Promise<ApiAnswer> => {
    const [method = '', template = ''] = operation.split(' ')
    const query = new URLSearchParams(Object.entries(request.query ?? {}).map(([name, value]) => [name, String(value)]))
    const to = `${path(template, request.path)}${query.size === 0 ? '' : `?${query.toString()}`}`
    const { body } = request
    const answer = body instanceof FormData ? await upload(stage, to, body) : await stage.service.api(method, to, body)
    if (answer.status === 200) answered.add(operation)
    return answer
  }
  const must = async (operation: string, request?: Request): Promise<unknown> => {
    const { status, body } = await call(operation, request)
    assert.equal(status, 200, `${operation} ${JSON.stringify(request)}: ${JSON.stringify(body)}`)
    return body
  }
  const list = async (operation: string, request?: Request) => (await must(operation, request)) as Json[]
  const mailbox = (email: string, extra: Json = {}): Json => userBody(server, email, extra)

  id = String(((await must('POST /2.0/accounts', { body: mailbox(first) })) as Json)['id'])
  await must(`POST ${account}/sources`, { body: mailbox(second) })
  for (const [label, count] of [
    [labels[0], letters.length],
    [labels[1], 1],
  ] as const) {
    const all = async () =>
      (await list(`GET ${account}/messages`, { query: { source: label, limit: 100 } })).length === count
    await until(`all mail of ${label}`, all, { withinMs: 20_000, everyMs: 50 })
  }
  return {
    ...{ server, stage, id, boxes, answered, call, list, path, mailbox, close },
    ok: async (operation, request) => (await must(operation, request)) as Json,
    text: async (operation, request) => String(await must(operation, request)),
    async idOf(subject, label = labels[0]) {
      const found = await list(`GET ${account}/messages`, { query: { source: label, subject, limit: 100 } })
      const [one, ...more] = found.filter((message) => message['subject'] === subject)
      assert.deepEqual([one?.['subject'], more], [subject, []], `${subject} in ${label}`)
      return String(one?.['message_id'])
    },
    sentTo: (webhookId) => stage.receiver.accepted().filter(({ body }) => body['webhook_id'] === webhookId),
  }
}

async function upload(stage: Stage, path: string, form: FormData): Promise<ApiAnswer> {
  const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`
  const answer = await fetch(stage.service.url + path, { method: 'POST', headers: { authorization }, body: form })
  return { status: answer.status, headers: answer.headers, body: await answer.json() }
}

/** Flags of each message of this subject in a folder on the server, without \Recent. */
export async function flagsOn(box: RawImap, folder: string, subject: string): Promise<string[]> {
  return (await fetched(box, folder, subject, 'FLAGS')).map((line) => {
    const flags = (/FLAGS \(([^)]*)\)/.exec(line)?.[1] ?? assert.fail(line)).split(' ')
    return flags
      .filter((flag) => flag !== '' && flag !== '\\Recent')
      .sort()
      .join(' ')
  })
}

/** The lines of FETCH, one for each message of this subject. */
export async function fetched(box: RawImap, folder: string, subject: string, items: string): Promise<string[]> {
  await box.command(`SELECT ${quote(folder)}`)
  const found = (await box.command(`UID SEARCH SUBJECT ${quote(subject)}`)).join(' ')
  const uids = /SEARCH((?: \d+)+)/.exec(found)?.[1]?.trim().split(' ') ?? []
  if (uids.length === 0) return []
  const lines = await box.command(`UID FETCH ${uids.join(',')} (${items})`)
  return lines.filter((line) => / FETCH /.test(line))
}

/** In which of these folders it lies on the server, with repetitions. */
export async function placesOn(box: RawImap, subject: string, folders: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const folder of folders) found.push(...(await fetched(box, folder, subject, 'UID')).map(() => folder))
  return found
}
