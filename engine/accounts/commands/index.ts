/**
 * Commands of the API on an account's command connection: reading what only the server has (reading.ts), writing
 * (writing.ts), giving a message to another account, and folders as a whole: listed, made, removed,
 * emptied of what is \Deleted, brought up to date.
 *
 * Each command is answered within MAILROOM_COMMAND_TIMEOUT (one that sends a message has longer) or rejects with an
 * AppError: `account_disabled` and `account_unavailable` (with the reason and when the next try is), `timeout`,
 * `server_refused` (the server's own NO), `not_found`, `throttled`, `network` … Streams reject or are destroyed with
 * the same errors. What has begun goes on after that, as long as it makes progress.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import { spool, type Spooled } from '../../spool.ts'
import type { FolderRecord, MessageRecord } from '../../store/records.ts'
import { isMarked, liesAt } from '../../store/rows.ts'
import { createExclusiveByKey } from '../../scheduling.ts'
import { normalFlags } from '../plan.ts'
import type { FlagChange, Placed } from '../session-types.ts'
import {
  byReader,
  type CommandDeps,
  knownThere,
  onLink,
  openFirst,
  unlessRefused,
  type WriteContext,
  writing,
} from './message-location.ts'
import { digestOf, flagsAt, readCommands } from './reading.ts'
import { appendTo, writeCommands } from './writing.ts'
import type { AccountState } from '../state.ts'
import type { Session } from '../session/index.ts'

export function createCommands(deps: CommandDeps) {
  const reading = readCommands(deps)
  const writing = writeCommands(deps)
  return { ...folderCommands(deps), ...reading, ...writing, ...transferCommands({ ...deps, ...reading, ...writing }) }
}

function folderCommands(deps: CommandDeps) {
  return {
    /** Folders as the store has them are enough for most; this asks the server anew and reconciles. */
    async refreshFolders(accountId: string): Promise<FolderRecord[]> {
      await byReader(deps, accountId, ({ moved }) => moved.relist())
      return deps.sync.store.folders.list(accountId)
    },
    async createFolder(accountId: string, path: string): Promise<FolderRecord> {
      await relisted(deps, accountId, (session) => session.createMailbox(path))
      return onLink(deps, accountId, async (context) => {
        await openFirst(context.state, path)
        const folder = context.state.folderByPath(path)
        if (folder !== null) return folder
        throw new AppError('server_refused', `folder ${path}: the server made it under another name`)
      })
    },
    deleteFolder: (accountId: string, path: string): Promise<void> =>
      relisted(deps, accountId, async (session, { absent }) => {
        await session.deleteMailbox(path)
        absent.noteRemoved(path)
      }),
    expungeFolder: (accountId: string, path: string): Promise<void> =>
      writing(deps, accountId, async (context) => {
        context.touch(path)
        // Anew: EXPUNGE takes only what the server has shown to this connection.
        await context.session.select(path, { refresh: true })
        await context.session.expunge(null)
      }),
    /** Reads what is new in the folder now, and answers when the index says the same. */
    syncFolder: (accountId: string, path: string): Promise<void> =>
      byReader(deps, accountId, ({ moved }) => moved.read(path)),
    /**
     * Compares all that the index knows of the folder with the server, flags too, and reads what is missing, also what
     * the server did not give before.
     */
    readAnew: (accountId: string, path: string): Promise<void> =>
      byReader(deps, accountId, async ({ moved, folderByPath }) => {
        if (folderByPath(path)?.selectable !== true) throw notFound('folder', path)
        await moved.read(path, 'all')
      }),
  }
}

/** Changes the folders on the server and reads the list anew, also when the server says that others changed them. */
async function relisted(
  deps: CommandDeps,
  accountId: string,
  change: (session: Session, state: AccountState) => Promise<void>,
): Promise<void> {
  await onLink(deps, accountId, async ({ session, state }) => {
    const { moved } = state
    try {
      await change(session, state)
    } catch (error) {
      if (isAppError(error, 'conflict') || isAppError(error, 'not_found')) await moved.relist()
      throw error
    }
    await moved.relist()
  })
}

type TransferDeps = CommandDeps &
  Pick<ReturnType<typeof readCommands>, 'streamRaw' | 'isEnd'> &
  Pick<ReturnType<typeof writeCommands>, 'remove' | 'setFlags'>

interface Transfer {
  readonly kind: 'move' | 'copy'
  readonly message: MessageRecord
  readonly to: FolderRecord
  /** Of a new copy. */
  readonly flags: readonly string[]
  /** Of one that is there already; null = its flags stay. */
  readonly change: FlagChange | null
}

/**
 * A message goes to a folder of another email account. In this order, so that a process that dies at any point leaves
 * it in one of the two at least:
 *
 * 1. It is read whole from its mail server into a file (spool.ts). Nothing has changed yet.
 * 2. The other mail server is asked for a message of the same bytes: an earlier call may have come so far.
 * 3. Where it has none, the message is appended with its flags and its time of arrival. OK means: the server keeps it.
 * 4. Index and change log of the other account learn of it. When we die before, its sync finds and reports it.
 * 5. The copy is looked for once more. A move removes the message where it was (\Deleted, then EXPUNGE), and reports
 *    that.
 *
 * From 2 on one transfer of a user goes on at a time: of two in opposite directions each would find what the other is
 * about to remove. Both accounts may see one folder, also under two names: what has the UIDVALIDITY and the UID of the
 * message is not taken for its copy in 2. What is \Deleted there is none either. 5 removes it only from where it lay
 * in 1, and of several places only where the bytes are the same: the index may take two mails without a Message-ID for
 * one.
 *
 * Until 3 is done it lies where it was, until 5 is done in both. The same call again goes on from 2.
 */
