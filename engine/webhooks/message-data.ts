/**
 * `message_data` of a callback, in both dialects: lite and 2.0. Pure: records in, wire shape out. Times are Unix seconds.
 * Message-IDs are written with angle brackets, as in the message itself. What a message has not is '' or [] or left out, never null,
 * but for content_id, which interface.md allows to be null.
 */
import { createHash } from 'node:crypto'
import { fileNameStructure, mainFileName } from '../messages/names.ts'
import { maxBodyBytes } from '../messages/bodies.ts'
import type {
  AccountRecord,
  Address,
  AttachmentRecord,
  BodyPartRecord,
  MessageRecord,
  WebhookRecord,
} from '../store/records.ts'
import type { EventFacts } from './events.ts'

export type Dialect = WebhookRecord['version']

export interface NamedBody {
  readonly type: string
  readonly charset: string
  readonly body_section: string
}

/** What a callback may carry of a body part. */
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

export interface DataSource {
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
    ...commonData(source),
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
  const { message, contents } = source
  const asked = contents.truncated || contents.texts !== null
  return {
    ...commonData(source),
    files: filesOf(source),
    date: seconds(message.sentAt),
    date_indexed: seconds(message.indexedAt),
    sources: placesOf(source),
    ...(asked ? { bodies: contents.bodies } : {}),
    ...extras(source),
  }
}

function commonData({ message, facts, folderName }: DataSource): Record<string, unknown> {
  return {
    message_id: message.id,
    email_message_id: bracketed(message.emailMessageId),
    ...hostedIds(message),
    addresses: addressesOf(message),
    person_info: personInfo(message),
    references: message.references.map(bracketed),
    subject: message.subject,
    folders: [...new Set(facts.folders.map(folderName))],
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

function bracketed(id: string | null): string {
  return id === null ? '' : `<${id}>`
}

/** Told twice, under interface.md's names and under those that client libraries read. */
function hostedIds({ hostedMessageId, hostedThreadId }: MessageRecord): Record<string, string> {
  return {
    ...(hostedMessageId === null ? {} : { mailhost_message_id: hostedMessageId, gmail_message_id: hostedMessageId }),
    ...(hostedThreadId === null ? {} : { mailhost_thread_id: hostedThreadId, gmail_thread_id: hostedThreadId }),
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

/** Keyed by address. The thumbnail is a link that the reader of the callback may follow; nothing here does. */
function personInfo({ addresses }: MessageRecord): Record<string, { thumbnail: string }> | [] {
  const people = [...addresses.from, ...addresses.to, ...addresses.cc, ...addresses.bcc].filter(
    (one) => one.email !== '',
  )
  if (people.length === 0) return []
  return Object.fromEntries(people.map(({ email }) => [email, { thumbnail: thumbnailUrl(email) }]))
}

function thumbnailUrl(email: string): string {
  const hash = createHash('md5').update(email.trim().toLowerCase()).digest('hex')
  return `https://secure.gravatar.com/avatar/${hash}?s=50&d=mm`
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
    file_id: fileId(message, file),
    attachment_id: file.index,
    is_embedded: file.embedded,
    content_disposition: file.disposition,
    content_id: file.contentId,
  }))
}

/** Names one attachment of one message. */
export function fileId(message: Pick<MessageRecord, 'id'>, file: Pick<AttachmentRecord, 'index'>): string {
  return `${message.id}-${file.index}`
}

type Place = Pick<DataSource, 'dialect' | 'baseUrl' | 'account'>

export function accountUrl({ dialect, baseUrl, account }: Place): string {
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
