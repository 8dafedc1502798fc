/** Flags of a message, and its move to another folder. The answer comes when the mail server and the index have it. */
import type { z } from 'zod'
import {
  AppError,
  badParameter,
  type FolderRecord,
  isAppError,
  notFound,
  type Placement,
} from '../../../engine/index.ts'
import { type Call, defineRoute, type Route, tagged } from '../../route.ts'
import { success } from '../../values.ts'
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
  type MessagePattern,
  mustHoldMail,
} from '../find.ts'
import { presentFlags, presentWrittenFlags } from './present.ts'
import * as schema from './schema.ts'

/*
 * Flags of one message. Through a folder they are those of the message there; without one a change is made wherever the
 * message lies, so that it reads the same from everywhere.
 */

export interface Change {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** null = nothing is named. `prefix`: of the names of the parameters. */
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

/** Gmail has one set of flags for a message under all its labels: written everywhere, so the index has it at once. */
async function placesOf(call: Call, { account, message, placements }: Located): Promise<readonly Placement[]> {
  if (!message.identity.startsWith('gm:')) return placements
  const whole = await call.engine.store.messages.get(account.id, message.id)
  return whole?.placements ?? placements
}

/** Without a folder a message that was moved meanwhile is looked for once more. Answers the flags. */
export async function writeFlags(call: Call, find: () => Promise<Located>, change: Change): Promise<readonly string[]> {
  const located = await find()
  try {
    return await asNamed(located.name, writeAt(call, located, change, located.folder !== null))
  } catch (error) {
    if (located.folder !== null || !isAppError(error, 'not_found')) throw error
    return asNamed(located.name, writeAt(call, await find(), change, true))
  }
}

function write(call: Call, path: MessagePath, delimiter: string | undefined, change: Change) {
  return writeFlags(call, () => locate(call, path, delimiter), change)
}

/** Answers the flags of the first place. `mayLack`: it may have left some of its places, which the index will learn. */
async function writeAt(call: Call, located: Located, change: Change, mayLack: boolean): Promise<readonly string[]> {
  const { message, user } = located
  call.touchesImap(user)
  let written: readonly string[] | null = null
  let missing: AppError | null = null
  for (const place of await placesOf(call, located)) {
    try {
      const flags = await call.engine.accounts.setFlags(message, place, change)
      written ??= flags
    } catch (error) {
      if (!mayLack || !isAppError(error, 'not_found')) throw error
      missing = error
    }
  }
  if (written !== null) return written
  throw missing ?? new AppError('internal', `message ${message.id} lies nowhere`)
}

const getRoute = (path: MessagePattern) =>
  defineRoute(`GET ${path}/flags`, {
    summary: 'Get the flags of a message',
    query: schema.delimiterQuery,
    response: schema.flagsAnswer,
    async handler({ path, query }, call) {
      const located = await locate(call, path, query.delimiter)
      return { resource_url: `${located.url}/flags`, flags: presentFlags(located.placements[0].flags) }
    },
  })

const setRoute = (path: MessagePattern) =>
  defineRoute(`POST ${path}/flags`, {
    summary: 'Set or unset flags of a message',
    query: schema.delimiterQuery,
    body: schema.flagChange,
    response: schema.flagsWritten,
    async handler({ path, query, body }, call) {
      const change = changeOf(body)
      return { success: true, flags: presentWrittenFlags(await write(call, path, query.delimiter, change)) }
    },
  })

function readRoute(method: 'POST' | 'DELETE', path: MessagePattern): Route {
  const change = method === 'POST' ? { add: ['\\Seen'], remove: [] } : { add: [], remove: ['\\Seen'] }
  return defineRoute(`${method} ${path}/read`, {
    summary: method === 'POST' ? 'Mark a message as read' : 'Mark a message as unread',
    query: schema.delimiterQuery,
    response: success,
    async handler({ path, query }, call) {
      await write(call, path, query.delimiter, change)
      return { success: true }
    },
  })
}

/**
 * A folder to write to. One that the index does not know may be new: the server is asked before the answer is 404.
 * `parameter` names it.
 */
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

/** null when the message has moved from the folder of the path to the new one already. Else throws `error`. */
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

const moveRoute = (path: MessagePattern) =>
  defineRoute(`PUT ${path}`, {
    summary: 'Move a message to another folder',
    description:
      'Through a folder it leaves that one, also where the same mail lies in it twice. Without a folder in the path it leaves the first of ' +
      'its folders (INBOX, if it lies there) and stays in the others; one that lies in the new folder already stays as it is. To move it ' +
      'again to where it is changes nothing.',
    query: schema.moveQuery,
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

export const messageWriteRoutes = tagged('Messages', [
  ...messagePaths.flatMap((path) => [
    getRoute(path),
    setRoute(path),
    readRoute('POST', path),
    readRoute('DELETE', path),
  ]),
  ...messagePaths.map(moveRoute),
])