function transferCommands(deps: TransferDeps) {
  const { store, config } = deps.sync
  const turns = createExclusiveByKey()
  return {
    /** A move takes the message out of all folders of its account, as `remove` does. */
    async transfer(given: Transfer): Promise<void> {
      const { message } = given
      const source = await deps.streamRaw(message)
      await using whole = await spool(source, { directory: config.MAILROOM_DATA_DIR, most: Infinity })
      await checkWhole(deps, message, whole.size)
      const account = await store.accounts.get(message.accountId)
      if (account === null) throw notFound('message', message.id)
      await turns(account.userId, () => handOver(deps, given, whole))
    },
  }
}

async function handOver(deps: TransferDeps, given: Transfer, whole: Spooled): Promise<void> {
  const { kind, message, to, change } = given
  const act = async (context: WriteContext) => {
    await openFirst(context.state, to.path)
    context.touch(to.path)
    const found = await unlessRefused(findLike(context.session, whole, given))
    if (found === null) return { placed: await appendNew(context, given, whole), isNew: true }
    return { placed: found, isNew: false }
  }
  const { placed, isNew } = await writing(deps, to.accountId, act, whole)
  if (!isNew && change !== null) await setFlagsAt(deps, to, placed, change)
  if (kind === 'copy') return
  await onLink(deps, to.accountId, ({ session }) => mustLie(session, given, placed))
  await deps.remove(message, null, { places: message.placements, whole }).catch((error: unknown) => {
    // The other one has it: that it has left its place meanwhile is what was asked for.
    if (!isAppError(error, 'not_found')) throw error
  })
}

async function appendNew(context: WriteContext, given: Transfer, whole: Spooled): Promise<Placed> {
  const { message, to, flags } = given
  const placed = await appendTo(context, to, { literal: whole, flags, internalDate: message.receivedAt })
  if (placed.newUid !== null) return placed
  return (await unlessRefused(findLike(context.session, whole, given))) ?? placed
}

/**
 * A message that comes short is not moved as if it were whole. Some servers name too large a size: these are asked for
 * more.
 */
async function checkWhole(deps: TransferDeps, message: MessageRecord, read: number): Promise<void> {
  const { id, size } = message
  if (read >= size || (read > 0 && (await deps.isEnd(message, read)))) return
  throw new AppError('protocol', `message ${id}: the mail server gives ${read} of its ${size} bytes`)
}

/** Messages of the same size that are compared byte by byte, the newest of them. */
const mostCompared = 10

async function findLike(session: Session, whole: Spooled, given: Transfer): Promise<Placed | null> {
  const { message, to } = given
  const { uidValidity } = await session.select(to.path, { refresh: true })
  const itself = message.placements.filter((place) => place.uidValidity === uidValidity)
  const found = await session.searchLike(whole.size, message.emailMessageId)
  const alike = found.filter((uid) => !itself.some((place) => place.uid === uid))
  for (const uid of alike.slice(-mostCompared).reverse()) {
    const isCopy = (await digestOf(session, uid, whole.size)) === whole.digest && (await isKept(session, given, uid))
    if (isCopy) return { newUid: uid, uidValidity }
  }
  return null
}

/** A message that is \Deleted may be gone at any moment; here only where the call asks for it. */
async function isKept(session: Session, { flags }: Transfer, uid: number): Promise<boolean> {
  const now = await flagsAt(session, uid)
  return now !== null && (isMarked({ flags }) || !isMarked({ flags: normalFlags(now.flags) }))
}

/** A server that does not say where it has put the copy, and has other bytes of it, is believed. */
async function mustLie(session: Session, given: Transfer, { newUid, uidValidity }: Placed): Promise<void> {
  if (newUid === null) return
  const { path } = given.to
  const now = await session.select(path, { refresh: true })
  const isSame = uidValidity === null || now.uidValidity === uidValidity
  if (isSame && (await isKept(session, given, newUid))) return
  throw new AppError('conflict', `the copy in folder ${path} was removed meanwhile; the message stays where it was`)
}

async function setFlagsAt(deps: TransferDeps, to: FolderRecord, at: Placed, change: FlagChange): Promise<void> {
  const { messages } = deps.sync.store
  const { newUid: uid, uidValidity } = at
  if (uid === null || uidValidity === null) return
  const there = { folderId: to.id, uidValidity, uid }
  const known = await knownThere(deps.sync.store, there)
  const copy = known === undefined ? null : await messages.get(to.accountId, known.messageId)
  const place = copy?.placements.find((one) => liesAt(one, there))
  if (copy !== null && place !== undefined) await deps.setFlags(copy, place, change)
  // Not read yet: the index learns its flags when it is.
  else
    await onLink(deps, to.accountId, async ({ session }) => {
      const now = await session.select(to.path)
      if (now.uidValidity === uidValidity) await session.store(uid, change)
    })
}
