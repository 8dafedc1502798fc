/** Turns message records into the objects of the wire, in the shape of lite; and what both API versions share. */
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
import { urlsOf, seconds } from '../../addresses.ts'
import type { Call } from '../../route.ts'
import { findFolder } from '../find.ts'
import { given } from '../../values.ts'
import * as schema from './schema.ts'

export type MessageView = z.input<typeof schema.messageView>
export type Contents = Partial<Pick<MessageView, 'bodies' | 'headers' | 'body_error'>>

/** How one version of the API shows messages. */
export interface MessageForm {
  present(message: MessageRecord, viewer: MessageViewer): object
  /** The field of `include_flags`. */
  flags(flags: readonly string[]): object
  /** The fields of `include_body` and `include_headers`. */
  contents(contents: Contents): object
  /** Further fields of this version; undefined when the call wants none of them. */
  beside(call: Call, wishes: schema.Wishes): Beside | undefined
  folder(
    call: Call,
    account: AccountRecord,
    name: string,
    delimiter: string | undefined,
    folders: readonly FolderRecord[],
  ): Promise<FolderRecord>
  /** Filters of this version that no index serves; null when the call has none of them. */
  sieve(account: AccountRecord, folder: FolderRecord | null, wishes: schema.Wishes): Sieve | null
  /** The folders that lists leave out, and whether lists leave out messages that are flagged \Deleted. */
  hides(account: AccountRecord, folders: readonly FolderRecord[]): HiddenPlaces
}

/** Filters the messages of a list that the index has found. */
export interface Sieve {
  /** Narrows the search in the index. */
  readonly query: Pick<MessageQuery, 'hasAttachments'>
  passes(message: MessageRecord): boolean
}

/** Looks up the further fields of all messages of a page at once. */
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

/** Fields that are the same in both versions. */
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

export function presentAddresses(addresses: MessageAddresses): MessageView['addresses'] {
  const { from, sender, replyTo, to, cc, bcc } = addresses
  return emptyAsList(
    given({
      from: listOrNone(from),
      sender: listOrNone(sender),
      reply_to: listOrNone(replyTo),
      to: listOrNone(to),
      cc: listOrNone(cc),
      bcc: listOrNone(bcc),
    }),
  )
}

function listOrNone(list: readonly Address[]) {
  return list.length === 0 ? undefined : list.map(({ name, email }) => ({ name, email }))
}

export function presentAttachment(attachment: AttachmentRecord): z.input<typeof schema.attachmentView> {
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

export function presentBody(body: BodyPartRecord): z.input<typeof schema.bodyPartView> {
  return {
    body_section: body.section,
    type: body.type,
    encoding: body.encoding,
    size: body.size,
    ...(body.charset === null ? {} : { charset: body.charset }),
  }
}

/** The message's flags in the folder, or in its first folder when it does not lie there. */
export function flagsIn(message: MessageRecord, folderId?: string): readonly string[] {
  const placement = message.placements.find((one) => one.folderId === folderId) ?? message.placements[0]
  return placement?.flags ?? []
}

export function presentFlags(flags: readonly string[]): z.input<typeof schema.flagsView> {
  const { read, answered, flagged, draft } = presentWrittenFlags(flags)
  return { read, answered, flagged, draft, raw: [...flags] }
}

/** The answer to a change of flags names `deleted` too. */
export function presentWrittenFlags(flags: readonly string[]): z.input<typeof schema.writtenFlagsView> {
  const { seen, ...others } = namedFlags(flags)
  return { read: seen, ...others }
}

export function namedFlags(flags: readonly string[]): Record<schema.FlagName, boolean> {
  const named = Object.entries(schema.flagNames).map(([name, imapFlag]) => [name, flags.includes(imapFlag)])
  return Object.fromEntries(named) as Record<schema.FlagName, boolean>
}

export type MessageViewer = Readonly<ReturnType<typeof viewerOf>>

/** Everything that a presented message depends on besides its record. */
export function viewerOf(call: Call, account: AccountRecord, folders: readonly FolderRecord[]) {
  return { account, urls: urlsOf(call), folderName: folderNamer(folders) }
}
