/** Routes to list and change the folders of a message, or of all messages of a thread; and DELETE of a thread. */
import { z } from 'zod'
import { badParameter, type FolderRecord, isMarked, isView, notFound } from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import { asNamed, type Located } from '../../lite/find.ts'
import { folderFields, nameFolder } from '../../lite/folders.ts'
import { type Call, defineRoute, deprecated } from '../../route.ts'
import { documented, filledText, optional, success } from '../../values.ts'
import { liteMessage, locateAnywhere, locateThread, type MessagePath, messagePaths } from '../find.ts'
import { type ThreadPath, threadPath } from '../find.ts'
import { destinationOf, keepIn, keptPlace } from './writes.ts'

const owners = [...messagePaths, threadPath] as const
type OwnerPattern = (typeof owners)[number]

const isThread = (pattern: OwnerPattern): boolean => pattern === threadPath

/** Finds the message of the path, or the shown messages of the thread of the path. */
async function locateAll(call: Call, path: MessagePath | ThreadPath): Promise<Owned> {
  if ('message_id' in path) return [await locateAnywhere(call, path)]
  return wholeThread(path, await locateThread(call, path), 'messages')
}

/** A thread that was read in part is changed in no part. */
function wholeThread(
  { thread_id }: ThreadPath,
  found: Awaited<ReturnType<typeof locateThread>>,
  which: 'messages' | 'shown',
): Owned {
  const [first, ...more] = found[which]
  if (first === undefined) throw notFound('thread', thread_id)
  if (!found.whole.isWhole) throw badParameter('thread_id', 'too long a thread: name its messages one by one')
  return [first, ...more]
}

/** All messages lie in one source. */
type Owned = readonly [Located, ...Located[]]

const { name, symbolic_name, xlist_name } = folderFields

const list = (pattern: OwnerPattern) =>
  defineRoute(`GET ${pattern}/folders`, {
    instead: `GET ${liteMessage}`,
    summary: isThread(pattern)
      ? 'List the folders that messages of a thread lie in'
      : 'List the folders that a message lies in',
    description: 'In the order of its `folders`, also those that lists hide.',
    response: z.array(examples.answer({ name, symbolic_name, xlist_name })),
    async handler({ path }, call) {
      const all = await locateAll(call, path)
      const known = await call.engine.store.folders.list(all[0].account.id)
      const folders = new Map(known.map((one) => [one.id, one]))
      const ids = new Set(all.flatMap(({ placements }) => placements.map(({ folderId }) => folderId)))
      return [...ids].flatMap((id) => folders.get(id) ?? []).map((folder) => nameFolder(folder))
    },
  })

