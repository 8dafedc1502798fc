/**
 * Writing on the server: flags, removals, APPEND, MOVE and COPY. When a command answers, the index says the same as the
 * server, and the change is told like any other: one batch with the row, the change, its callbacks and the cursor. The
 * sync sees the same before, meanwhile or afterwards; the second of the two finds it in the index. The sync also tells
 * what was cut short in between.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { FolderCursor, FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import { liesAt, vanish } from '../../store/rows.ts'
import { flagParts } from '../compare.ts'
import { departed } from '../gone.ts'
import { normalFlags } from '../own-writes.ts'
import { planAdded } from '../plan.ts'
import type { FlagChange, FlagsOf, Placed } from '../session-types.ts'
import type { AccountState, BatchParts } from '../state.ts'
import { catchUp } from '../sync.ts'
import type { SyncContext } from '../write.ts'
import {
  currentMessage,
  currentPlace,
  inPlace,
  notThere,
  onLink,
  openFirst,
  openFolder,
  type CommandDeps,
} from './placed.ts'

export function writeCommands(deps: CommandDeps) {
  return {
    /** Answers the flags now. */
    setFlags: (accountId: string, message: MessageRecord, at: Placement, change: FlagChange): Promise<string[]> =>
      onLink(deps, accountId, async (context) => {
        const place = currentPlace(context.state, await currentMessage(deps.sync.store, message), at)
        return counted(context, [place.folderId], async () => {
          const stored = await inPlace(context, place, () => context.session.store(place.uid, change))
          if (stored === null) throw notFound('message', message.id)
          await tellFlags(context, place, stored)
          return normalFlags(stored.flags)
        })
      }),
    remove: (accountId: string, message: MessageRecord, at: Placement): Promise<void> =>
      onLink(deps, accountId, async (context) => {
        const place = currentPlace(context.state, await currentMessage(deps.sync.store, message), at)
        await leaving(context, place, [place.folderId], async () => {
          const change = { add: ['\\Deleted'], remove: [] }
          const stored = await inPlace(context, place, () => context.session.store(place.uid, change))
          if (stored === null) throw notFound('message', message.id)
          await context.session.expunge([place.uid])
          await tellDeparture(context, message.id, place, null)
        })
      }),
    append: (
      accountId: string,
      to: FolderRecord,
      raw: Buffer,
      flags: readonly string[],
      internalDate: number,
    ): Promise<void> =>
      onLink(deps, accountId, async (context) => {
        await openFirst(context, to)
        await context.session.append(to.path, raw, flags, internalDate)
        await catchUp(context, to.path)
      }),
    /**
     * Every place that the message has in the folder of `at` (null = the first of its folders: INBOX, else one that is
     * no view of all mail). Done already when it lies only there where it shall.
     */
    move: (accountId: string, message: MessageRecord, at: Placement | null, to: FolderRecord): Promise<void> =>
      onLink(deps, accountId, (context) => move(context, message, at, to)),
    copy: (accountId: string, message: MessageRecord, at: Placement, to: FolderRecord): Promise<void> =>
      onLink(deps, accountId, async (context) => {
        const now = await currentMessage(deps.sync.store, message)
        const given: Transfer = { kind: 'copy', message: now, at: currentPlace(context.state, now, at), to }
        if (!(await transfer(context, given))) throw notFound('message', message.id)
      }),
  }
}

async function counted<T>({ state }: SyncContext, folderIds: readonly string[], work: () => Promise<T>): Promise<T> {
  const end = state.ownCounts.begin(folderIds)
  return work().finally(end)
}

/** The same, by which the message leaves its place. */
async function leaving<T>(
  context: SyncContext,
  { folderId, uid }: Placement,
  folderIds: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  const left = context.state.own.leave(folderId, uid)
  return counted(context, folderIds, work).finally(left)
}

interface Transfer {
  readonly kind: 'move' | 'copy'
  readonly message: MessageRecord
  readonly at: Placement
  readonly to: FolderRecord
}

