/** Messages from the index to the wire, as objects and as prepared JSON text. */
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
  type HiddenPlaces,
  type MessageAddresses,
  type MessageQuery,
  type MessageRecord,
} from '../../../engine/index.ts'
import { type Urls, urlsOf, seconds } from '../../addresses.ts'
import type { Call } from '../../route.ts'
import { findFolder } from '../find.ts'
import {
  type attachmentView,
  type bodyPartView,
  type FlagName,
  flagNames,
  type flagsView,
  type messageView,
  type Wishes,
  type writtenFlagsView,
} from './schema.ts'

export type MessageView = z.input<typeof messageView>
export type Contents = Partial<Pick<MessageView, 'bodies' | 'headers' | 'body_error'>>

/** How one version of the API shows messages. */
export interface MessageForm {
  present(message: MessageRecord, viewer: MessageViewer): object
  /** What is asked for besides, under the names of this version. */
  flags(flags: readonly string[]): object
  contents(contents: Contents): object
  /** What only this version has besides; undefined when nothing of it is asked for. */
  beside(call: Call, wishes: Wishes): Beside | undefined
  folder(
    call: Call,
    account: AccountRecord,
    name: string,
    delimiter: string | undefined,
    folders: readonly FolderRecord[],
  ): Promise<FolderRecord>
  /** Filters that only this version has, and no index; null when none of them is asked for. */
  sieve(account: AccountRecord, folder: FolderRecord | null, wishes: Wishes): Sieve | null
  /** Which folders its lists leave out, and whether what is flagged \Deleted too. */
  hides(account: AccountRecord, folders: readonly FolderRecord[]): HiddenPlaces
}

/** Lets messages of a list through that the index has found, by `query` besides. */
export interface Sieve {
  readonly query: Pick<MessageQuery, 'hasAttachments'>
  passes(message: MessageRecord): boolean
}

/** Looks up for all messages of a page at once what each of them has besides. */
export type Beside = (
  account: AccountRecord,
  messages: readonly MessageRecord[],
) => Promise<(message: MessageRecord) => object>

export const liteForm: MessageForm = {
  present: presentMessage,
  flags: (flags) => ({ flags: presentFlags(flags) }),
  contents: (contents) => contents,
  beside: () => undefined,
  sieve: () => null,
  folder: findFolder,
  hides: () => ({ folderIds: [], deleted: false }),
}

function presentMessage(message: MessageRecord, viewer: MessageViewer): MessageView {
  return {
    ...presentFacts(message, viewer),
    sent_at: seconds(message.sentAt),
    received_at: seconds(message.receivedAt),
    addresses: presentAddresses(message.addresses),
    attachments: message.attachments.map(presentAttachment),
    bodies: message.bodies.map(presentBody),
  }
}

/** What is the same in both versions. */
export function presentFacts(message: MessageRecord, { account, urls, folderName }: MessageViewer) {
  return {
    ...describeMessage(message, peopleOf(message), pathsOf(message), folderName),
    list_headers: emptyAsList(message.listHeaders),
    in_reply_to: bracketed(message.inReplyTo),
    received_headers: [...message.receivedHeaders],
    resource_url: urls.message(account, message.id),
  }
}

export function peopleOf({ addresses }: MessageRecord): Address[] {
  const { from, sender, replyTo, to, cc, bcc } = addresses
  return from.concat(sender, replyTo, to, cc, bcc)
}

export function pathsOf({ placements }: MessageRecord): string[] {
  return placements.map(({ path }) => path)
}

function emptyAsList<T extends object>(map: T): T | never[] {
  return Object.keys(map).length === 0 ? [] : map
}

const addressFields = [
  ['from', 'from'],
  ['sender', 'sender'],
  ['replyTo', 'reply_to'],
  ['to', 'to'],
  ['cc', 'cc'],
  ['bcc', 'bcc'],
] as const satisfies readonly (readonly [keyof MessageAddresses, string])[]

export function presentAddresses(addresses: MessageAddresses): MessageView['addresses'] {
  const given: Exclude<MessageView['addresses'], []> = {}
  for (const [field, wire] of addressFields)
    if (addresses[field].length > 0) given[wire] = addresses[field].map(presentAddress)
  return emptyAsList(given)
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
  const { seen, ...others } = namedFlags(flags)
  return { read: seen, ...others }
}

export function namedFlags(flags: readonly string[]): Record<FlagName, boolean> {
  const named = Object.entries(flagNames).map(([name, imapFlag]) => [name, flags.includes(imapFlag)])
  return Object.fromEntries(named) as Record<FlagName, boolean>
}

/** What goes into a message's text besides the record. */
export interface MessageViewer {
  readonly account: AccountRecord
  readonly urls: Urls
  /** Server path → the name that callers use. */
  readonly folderName: (path: string) => string
}

export function viewerOf(call: Call, account: AccountRecord, folders: readonly FolderRecord[]): MessageViewer {
  return { account, urls: urlsOf(call), folderName: folderNamer(folders) }
}