const someFolders = (description: string, ...shown: readonly string[]) =>
  optional(
    documented(
      z.union([filledText.transform((one) => [one]), z.array(filledText).max(100)], {
        error: 'expected a folder, or a list of folders',
      }),
      { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
    ),
    description,
    ...shown,
  )

const change = (pattern: OwnerPattern) =>
  defineRoute(`POST ${pattern}/folders`, {
    instead: `PUT ${liteMessage}`,
    summary: isThread(pattern)
      ? 'Put the messages of a thread into folders, take them out of some, or both'
      : 'Put a message into folders, take it out of some, or both',
    description: 'Lists are arrays in JSON, and `add[]` or `remove[]` as often as needed in forms and queries.',
    body: z
      .object({
        add: someFolders('folder to put it into: full path or use; or a list of them', 'Projects'),
        remove: someFolders('folder to take it out of; it has to lie in another one then; or a list of them'),
      })
      .meta({ examples: [{ add: 'Archive', remove: 'INBOX' }] }),
    response: success,
    async handler({ path, body }, call) {
      const all = await locateAll(call, path)
      if (body.add === undefined && body.remove === undefined)
        throw badParameter('add', 'at least one of add and remove is required')
      const add = await named(call, all, body.add ?? [], 'add')
      const leave = await named(call, all, body.remove ?? [], 'remove')
      const stays = all.map(({ placements }) =>
        placements.map(({ folderId }) => folderId).filter((folderId) => !leave.some(({ id }) => id === folderId)),
      )
      if (add.length === 0 && stays.some((ids) => ids.length === 0))
        throw badParameter('remove', 'the message lies in no other folder; DELETE removes it')
      const ids = add.map(({ id }) => id)
      for (const [index, located] of all.entries()) await lieIn(call, located, stays[index] ?? [], ids)
      return { success: true }
    },
  })

/** Finds the folders one by one. Throws `not_found` for a folder that the source does not have. */
function named(call: Call, [first]: Owned, names: readonly string[], parameter: string): Promise<FolderRecord[]> {
  return Array.fromAsync(names, (name) => destinationOf(call, first, name, parameter))
}

const folderEntry = z.union([
  z.string(),
  z.looseObject({ name: z.string().optional(), symbolic_name: z.string().optional() }),
])

const nameOf = (entry: z.output<typeof folderEntry>): string =>
  typeof entry === 'string' ? entry : entry.name || entry.symbolic_name || ''

const folderList = documented(
  z.preprocess(listed, z.array(folderEntry).min(1, 'must name at least one folder').max(100)),
  {
    type: 'array',
    items: { anyOf: [{ type: 'string' }, { type: 'object' }] },
    description: 'names of folders, or objects with `name` or `symbolic_name`; text is read as JSON',
  },
)

const set = (pattern: OwnerPattern) =>
  defineRoute(`PUT ${pattern}/folders`, {
    instead: `PUT ${liteMessage}`,
    summary: isThread(pattern)
      ? 'Say in which folders the messages of a thread lie'
      : 'Say in which folders a message lies',
    description:
      'A JSON array may also be the whole body. What is not named is left, but for folders that only show what lies in others (`\\All`).',
    listBody: 'folders',
    body: z.object({ folders: folderList }).meta({ examples: [{ folders: [{ name: 'Archive' }] }] }),
    response: success,
    async handler({ path, body }, call) {
      const all = await locateAll(call, path)
      const wanted = await named(call, all, body.folders.map(nameOf), 'folders')
      const folders = await call.engine.store.folders.list(all[0].account.id)
      const views = folders.filter(isView).map(({ id }) => id)
      // A mail server with an id for each message keeps a message that lies only in a view; other servers lose it.
      const isLost = ({ message, placements }: Located): boolean =>
        message.hostedMessageId === null && !placements.every(({ folderId }) => views.includes(folderId))
      if (wanted.every(isView) && all.some(isLost))
        throw badParameter('folders', 'must name one that does not only show what lies in others')
      const ids = wanted.map(({ id }) => id)
      for (const located of all) await lieIn(call, located, views, ids)
      return { success: true }
    },
  })

/** Forms have the list as JSON text; text that is not a JSON array is one name. */
function listed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    const parsed: unknown = JSON.parse(value)
    return Array.isArray(parsed) ? parsed : [value]
  } catch {
    return [value]
  }
}

/** Copies the message into the folders of `ids`, then takes it out of all folders except these and those of `stay`. */
async function lieIn(call: Call, located: Located, stay: readonly string[], ids: readonly string[]): Promise<void> {
  call.signal.throwIfAborted()
  const { accounts, store } = call.engine
  const { user, account, message, placements } = located
  const here = new Set(placements.map(({ folderId }) => folderId))
  const leave = [...here.difference(new Set([...stay, ...ids]))]
  const enter = (await store.folders.list(account.id)).filter(({ id }) => ids.includes(id) && !here.has(id))
  const isDone = leave.length + enter.length === 0 && !placements.some(isMarked)
  if (isDone) return
  call.touchesImap(user)
  const work = async (): Promise<void> => {
    await keepIn(call, located, ids)
    for (const to of enter) await accounts.copy(message, keptPlace(placements), to)
    if (leave.length === 0) return
    const now = await store.messages.get(account.id, message.id)
    await accounts.remove(now ?? message, leave)
  }
  await asNamed(located.name, work())
}

const remove = defineRoute(`DELETE ${threadPath}`, {
  instead: '',
  summary: 'Remove the messages of a thread from all folders of their source',
  description: 'For good, on the mail server, but for those that lists hide.',
  response: success,
  async handler({ path }, call) {
    for (const { user, name: id, message } of wholeThread(path, await locateThread(call, path), 'shown')) {
      call.signal.throwIfAborted()
      call.touchesImap(user)
      await asNamed(id, call.engine.accounts.remove(message, null))
    }
    return { success: true }
  },
})

export const v2MessageFolderRoutes = deprecated('messages', [
  ...owners.flatMap((pattern) => [list(pattern), change(pattern), set(pattern)]),
  remove,
])