/** Every place in the folder: a mail that came twice leaves no twin behind. */
async function move(
  context: SyncContext,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<void> {
  const { deps, state } = context
  let now = await currentMessage(deps.store, message)
  const places = placesToLeave(state, now, at, to)
  let moved = 0
  for (const place of places) {
    if (await transfer(context, { kind: 'move', message: now, at: place, to })) moved += 1
    now = await currentMessage(deps.store, message)
  }
  if (moved === 0 && places.length > 0) throw notFound('message', message.id)
}

/** What has to leave; nothing when the message lies there already, as after a move that was asked for twice. */
function placesToLeave(
  state: AccountState,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Placement[] {
  const isThere = message.placements.some((place) => place.folderId === to.id)
  if (at === null && isThere) return []
  const from = at?.folderId ?? firstFolder(state, message)
  const places = message.placements.filter((place) => place.folderId === from)
  if (places.length === 0 && !isThere) throw notThere(state, message)
  return places
}

/** Folders that show what lies elsewhere. */
const views = new Set(['\\All', '\\Flagged', '\\Important'])

/** INBOX, else the first that is no view of others. */
function firstFolder({ folders }: AccountState, { placements }: MessageRecord): string | undefined {
  const rank = ({ folderId, path }: Placement): number =>
    path === 'INBOX' ? 0 : views.has(folders.get(folderId)?.specialUse ?? '') ? 2 : 1
  return placements.toSorted((one, other) => rank(one) - rank(other))[0]?.folderId
}

/** false when the server does not have the message there any more. */
function transfer(context: SyncContext, given: Transfer): Promise<boolean> {
  const { kind, at, to } = given
  const work = (): Promise<boolean> => carryOut(context, given)
  const folderIds = [at.folderId, to.id]
  return kind === 'move' ? leaving(context, at, folderIds, work) : counted(context, folderIds, work)
}

async function carryOut(context: SyncContext, { kind, message, at, to }: Transfer): Promise<boolean> {
  const { state, session } = context
  await openFirst(context, to)
  const moving = inPlace({ state, session }, at, () => session[kind](at.uid, to.path))
  const placed = await moving.catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
  if (placed === null) return false
  if (!(await tellArrival(context, message, to, placed, at.flags))) await openFolder(context, to.path)
  if (kind === 'move') await tellDeparture(context, message.id, at, to)
  return true
}

function folderGone(to: FolderRecord, cause: AppError): AppError {
  const { code, message, details } = notFound('folder', to.path)
  return new AppError(code, message, { details, cause })
}

type Build = (folder: FolderRecord, cursor: FolderCursor) => Promise<BatchParts | null>

/** Does nothing where the folder has another UIDVALIDITY by now: it is read anew, and the sync tells. */
async function commitIn({ state }: SyncContext, { folderId, uidValidity }: FolderPlace, build: Build): Promise<void> {
  const cursorOf = (folder: FolderRecord | undefined): FolderCursor | null =>
    folder?.cursor?.uidValidity === uidValidity ? folder.cursor : null
  if (cursorOf(state.folders.get(folderId)) === null) return
  const inFolder = async (folder: FolderRecord): Promise<BatchParts | null> => {
    const cursor = cursorOf(folder)
    return cursor === null ? null : build(folder, cursor)
  }
  await state.commit(folderId, inFolder, 'api')
}

type FolderPlace = Pick<Placement, 'folderId' | 'uidValidity'>

async function rowOf({ deps, state }: SyncContext, messageId: string): Promise<MessageRecord | null> {
  return deps.store.messages.get(state.account.id, messageId)
}

type ToldFlags = Omit<FlagsOf, 'uid'>

/** Others may change the same flags again and again. */
const askedMost = 5

/** The server's answer to our STORE. `place` = as the index had it before. The folder is selected. */
async function tellFlags(context: SyncContext, place: Placement, stored: ToldFlags): Promise<void> {
  const { session, deps } = context
  const { folderId, uidValidity, uid } = place
  let word: ToldFlags | undefined = stored
  let rev: number | undefined = place.rev
  for (let asked = 0; asked < askedMost && word !== undefined && rev !== undefined; asked += 1) {
    if (await storeWord(context, place, word, rev)) return
    // The sync has stored others since we asked.
    const [known] = await deps.store.messages.knownUids(folderId, uidValidity, uid, uid)
    rev = known?.rev
    word = (await session.fetchFlags(String(uid))).find((one) => one.uid === uid)
  }
}

/** false when the index has others than it had at this rev. */
async function storeWord(context: SyncContext, place: Placement, word: ToldFlags, rev: number): Promise<boolean> {
  const { folderId, uid } = place
  let sure = true
  context.state.own.wrote(folderId, uid)
  await commitIn(context, place, async (folder, cursor) => {
    const seen = { flags: [{ uid, ...word }], isUnsure: (known: { readonly rev: number }) => known.rev !== rev }
    // Counts that the server told do not have our own write in them yet (own-writes.ts).
    const { unsure, parts } = await flagParts(context, folder, cursor, seen, undefined)
    sure = !unsure
    return parts && { cursor, ...parts }
  })
  return sure
}

/** Our MOVE or COPY put the message at the UID that the server named. false = it has to be looked for there. */
async function tellArrival(
  context: SyncContext,
  before: MessageRecord,
  to: FolderRecord,
  { newUid, uidValidity }: Placed,
  flags: readonly string[],
): Promise<boolean> {
  const { state, deps } = context
  const validity = uidValidity ?? state.folders.get(to.id)?.cursor?.uidValidity
  let arrived = false
  if (newUid === null || validity === undefined) return false
  await commitIn(context, { folderId: to.id, uidValidity: validity }, async (folder, cursor) => {
    const row = await rowOf(context, before.id)
    if (row === null) return null
    // The sync was here first; or the server named the UID of another message.
    arrived = isNewIn(to.id, row, before)
    if (arrived || newUid < cursor.uidNext) return null
    arrived = true
    const message = { id: row.id, identity: row.identity, facts: row, fetched: { uid: newUid, flags, modseq: null } }
    const plan = { account: state.account, folder, uidValidity: validity, now: deps.now() }
    const { added, changes } = planAdded(plan, [message], new Map([[row.id, row]]), 'ours')
    const counts = { messages: folder.messages + 1, unseen: folder.unseen + (flags.includes('\\Seen') ? 0 : 1) }
    return { cursor, added, changes, counts }
  })
  return arrived
}

function isNewIn(folderId: string, { placements }: MessageRecord, before: MessageRecord): boolean {
  return placements.some((place) => place.folderId === folderId && !before.placements.some((one) => liesAt(one, place)))
}

/** Told at once, unless the message has yet to turn up in the folder `to`: then it is held like any other move. */
async function tellDeparture(
  context: SyncContext,
  messageId: string,
  place: Placement,
  to: FolderRecord | null,
): Promise<void> {
  const { state, deps } = context
  await commitIn(context, place, async (folder, cursor) => {
    const row = await rowOf(context, messageId)
    if (row === null) return null
    const after = vanish(row, place, deps.now())
    const entry = after.gone.find((one) => liesAt(one, place))
    if (entry === undefined) return null
    const isSure = to === null || after.placements.some(({ folderId }) => folderId === to.id)
    const parts = { cursor, ...(isSure ? departed(state, after, [entry], deps.now()) : {}) }
    // Else the sync has taken it out, and off the counts.
    const here = row.placements.find((one) => liesAt(one, place))
    if (here === undefined) return isSure ? parts : null
    const unseen = Math.max(0, folder.unseen - (here.flags.includes('\\Seen') ? 0 : 1))
    const counts = { messages: Math.max(0, folder.messages - 1), unseen }
    return { ...parts, vanished: [place.uid], counts }
  })
}
