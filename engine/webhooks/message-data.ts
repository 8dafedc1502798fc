/**
 * `message_data` of a callback, in both dialects: lite and 2.0. Pure: records in, wire shape out. Times are Unix
 * seconds. A missing value is '' or [] or absent, never null; only content_id may be null.
 */
import { hash } from 'node:crypto'
import { fileNameStructure, mainFileName } from '../messages/names.ts'
import { maxBodyBytes } from '../messages/bodies.ts'
import type {
  AccountRecord,
  Address,
  AttachmentRecord,
  BodyPartRecord,
  MessageRecord,
  SourceOptions,
  WebhookRecord,
} from '../store/records.ts'
import type { GivenText, Unsigned } from './envelope.ts'
import type { EventFacts } from './match.ts'

export interface Contents {
  /** null = not wanted, or not readable. The envelope cuts texts to its size and puts them into `bodies`. */
  readonly texts: readonly GivenText[] | null
  /** include_header 1: name in canonical case → values; raw: the text. */
  readonly headers?: string | Readonly<Record<string, readonly string[]>> | undefined
  /** Wanted contents are missing; resource_url has them. */
  readonly truncated: boolean
}

interface DataSource {
  readonly webhook: WebhookRecord
  readonly baseUrl: string
  readonly account: Pick<AccountRecord, 'label' | 'userId'> & ShownBy
  /** Server path → the folder's name as the API shows it. */
  readonly folderName: (path: string) => string
  readonly message: MessageRecord
  readonly facts: EventFacts
  readonly contents: Contents
}

/** The callback of a message. `more`: further fields of its body. */
export function messageCallback(source: DataSource, more: Readonly<Record<string, unknown>>): Unsigned {
  const { webhook, account, contents } = source
  const body = {
    account_id: account.userId,
    user_id: account.userId,
    webhook_id: webhook.id,
    ...more,
    message_data: { ...commonData(source), ...(webhook.version === 'lite' ? liteData(source) : v2Data(source)) },
  }
  return { body, texts: contents.texts?.map((text) => ({ ...text, link: bodyUrl(source, text.part) })) ?? null }
}

function commonData(source: DataSource): Record<string, unknown> {
  const { webhook, message, contents, facts } = source
  return {
    ...describeMessage(message, peopleOf(message), facts.folders, source.folderName),
    addresses: addressesOf(message),
    date: seconds(message.sentAt),
    sources: placesOf(source),
    ...(contents.headers === undefined ? {} : { headers: contents.headers }),
    ...(webhook.receiveAllChanges ? { message_type: facts.first ? 'created' : 'updated' } : {}),
    ...(contents.truncated ? { truncated: true } : {}),
    resource_url: messageUrl(source),
  }
}

function liteData(source: DataSource): Record<string, unknown> {
  const { message, facts } = source
  return {
    date_received: seconds(message.receivedAt),
    bodies: bodiesOf(message),
    email_accounts: placesOf(source),
    flags: {
      flagged: facts.flags.includes('\\Flagged'),
      answered: facts.flags.includes('\\Answered'),
      draft: facts.flags.includes('\\Draft'),
      seen: facts.flags.includes('\\Seen'),
    },
    files: message.attachments.map((file) => describeFile(message, file)),
  }
}

