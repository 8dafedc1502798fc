/**
 * Routes for the flags of a message, and for its move to another folder. A write is answered when the mail server and
 * the index have it. Through a folder a call concerns the flags of the message there; without a folder it changes the
 * flags in all folders of the message, so that the message reads the same from everywhere.
 */
import { z } from 'zod'
import { badParameter, type FolderRecord, isAppError, notFound, type Placement } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import { type Call, routesAt, tagged } from '../../route.ts'
import { filledText, success } from '../../values.ts'
import {
  asNamed,
  findAccount,
  findMessage,
  folderNamed,
  inFolder,
  locate,
  type Located,
  type Mailbox,
  type MessagePath,
  messagePaths,
  mustHoldMail,
} from '../find.ts'
import { delimiter } from '../folders.ts'
import { presentFlags, presentWrittenFlags } from './present.ts'
import * as schema from './schema.ts'

export interface Change {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** Returns null when no flag is given. `prefix`: of the names of the parameters. */
export function wantedFlags<P extends string>(
  prefix: P,
  wanted: { readonly [Name in `${P}${schema.FlagName}`]?: boolean | undefined },
): Change | null {
  const entries = Object.entries(schema.flagNames) as [schema.FlagName, string][]
  const flags = (value: boolean): string[] =>
    entries.flatMap(([name, imapFlag]) => (wanted[`${prefix}${name}`] === value ? [imapFlag] : []))
  const change = { add: flags(true), remove: flags(false) }
  return change.add.length + change.remove.length > 0 ? change : null
}

export function changeOf(wanted: z.output<typeof schema.flagChange>): Change {
  const change = wantedFlags('', wanted)
  if (change !== null) return change
  throw badParameter('seen', 'at least one of seen, answered, flagged, deleted and draft is required')
}

/** The placements to write. Gmail has one set of flags for all labels of a message, so the index gets it for all. */
async function placesOf(call: Call, { account, message, placements }: Located): Promise<readonly Placement[]> {
  if (!message.identity.startsWith('gm:')) return placements
  const whole = await call.engine.store.messages.get(account.id, message.id)
  return whole?.placements ?? placements
}

/** Returns the new flags in the first placement. Placements that have left the server are skipped. */
export async function writeFlags(call: Call, located: Located, change: Change): Promise<readonly string[]> {
  const { message, user, name } = located
  call.touchesImap(user)
  const unlessGone = (error: unknown): null => {
    if (!isAppError(error, 'not_found')) throw error
    return null
  }
  const written = await Array.fromAsync(await placesOf(call, located), (place) =>
    call.engine.accounts.setFlags(message, place, change).catch(unlessGone),
  )
  const flags = written.find((one) => one !== null)
  if (flags === undefined) throw notFound('message', name)
  return flags
}

const getFlags = routesAt('GET', messagePaths, '/flags', {
  summary: 'Get the flags of a message',
  query: schema.delimiterQuery,
  response: examples.answer({ resource_url: [z.string(), examples.urls.message], flags: schema.flagsView }),
  async handler({ path, query }, call) {
    const located = await locate(call, path, query.delimiter)
    return { resource_url: `${located.url}/flags`, flags: presentFlags(located.placements[0].flags) }
  },
})

const setFlags = routesAt('POST', messagePaths, '/flags', {
  summary: 'Set or unset flags of a message',
  query: schema.delimiterQuery,
  body: schema.flagChange,
  response: examples.answer({ success: [z.boolean(), true], flags: schema.writtenFlagsView }),
  async handler({ path, query, body }, call) {
    const flags = await writeFlags(call, await locate(call, path, query.delimiter), changeOf(body))
    return { success: true, flags: presentWrittenFlags(flags) }
  },
})

const mark = (method: 'POST' | 'DELETE', summary: string, change: Change) =>
  routesAt(method, messagePaths, '/read', {
    summary,
    query: schema.delimiterQuery,
    response: success,
    async handler({ path, query }, call) {
      await writeFlags(call, await locate(call, path, query.delimiter), change)
      return { success: true }
    },
  })
const markRead = mark('POST', 'Mark a message as read', { add: ['\\Seen'], remove: [] })
const markUnread = mark('DELETE', 'Mark a message as unread', { add: [], remove: ['\\Seen'] })

/** Finds the folder to write to. Asks the server before the 404: the folder may be newer than the index. */
export async function destination(
  call: Call,
  { user, account }: Mailbox,
  name: string,
  parameter: string,
  lookUp: (folders: readonly FolderRecord[]) => FolderRecord | null,
): Promise<FolderRecord> {
  let found = lookUp(await call.engine.store.folders.list(account.id))
  if (found === null) {
    call.touchesImap(user)
    found = lookUp(await call.engine.accounts.refreshFolders(account.id))
  }
  if (found === null) throw notFound('folder', name)
  mustHoldMail(found, parameter)
  return found
}

/** Returns null when the message has already moved from the folder of the path to the new one. Else throws `error`. */
async function movedAlready(
  call: Call,
  path: MessagePath,
  name: string,
  delimiter: string | undefined,
  error: unknown,
): Promise<null> {
  if (!isAppError(error, 'not_found') || error.details['kind'] !== 'message') throw error
  const { account } = await findAccount(call, path.id, path.label)
  const message = await findMessage(call, account, path.message_id)
  const to = folderNamed(await call.engine.store.folders.list(account.id), name, delimiter)
  if (to === null) throw error
  await inFolder(call, message, to, path.message_id)
  return null
}

const move = routesAt('PUT', messagePaths, '', {
  summary: 'Move a message to another folder',
  description:
    'Through a folder it leaves that one, also where the same mail lies in it twice. Without a folder in the path it leaves the first of ' +
    'its folders (INBOX, if it lies there) and stays in the others; one that lies in the new folder already stays as it is. To move it ' +
    'again to where it is changes nothing.',
  query: z.object({
    delimiter,
    new_folder_id: filledText.meta({ description: 'full path of the folder to move it to', examples: ['Archive'] }),
  }),
  response: success,
  async handler({ path, query }, call) {
    const { new_folder_id: name, delimiter } = query
    const located = await locate(call, path, delimiter).catch((error: unknown) =>
      movedAlready(call, path, name, delimiter, error),
    )
    if (located === null) return { success: true }
    const { user, message, folder, placements } = located
    const to = await destination(call, located, name, 'new_folder_id', (all) => folderNamed(all, name, delimiter))
    const stays = folder === null ? placements.some((place) => place.folderId === to.id) : folder.id === to.id
    if (stays) return { success: true }
    call.touchesImap(user)
    const from = folder === null ? null : placements[0]
    await asNamed(located.name, call.engine.accounts.move(message, from, to), { name, path: to.path })
    return { success: true }
  },
})

export const messageWriteRoutes = tagged('Messages', [getFlags, setFlags, markRead, markUnread, move].flat())
