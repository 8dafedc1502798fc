/**
 * `message_data` of a callback, in both dialects: lite and 2.0. Pure: records in, wire shape out. Times are Unix
 * seconds. What a message does not have is '' or [] or absent, never null; only content_id may be null.
 */
import { createHash } from 'node:crypto'
import { fileNameStructure, mainFileName } from '../messages/names.ts'
import { maxBodyBytes } from '../messages/bodies.ts'
import type { AccountRecord, Address, BodyPartRecord, MessageRecord, WebhookRecord } from '../store/records.ts'
import type { Unsigned } from './envelope.ts'
import type { EventFacts } from './match.ts'

type Dialect = WebhookRecord['version']

export interface NamedBody {
  readonly type: string
  readonly charset: string
  readonly body_section: string
}

export interface GivenText {
  readonly part: BodyPartRecord
  readonly text: string
  /** Of the text as JSON, without its quotes. */
  readonly bytes: number
  /** Nothing of the part is missing. */
  readonly whole: boolean
}

export interface Contents {
  readonly bodies: readonly NamedBody[]
  /** Of each of the bodies; null = not asked for, or not to be read. The envelope puts in as much of them as fits. */
  readonly texts: readonly GivenText[] | null
  /** include_header 1: name in canonical case → values; raw: the text. */
  readonly headers?: string | Readonly<Record<string, readonly string[]>>
  /** Something that was asked for was left out: it can be fetched at resource_url. */
  readonly truncated: boolean
}

interface DataSource {
  readonly dialect: Dialect
  readonly baseUrl: string
  readonly account: Pick<AccountRecord, 'label' | 'userId'>
  /** Server path → the folder's name as the API shows it. */
  readonly folderName: (path: string) => string
  readonly message: MessageRecord
  readonly facts: EventFacts
  readonly contents: Contents
  /** receive_all_changes: whether the message is new to the developer. */
  readonly messageType: 'created' | 'updated' | null
}

export function messageData(source: DataSource): Record<string, unknown> {
  return source.dialect === 'lite' ? liteData(source) : v2Data(source)
}

function liteData(source: DataSource): Record<string, unknown> {
  const { message, facts, contents } = source
  const places = placesOf(source)
  return {
    ...describeMessage(message, peopleOf(message), facts.folders, source.folderName),
    addresses: addressesOf(message),
    date: seconds(message.sentAt),
    date_received: seconds(message.receivedAt),
    bodies: contents.bodies,
    email_accounts: places,
    sources: places,
    flags: {
      flagged: facts.flags.includes('\\Flagged'),
      answered: facts.flags.includes('\\Answered'),
      draft: facts.flags.includes('\\Draft'),
      seen: facts.flags.includes('\\Seen'),
    },
    files: filesOf(source),
    ...extras(source),
  }
}

function v2Data(source: DataSource): Record<string, unknown> {
  const { message, facts, contents } = source
  const asked = contents.truncated || contents.texts !== null
  return {
    ...describeMessage(message, peopleOf(message), facts.folders, source.folderName),
    addresses: addressesOf(message),
    files: filesOf(source),
    date: seconds(message.sentAt),
    date_indexed: seconds(message.indexedAt),
    sources: placesOf(source),
    ...(asked ? { bodies: contents.bodies } : {}),
    ...extras(source),
  }
}