function v2Data({ account, message, contents }: DataSource): Record<string, unknown> {
  const files = message.attachments.filter((file) => isShownFile(account, file))
  const asked = contents.truncated || contents.texts !== null
  return {
    files: files.map((file) => describeFile(message, file)),
    date_indexed: seconds(message.indexedAt),
    ...(asked ? { bodies: bodiesOf(message) } : {}),
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}

/** A Message-ID with angle brackets, as in the message itself. */
export function bracketed(id: string | null): string | null {
  return id === null ? null : `<${id}>`
}

/** The common fields of messages in the API and in callbacks. `people`: for person_info. `paths`: for folders. */
export function describeMessage(
  message: MessageRecord,
  people: readonly Address[],
  paths: readonly string[],
  folderName: (path: string) => string,
) {
  return {
    ...nameMessage(message),
    ...describeMail(message, people, paths, folderName),
    references: message.references.map((id) => `<${id}>`),
  }
}

export function nameMessage({ id, emailMessageId, hostedMessageId }: MessageRecord) {
  return {
    message_id: id,
    email_message_id: bracketed(emailMessageId) ?? '',
    // The original's documentation has one name, client libraries read the other.
    ...(hostedMessageId === null ? {} : { mailhost_message_id: hostedMessageId, gmail_message_id: hostedMessageId }),
  }
}

/** The common fields of a message, a file and a thread. */
export function describeMail(
  { subject, hostedThreadId }: MessageRecord,
  people: readonly Address[],
  paths: readonly string[],
  folderName: (path: string) => string,
) {
  return {
    ...(hostedThreadId === null ? {} : { mailhost_thread_id: hostedThreadId, gmail_thread_id: hostedThreadId }),
    person_info: personInfo(people),
    subject,
    folders: [...new Set(paths.map(folderName))],
  }
}

function addressOf({ email, name }: Address): Record<string, string> {
  return name === '' ? { email } : { email, name }
}

function addressesOf({ addresses }: MessageRecord): Record<string, unknown> | [] {
  const { sender, replyTo, to, cc, bcc, returnPath } = addresses
  const [from] = addresses.from
  const lists = { sender, reply_to: replyTo, to, cc, bcc, return_path: returnPath }
  const present = Object.entries(lists).filter(([, list]) => list.length > 0)
  if (from === undefined && present.length === 0) return []
  return {
    ...(from === undefined ? {} : { from: { email: from.email, name: from.name } }),
    ...Object.fromEntries(present.map(([field, list]) => [field, list.map(addressOf)])),
  }
}

function peopleOf({ addresses }: MessageRecord): Address[] {
  return [...addresses.from, ...addresses.to, ...addresses.cc, ...addresses.bcc]
}

function bodiesOf({ bodies }: MessageRecord) {
  return bodies.map(({ type, charset, section }) => ({ type, charset: charset ?? '', body_section: section }))
}

/** By address: a picture's URL with the address's hash, as the original service had it. Mailroom never requests it. */
function personInfo(people: readonly Address[]): Record<string, { thumbnail: string }> | never[] {
  const known = people.filter(({ email }) => email !== '')
  if (known.length === 0) return []
  return Object.fromEntries(known.map(({ email }) => [email, { thumbnail: thumbnail(email) }]))
}

export function thumbnail(email: string): string {
  return `https://secure.gravatar.com/avatar/${hash('md5', email.trim().toLowerCase())}?s=50&d=mm`
}

/** The message's placements, the event's placement first. For a message that is gone: its last placement. */
function placesOf(source: DataSource): Record<string, unknown>[] {
  const { account, message, facts, folderName } = source
  const resource_url = accountUrl(source)
  const here = facts.folders.includes(facts.path) || facts.folders.length === 0
  const others = message.placements.filter(
    (one) => facts.folders.includes(one.path) && !(here && one.folderId === facts.folderId && one.uid === facts.uid),
  )
  const places = [...(here ? [{ path: facts.path, uid: facts.uid }] : []), ...others]
  return places.map(({ path, uid }) => ({ label: account.label, folder: folderName(path), uid, resource_url }))
}

interface ShownBy {
  readonly options: Pick<SourceOptions, 'rawFileList'>
}

/** Larger images are contents of the message, not part of a signature. */
const signatureMax = 65_536

/** 2.0 shows images of signatures and winmail.dat only with raw_file_list. */
export function isShownFile({ options }: ShownBy, file: AttachmentRecord): boolean {
  if (options.rawFileList) return true
  const isSignature = file.embedded && file.type.startsWith('image/') && file.size <= signatureMax
  return !isSignature && file.type !== 'application/ms-tnef' && file.fileName.toLowerCase() !== 'winmail.dat'
}

/** A file, for callbacks and the 2.0 API. */
export function describeFile({ id }: Pick<MessageRecord, 'id'>, file: AttachmentRecord) {
  return {
    size: file.size,
    type: file.type,
    file_name: file.fileName,
    file_name_structure: fileNameStructure(file.fileName),
    main_file_name: mainFileName(file.fileName),
    body_section: file.section,
    file_id: `${id}-${file.index}`,
    attachment_id: file.index,
    is_embedded: file.embedded,
    content_disposition: file.disposition,
    content_id: file.contentId,
  }
}

function accountUrl({ webhook, baseUrl, account }: DataSource): string {
  const label = encodeURIComponent(account.label)
  return webhook.version === 'lite'
    ? `${baseUrl}/lite/users/${account.userId}/email_accounts/${label}`
    : `${baseUrl}/2.0/accounts/${account.userId}/sources/${label}`
}

/** URL of a whole body part: the bodies of its type, or for large parts the raw message. */
function bodyUrl(source: DataSource, { type, size }: BodyPartRecord): string {
  const raw = source.webhook.version === 'lite' ? 'raw' : 'source'
  return `${messageUrl(source)}/${size > maxBodyBytes ? raw : `body?type=${encodeURIComponent(type)}`}`
}

function messageUrl(source: DataSource): string {
  const { webhook, baseUrl, account, message } = source
  return webhook.version === 'lite'
    ? `${accountUrl(source)}/messages/${message.id}`
    : `${baseUrl}/2.0/accounts/${account.userId}/messages/${message.id}`
}

const text = 'This is a test of your webhook. Nothing was received.'
const part = {
  section: '1',
  type: 'text/plain',
  charset: 'utf-8',
  encoding: '7bit',
  size: text.length,
  flowed: false,
  delSp: false,
}
const ada = { name: 'Ada Example', email: 'ada@example.com' }
const ben = { name: 'Ben Example', email: 'ben@example.org' }
const folderId = '0'.repeat(24)

function sampleMessage(now: number): MessageRecord {
  return {
    id: '0'.repeat(24),
    accountId: '0'.repeat(24),
    identity: 'mid:test@example.com',
    emailMessageId: 'test@example.com',
    hostedMessageId: null,
    hostedThreadId: null,
    threadId: '0'.repeat(16),
    sentAt: now,
    receivedAt: now,
    size: 1024,
    subject: 'A test of your webhook',
    addresses: { from: [ada], sender: [], replyTo: [], to: [ben], cc: [], bcc: [], returnPath: [{ ...ada, name: '' }] },
    inReplyTo: null,
    references: [],
    listHeaders: {},
    receivedHeaders: [],
    bodies: [part],
    attachments: [],
    firstChangeId: null,
    indexedAt: now,
    placements: [{ folderId, path: 'INBOX', uidValidity: '1', uid: 1, flags: [], modseq: '0', rev: 0 }],
    gone: [],
  }
}

const sampleHeaders = {
  raw: 'Subject: A test of your webhook\r\n\r\n',
  1: { Subject: ['A test of your webhook'] },
} as const

function sampleContents({ includeHeader, includeBody }: WebhookRecord): Contents {
  const texts = includeBody ? [{ part, text, bytes: text.length, whole: true }] : null
  return { texts, headers: includeHeader === null ? undefined : sampleHeaders[includeHeader], truncated: false }
}

/** The callback of POST …/webhooks/{id}/test: a sample message in the webhook's dialect and with its options. */
export function sampleCallback(webhook: WebhookRecord, baseUrl: string, now: number): Unsigned {
  const source = {
    webhook,
    baseUrl,
    account: { userId: webhook.userId ?? '0'.repeat(24), label: 'ben::example', options: { rawFileList: false } },
    folderName: (path: string) => path,
    message: sampleMessage(now),
    facts: { first: true, path: 'INBOX', folderId, uid: 1, flags: [], folders: ['INBOX'] },
    contents: sampleContents(webhook),
  }
  return messageCallback(source, { test: true })
}
