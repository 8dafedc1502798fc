/** Messages from the index to the wire, as objects and as prepared JSON text. */
import { LRUCache } from 'lru-cache'
import type { z } from 'zod'
import {
  type AccountRecord,
  type Address,
  type AttachmentRecord,
  type BodyPartRecord,
  bracketed,
  describeMessage,
  folderNamer,
  type FolderRecord,
  type MessageAddresses,
  type MessageRecord,
} from '../../../engine/index.ts'
import { type LiteUrls, liteUrls, seconds } from '../../addresses.ts'
import type { attachmentView, bodyPartView, flagsView, messageView, writtenFlagsView } from './schema.ts'

export type MessageView = z.input<typeof messageView>

function presentMessage(
  message: MessageRecord,
  account: AccountRecord,
  urls: LiteUrls,
  folderName: (path: string) => string,
): MessageView {
  const people = addressFields.flatMap(([field]) => message.addresses[field])
  const paths = message.placements.map(({ path }) => path)
  return {
    ...describeMessage(message, people, paths, folderName),
    sent_at: seconds(message.sentAt),
    received_at: seconds(message.receivedAt),
    addresses: presentAddresses(message.addresses),
    list_headers: emptyAsList(message.listHeaders),
    in_reply_to: bracketed(message.inReplyTo),
    attachments: message.attachments.map(presentAttachment),
    bodies: message.bodies.map(presentBody),
    received_headers: [...message.receivedHeaders],
    resource_url: urls.message(account, message.id),
  }
}

function emptyAsList<T>(map: Readonly<Record<string, T>>): Record<string, T> | never[] {
  return Object.keys(map).length === 0 ? [] : { ...map }
}

const addressFields = [
  ['from', 'from'],
  ['sender', 'sender'],
  ['replyTo', 'reply_to'],
  ['to', 'to'],
  ['cc', 'cc'],
  ['bcc', 'bcc'],
] as const satisfies readonly (readonly [keyof MessageAddresses, string])[]

function presentAddresses(addresses: MessageAddresses): MessageView['addresses'] {
  const given = addressFields.flatMap(([field, wire]) =>
    addresses[field].length === 0 ? [] : [[wire, addresses[field].map(presentAddress)] as const],
  )
  return emptyAsList(Object.fromEntries(given))
}

/** Both are always there: a name that the message does not give is ''. */
function presentAddress({ name, email }: Address): { name: string; email: string } {
  return { name, email }
}

export function presentAttachment(attachment: AttachmentRecord): z.input<typeof attachmentView> {
  return {
    size: attachment.size,
    type: attachment.type,
    body_section: attachment.section,
    file_name: attachment.fileName,
    content_disposition: attachment.disposition,
    content_id: attachment.contentId,
    attachment_id: attachment.index,
    x_attachment_id: attachment.contentId ?? '',
    encoding: attachment.encoding,
    is_embedded: attachment.embedded,
  }
}

export function presentBody(body: BodyPartRecord): z.input<typeof bodyPartView> {
  return {
    body_section: body.section,
    type: body.type,
    encoding: body.encoding,
    size: body.size,
    ...(body.charset === null ? {} : { charset: body.charset }),
  }
}

/** Flags in one folder, or in the first where the message lies. */
export function flagsIn(message: MessageRecord, folderId?: string): readonly string[] {
  const placement = message.placements.find((one) => one.folderId === folderId) ?? message.placements[0]
  return placement?.flags ?? []
}

export function presentFlags(flags: readonly string[]): z.input<typeof flagsView> {
  const { read, answered, flagged, draft } = presentWrittenFlags(flags)
  return { read, answered, flagged, draft, raw: [...flags] }
}

/** The answer to a change of flags names `deleted` too. */
export function presentWrittenFlags(flags: readonly string[]): z.input<typeof writtenFlagsView> {
  const has = (flag: string): boolean => flags.includes(flag)
  return {
    read: has('\\Seen'),
    answered: has('\\Answered'),
    flagged: has('\\Flagged'),
    deleted: has('\\Deleted'),
    draft: has('\\Draft'),
  }
}

/*
 * Messages as JSON text, made once for each version of a record. The text is kept beside the record itself: the store
 * answers the same (frozen in effect) object as long as the row is unchanged, and another one after any write or sync,
 * so a text never outlives its facts or flags. What the text holds besides the record (base URL, label, folder names)
 * makes the view that it belongs to.
 */

/** What goes into a message's text besides the record. Two views are one object when all of it is the same. */
interface MessageViewer {
  readonly account: AccountRecord
  readonly urls: LiteUrls
  /** Server path → the name that callers use. */
  readonly folderName: (path: string) => string
}

/** Callers choose the base URL, and mailboxes have many folders: characters of all keys together, at most. */
const viewersSize = 16 * 1024 * 1024
const viewers = new LRUCache<string, MessageViewer>({
  max: 2000,
  maxSize: viewersSize,
  sizeCalculation: (_viewer, key) => key.length,
})
const keys = new WeakMap<readonly FolderRecord[], string>()

/** The names of folders seldom change; the list of records does with every sync. */
function namesKey(folders: readonly FolderRecord[]): string {
  const known = keys.get(folders)
  if (known !== undefined) return known
  const key = folders.map(({ path, delimiter }) => `${delimiter}${path}`).join('\n')
  keys.set(folders, key)
  return key
}

export function viewerOf(baseUrl: string, account: AccountRecord, folders: readonly FolderRecord[]): MessageViewer {
  const key = `${account.id} ${account.label} ${baseUrl}\n${namesKey(folders)}`
  const known = viewers.get(key)
  if (known !== undefined) return known
  const viewer = { account, urls: liteUrls(baseUrl), folderName: folderNamer(folders) }
  viewers.set(key, viewer)
  return viewer
}

interface Prepared {
  readonly viewer: MessageViewer
  readonly text: string
}

const prepared = new WeakMap<MessageRecord, Prepared>()

/** JSON of the message without contents and flags. */
function messageText(message: MessageRecord, viewer: MessageViewer): string {
  const known = prepared.get(message)
  if (known?.viewer === viewer) return known.text
  const text = JSON.stringify(presentMessage(message, viewer.account, viewer.urls, viewer.folderName))
  prepared.set(message, { viewer, text })
  return text
}

const preparedLists = new WeakMap<readonly MessageRecord[], Prepared>()

/** JSON array of the messages. The store answers the same array too, while a page of the index is unchanged. */
export function listText(messages: readonly MessageRecord[], viewer: MessageViewer): string {
  const known = preparedLists.get(messages)
  if (known?.viewer === viewer) return known.text
  const text = `[${messages.map((message) => messageText(message, viewer)).join(',')}]`
  preparedLists.set(messages, { viewer, text })
  return text
}

/** The same with more members at the end, in place of members of the same name. */
export function messageTextWith(
  message: MessageRecord,
  viewer: MessageViewer,
  more: Readonly<Record<string, unknown>>,
): string {
  const entries = Object.entries(more).filter(([, value]) => value !== undefined)
  if (entries.length === 0) return messageText(message, viewer)
  // `bodies` is there already: such a message is made anew.
  if ('bodies' in more)
    return JSON.stringify({ ...presentMessage(message, viewer.account, viewer.urls, viewer.folderName), ...more })
  const added = JSON.stringify(Object.fromEntries(entries))
  return `${messageText(message, viewer).slice(0, -1)},${added.slice(1)}`
}
