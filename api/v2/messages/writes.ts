/**
 * /2.0/accounts/{id}/messages: flags, copy and move within and across sources, removal, and new messages. A write is
 * answered when the mail server and the index have it.
 */
import { Readable } from 'node:stream'
import { z } from 'zod'
import {
  type AccountRecord,
  badParameter,
  type FolderRecord,
  isAppError,
  isMarked,
  notFound,
  type Placement,
  readAppended,
  spool,
  type Spooled,
  streamBytes,
  withCrlf,
} from '../../../engine/index.ts'
import { urlsOf } from '../../addresses.ts'
import * as examples from '../../examples.ts'
import { asNamed, findAccount, findKnownMessage, folderNamed, type Located, type Mailbox } from '../../lite/find.ts'
import { mustBeRead } from '../../lite/unread.ts'
import { namedFlags } from '../../lite/messages/present.ts'
import * as lite from '../../lite/messages/schema.ts'
import { type Change, changeOf, destination, wantedFlags, writeFlags } from '../../lite/messages/writes.ts'
import { type Call, defineRoute, deprecated, routesAt } from '../../route.ts'
import { filledText, flag, optional, success, text } from '../../values.ts'
import {
  byUse,
  findInSources,
  liteMessage,
  locateAnywhere,
  type MessagePath,
  messagePaths,
  namedIn,
  sentBefore,
} from '../find.ts'
import { flagsView } from './reads.ts'

const setFlags = routesAt('POST', messagePaths, '/flags', {
  instead: `POST ${liteMessage}/flags`,
  summary: 'Set or unset flags of a message',
  body: lite.flagChange,
  response: examples.answer({ success: [z.boolean(), true], flags: [flagsView, examples.exampleOf(flagsView)] }),
  async handler({ path, body }, call) {
    const written = await writeFlags(call, await locateAnywhere(call, path), changeOf(body))
    return { success: true, flags: namedFlags(written) }
  },
})

const folderName = filledText.meta({
  description: 'full path of the folder, or its use, like `\\Sent`',
  examples: ['Archive'],
})
const newFlags = lite.flagParameters('flag_', (name) => `1 = it is ${name} there, 0 = it is not`)

function changed(flags: readonly string[], change: Change | null): readonly string[] {
  if (change === null) return flags
  return [...new Set([...flags, ...change.add])].filter((one) => !change.remove.includes(one))
}

/** Finds a shown or hidden folder: a message may be moved to the trash. */
function folderOf(folders: readonly FolderRecord[], name: string): FolderRecord | null {
  return name.startsWith('\\') ? byUse(folders, name) : folderNamed(folders, name)
}

export function destinationOf(call: Call, mailbox: Mailbox, name: string, parameter: string): Promise<FolderRecord> {
  return destination(call, mailbox, name, parameter, (folders) => folderOf(folders, name))
}

const transferBody = z
  .object({
    dst_folder: folderName,
    dst_source: optional(
      filledText,
      'label of the source of that folder; absent = that of the message',
      examples.label,
    ),
    move: optional(flag, '1 = the message is moved; else it is copied'),
    ...newFlags,
  })
  .meta({ examples: [{ dst_folder: 'Archive', move: 1 }] })

const transfer = routesAt('POST', messagePaths, '', {
  instead: `PUT ${liteMessage}`,
  summary: 'Copy or move a message to another folder or source',
  description:
    'Within a source a move leaves the first of its folders (INBOX, if it lies there). To another source the message goes with its flags, ' +
    'its time of arrival and byte for byte; a move takes it out of all folders of the first one once the other has it. Where the folder ' +
    'has it already, no second copy is made.',
  body: transferBody,
  response: success,
  async handler({ path, body }, call) {
    const located = await locateAnywhere(call, path).catch((error: unknown) => sentAlready(call, path, body, error))
    if (located === null) return { success: true }
    const { dst_folder: name, dst_source: label } = body
    const named = label === undefined ? located : await findAccount(call, path.id, label)
    const mailbox = isSameMailbox(named.account, located.account) ? located : named
    const to = await destinationOf(call, mailbox, name, 'dst_folder')
    call.touchesImap(located.user)
    const sent = body.move === true && label !== undefined ? await sentBefore(call, located, mailbox, to) : null
    const kind = body.move === true && sent === null ? 'move' : 'copy'
    const transferred = { located: sent ?? located, to, kind, change: wantedFlags('flag_', body) } as const
    const work =
      mailbox.account.id === transferred.located.account.id
        ? transferWithin(call, transferred)
        : transferAcross(call, transferred).catch((error: unknown) => sentAlready(call, path, body, error))
    await asNamed(located.name, work, { name, path: to.path })
    return { success: true }
  },
})