function extras({ contents, messageType, ...source }: DataSource): Record<string, unknown> {
  return {
    ...(contents.headers === undefined ? {} : { headers: contents.headers }),
    ...(messageType === null ? {} : { message_type: messageType }),
    ...(contents.truncated ? { truncated: true } : {}),
    resource_url: messageUrl(source),
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}

/** Message-IDs are written as in the message itself, with angle brackets. */
export function bracketed(id: string | null): string | null {
  return id === null ? null : `<${id}>`
}

/**
 * What the messages of the API and of callbacks have in common. `people`: for person_info. `paths`: the folders to
 * name.
 */
export function describeMessage(
  message: MessageRecord,
  people: readonly Address[],
  paths: readonly string[],
  folderName: (path: string) => string,
) {
  const { hostedMessageId, hostedThreadId } = message
  return {
    message_id: message.id,
    email_message_id: bracketed(message.emailMessageId) ?? '',
    // Under both names: that of the original's documentation, and that which client libraries read.
    ...(hostedMessageId === null ? {} : { mailhost_message_id: hostedMessageId, gmail_message_id: hostedMessageId }),
    ...(hostedThreadId === null ? {} : { mailhost_thread_id: hostedThreadId, gmail_thread_id: hostedThreadId }),
    person_info: personInfo(people),
    references: message.references.map((id) => `<${id}>`),
    subject: message.subject,
    folders: [...new Set(paths.map(folderName))],
  }
}

function addressOf({ email, name }: Address): Record<string, string> {
  return name === '' ? { email } : { email, name }
}

function addressesOf({ addresses }: MessageRecord): Record<string, unknown> | [] {
  const [from] = addresses.from
  const lists = {
    sender: addresses.sender,
    reply_to: addresses.replyTo,
    to: addresses.to,
    cc: addresses.cc,
    bcc: addresses.bcc,
    return_path: addresses.returnPath,
  }
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

/** By address: a picture's URL made of the address's hash, as the original had it. Nothing here requests it. */
function personInfo(people: readonly Address[]): Record<string, { thumbnail: string }> | never[] {
  const known = people.filter(({ email }) => email !== '')
  if (known.length === 0) return []
  return Object.fromEntries(known.map(({ email }) => [email, { thumbnail: thumbnail(email) }]))
}

const thumbnails = new Map<string, string>()
const thumbnailsMax = 50_000

function thumbnail(email: string): string {
  const known = thumbnails.get(email)
  if (known !== undefined) return known
  const hash = createHash('md5').update(email.trim().toLowerCase()).digest('hex')
  const made = `https://secure.gravatar.com/avatar/${hash}?s=50&d=mm`
  if (thumbnails.size >= thumbnailsMax) thumbnails.clear()
  thumbnails.set(email, made)
  return made
}

/** Where the message lies, the event's own place first; of a message that is gone, where it was last. */
function placesOf({ account, message, facts, folderName, ...source }: DataSource): Record<string, unknown>[] {
  const resource_url = accountUrl({ ...source, account })
  const here = facts.folders.includes(facts.path) || facts.folders.length === 0
  const others = message.placements.filter(
    (one) => facts.folders.includes(one.path) && !(here && one.folderId === facts.folderId && one.uid === facts.uid),
  )
  const places = [...(here ? [{ path: facts.path, uid: facts.uid }] : []), ...others]
  return places.map(({ path, uid }) => ({ label: account.label, folder: folderName(path), uid, resource_url }))
}

function filesOf({ message }: DataSource): Record<string, unknown>[] {
  return message.attachments.map((file) => ({
    size: file.size,
    type: file.type,
    file_name: file.fileName,
    file_name_structure: fileNameStructure(file.fileName),
    main_file_name: mainFileName(file.fileName),
    body_section: file.section,
    file_id: `${message.id}-${file.index}`,
    attachment_id: file.index,
    is_embedded: file.embedded,
    content_disposition: file.disposition,
    content_id: file.contentId,
  }))
}

type Place = Pick<DataSource, 'dialect' | 'baseUrl' | 'account'>

function accountUrl({ dialect, baseUrl, account }: Place): string {
  const label = encodeURIComponent(account.label)
  return dialect === 'lite'
    ? `${baseUrl}/lite/users/${account.userId}/email_accounts/${label}`
    : `${baseUrl}/2.0/accounts/${account.userId}/sources/${label}`
}

/** Where the whole of a body part is: among the bodies of its type, or only in the message as it was sent. */
export function bodyUrl(
  source: Place & Pick<DataSource, 'message'>,
  { type, size }: Pick<BodyPartRecord, 'type' | 'size'>,
): string {
  const raw = source.dialect === 'lite' ? 'raw' : 'source'
  return `${messageUrl(source)}/${size > maxBodyBytes ? raw : `body?type=${encodeURIComponent(type)}`}`
}

function messageUrl({ message, ...place }: Place & Pick<DataSource, 'message'>): string {
  return place.dialect === 'lite'
    ? `${accountUrl(place)}/messages/${message.id}`
    : `${place.baseUrl}/2.0/accounts/${place.account.userId}/messages/${message.id}`
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
    bodies: [],
    attachments: [],
    firstChangeId: null,
    indexedAt: now,
    placements: [{ folderId, path: 'INBOX', uidValidity: '1', uid: 1, flags: [], modseq: '0', rev: 0, quiet: false }],
    gone: [],
  }
}

function sampleContents(webhook: WebhookRecord): Contents {
  const bodies = [{ type: part.type, charset: part.charset, body_section: part.section }]
  const headers =
    webhook.includeHeader === 'raw'
      ? { headers: 'Subject: A test of your webhook\r\n\r\n' }
      : webhook.includeHeader === '1'
        ? { headers: { Subject: ['A test of your webhook'] } }
        : {}
  const texts = webhook.includeBody ? [{ part, text, bytes: text.length, whole: true }] : null
  return { bodies, texts, ...headers, truncated: false }
}

/**
 * The callback of POST …/webhooks/{id}/test: a made-up message in the webhook's own dialect and with its own options.
 */
export function sampleCallback(
  webhook: WebhookRecord,
  deps: { readonly baseUrl: () => string; readonly now: () => number },
): Unsigned {
  const userId = webhook.userId ?? '0'.repeat(24)
  const facts = { first: true, path: 'INBOX', folderId, uid: 1, flags: [], folders: ['INBOX'] }
  const contents = sampleContents(webhook)
  const place = {
    dialect: webhook.version,
    baseUrl: deps.baseUrl(),
    account: { userId, label: 'ben::example' },
    message: sampleMessage(deps.now()),
  }
  const body = {
    account_id: userId,
    user_id: userId,
    webhook_id: webhook.id,
    test: true,
    message_data: messageData({
      ...place,
      folderName: (path) => path,
      facts,
      contents,
      messageType: webhook.receiveAllChanges ? 'created' : null,
    }),
  }
  return { body, texts: contents.texts?.map((one) => ({ ...one, link: bodyUrl(place, one.part) })) ?? null }
}