/** Two sources may have the same mailbox: a move between them is a move within the mailbox. */
function isSameMailbox(one: AccountRecord, other: AccountRecord): boolean {
  const { server, port, username } = one
  return other.server === server && other.port === port && other.username === username
}

interface Transfer {
  readonly located: Located
  readonly to: FolderRecord
  readonly kind: 'move' | 'copy'
  /** null = the flags stay as they are. */
  readonly change: Change | null
}

/** Returns null when the folder has the moved message already, by its Message-ID. Else throws `error`. */
async function sentAlready(
  call: Call,
  { id, message_id }: MessagePath,
  { dst_source: label, dst_folder: name, move }: z.output<typeof transferBody>,
  error: unknown,
): Promise<null> {
  if (!isAppError(error, 'not_found') || error.details['kind'] !== 'message') throw error
  if (move !== true || label === undefined) throw error
  const { user, account } = await findAccount(call, id, label)
  const found = await findInSources(call, user, 'message', message_id, (one) => findKnownMessage(call, one, message_id))
  const { emailMessageId } = found.message
  const to = folderOf(await call.engine.store.folders.list(account.id), name)
  if (to !== null && emailMessageId !== null && (await namedIn(call, to, emailMessageId)).length > 0) return null
  await mustBeRead(call, account, to)
  throw error
}

/** Within the source. The flags come last: a call that is repeated after they failed finds the message in place. */
async function transferWithin(call: Call, { located, to, kind, change }: Transfer): Promise<void> {
  const { accounts, store } = call.engine
  const { account, message, placements } = located
  const isThere = placements.some(({ folderId }) => folderId === to.id)
  if (isThere) await keepIn(call, located, [to.id])
  if (!isThere && kind === 'move') await accounts.move(message, null, to)
  else if (!isThere) await accounts.copy(message, keptPlace(placements), to)
  else if (kind === 'move') await leaveInbox(call, located, to)
  if (change === null) return
  const now = await store.messages.get(account.id, message.id)
  const at = now?.placements.find(({ folderId }) => folderId === to.id)
  if (now === null || at === undefined) throw notFound('message', message.id)
  await accounts.setFlags(now, at, change)
}

export function keptPlace(placements: Located['placements']): Placement {
  return placements.find((place) => !isMarked(place)) ?? placements[0]
}

/**
 * Removes the flag \Deleted from the message in the folders: the server may expunge a \Deleted message at any moment. A
 * message that is \Deleted in all its folders stays as it is.
 */
export async function keepIn(
  call: Call,
  { message, placements }: Located,
  folderIds: readonly string[],
): Promise<void> {
  const kept = new Set(placements.filter((place) => !isMarked(place)).map(({ folderId }) => folderId))
  if (kept.size === 0) return
  const unmark = { add: [], remove: ['\\Deleted'] }
  for (const place of placements.filter(({ folderId }) => folderIds.includes(folderId) && !kept.has(folderId)))
    await call.engine.accounts.setFlags(message, place, unmark)
}

/** Ends a move to a folder that already has the message. It leaves only INBOX, so a repeated call removes no more. */
async function leaveInbox(call: Call, { account, message, placements }: Located, to: FolderRecord): Promise<void> {
  const { accounts, store } = call.engine
  const inbox = placements.find(({ path }) => path === 'INBOX')
  if (inbox === undefined || inbox.folderId === to.id) return
  await accounts.remove(message, [inbox.folderId]).catch(async (error: unknown) => {
    const now = isAppError(error, 'not_found') ? await store.messages.get(account.id, message.id) : null
    const isDone = now?.placements.some(({ folderId }) => folderId === to.id) === true
    if (!isDone) throw error
  })
}

/** To another source, without \Deleted: the flag belongs to an interrupted removal, or to another mail program. */
async function transferAcross(call: Call, { located, to, kind, change }: Transfer): Promise<void> {
  const { message, placements } = located
  await call.reserve(streamBytes)
  const flags = placements[0].flags.filter((one) => one !== '\\Deleted')
  await call.engine.accounts.transfer({ kind, message, to, flags: changed(flags, change), change })
}

const remove = routesAt('DELETE', messagePaths, '', {
  instead: `PUT ${liteMessage}`,
  summary: 'Remove a message from all folders of its source',
  description: 'For good, on the mail server: to put it in the trash, move it there.',
  response: success,
  async handler({ path }, call) {
    const { user, name, message } = await locateAnywhere(call, path)
    call.touchesImap(user)
    await asNamed(name, call.engine.accounts.remove(message, null))
    return { success: true }
  },
})

const append = defineRoute('POST /2.0/accounts/{id}/messages', {
  instead: '',
  summary: 'Add a message to a folder',
  description:
    'As a file part `message` of multipart/form-data, of at most MAILROOM_MESSAGE_LIMIT bytes. LF alone becomes CRLF. It arrives now; each call adds one.',
  upload: 'message',
  body: z
    .object({
      dst_folder: folderName,
      dst_source: optional(filledText, 'label of the source; absent = the first one', examples.label),
      message: optional(text, 'the whole message (RFC 5322): a file part of multipart/form-data, or text'),
      ...newFlags,
    })
    .meta({ examples: [{ dst_folder: 'Archive', message: 'From: ben@example.org\r\nSubject: Offer\r\n\r\nHello' }] }),
  response: examples.answer({
    success: [z.boolean(), true],
    message_id: [z.string().optional(), examples.ids.message],
    email_message_id: [z.string().optional(), '<offer-1@example.org>'],
    resource_url: [z.string().optional(), examples.v2Urls.message],
  }),
  async handler({ path, body }, call) {
    const mailbox = await findAccount(call, path.id, body.dst_source ?? '0')
    const to = await destinationOf(call, mailbox, body.dst_folder, 'dst_folder')
    await using spooled = call.upload === null ? await spooledText(call, body.message) : null
    const literal = call.upload ?? spooled
    if (literal === null) throw badParameter('message', 'is required')
    const { emailMessageId } = await readAppended(literal.head)
    const { account, user } = mailbox
    call.touchesImap(user)
    const request = { literal, flags: changed([], wantedFlags('flag_', body)), internalDate: Date.now() }
    const appending = call.engine.accounts.append(to, request)
    const known = await asNamed('', appending, { name: body.dst_folder, path: to.path })
    // null = the server reported no UID, or the index lacks it: the message is looked up by its Message-ID.
    const [newest] = known === null && emailMessageId !== null ? await namedIn(call, to, emailMessageId) : []
    const id = known ?? newest?.id
    return {
      success: true,
      ...(id === undefined ? {} : { message_id: id, resource_url: urlsOf(call).message(account, id) }),
      ...(emailMessageId === null ? {} : { email_message_id: `<${emailMessageId}>` }),
    }
  },
})

/** Spools a message that is a text parameter. Such a text is no larger than other parameters. */
async function spooledText(call: Call, message: string | undefined): Promise<Spooled | null> {
  if (!message) return null
  const { MAILROOM_DATA_DIR: directory, MAILROOM_MESSAGE_LIMIT: most } = call.engine.config
  return spool(withCrlf(Readable.from([Buffer.from(message)])), { directory, most })
}

export const v2MessageWriteRoutes = deprecated('messages', [append, transfer, remove, setFlags].flat())
