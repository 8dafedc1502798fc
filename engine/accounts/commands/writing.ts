/**
 * Writing on the server: flags, removals, APPEND, MOVE and COPY. When a command answers, the index says the same as the
 * server, and the change is reported like any other: one batch with the row, the change, its callbacks and the cursor.
 * The sync sees the same before, meanwhile or afterwards; the second of the two finds it in the index. The sync also
 * reports what was cut short in between.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import { isMarked, liesAt, vanish } from '../../store/rows.ts'
import { flagParts } from '../compare.ts'
import { departed, isGoneMeanwhile } from '../gone.ts'
import type { AccountState } from '../state.ts'
import { normalFlags, planAdded } from '../plan.ts'
import type { Upload } from '../../spool.ts'
import type { FlagChange, Placed } from '../session-types.ts'
import { catchUp } from '../sync.ts'
import type { Build, SyncContext } from '../write.ts'
import {
  currentMessage,
  currentPlace,
  inPlace,
  isShown,
  knownThere,
  notThere,
  onLink,
  openFirst,
  openFolder,
  uploading,
  type CommandDeps,
} from './placed.ts'
import { flagsAt, type FlagsNow } from './reading.ts'
import { hasBytes, type Known, mustStay } from './staying.ts'

export function writeCommands(deps: CommandDeps) {
  return {
    /** Answers the flags now. */
    setFlags: (message: MessageRecord, at: Placement, change: FlagChange): Promise<string[]> =>
      onLink(deps, message.accountId, async (context) => {
        const place = await currentPlace(context, await currentMessage(deps.sync.store, message), at)
        const work = async (): Promise<string[]> => {
          const stored = await inPlace(context, place, () => context.session.store(place.uid, change))
          if (stored === null) throw notFound('message', message.id)
          await reportFlags(context, place, stored)
          return normalFlags(stored.flags)
        }
        const isTwoCommands = change.add.length > 0 && change.remove.length > 0
        return isTwoCommands ? inSteps(context, place, work) : work()
      }),
    /**
     * Out of these folders, when it stays in another one (else `conflict`); null = out of all, but out of views of all
     * mail only when it lies in no other folder. With `known` only where it lay then.
     */
    remove: (message: MessageRecord, from: readonly string[] | null, known: Known | null = null): Promise<void> =>
      onLink(deps, message.accountId, async (context) => {
        const now = await currentMessage(deps.sync.store, message)
        const all = await placesOf(context, now, from)
        if (from !== null && all.length > 0) await mustStay(context, now, all)
        const places = all.filter((place) => known?.places.some((then) => liesAt(place, then)) ?? true)
        let removed = 0
        let refused: AppError | null = null
        for (const place of places) {
          try {
            if ((await hasBytes(context, place, known)) && (await removeAt(context, message.id, place))) removed += 1
          } catch (error) {
            if (!isAppError(error, 'server_refused')) throw error
            refused ??= error
          }
        }
        if (refused !== null) throw refused
        if (removed === 0 && (from === null || places.length === 0)) throw notFound('message', message.id)
      }),
    /** Answers the id of the message; null when the server does not say where it lies, or the index lacks it yet. */
    append: (to: FolderRecord, letter: Letter): Promise<string | null> =>
      uploading(deps, to, letter.literal, async (context) => {
        await openFirst(context, to)
        const { newUid, uidValidity } = await appendTo(context, to, letter)
        if (newUid === null || uidValidity === null) return null
        const known = await knownThere(deps.sync.store, { folderId: to.id, uidValidity, uid: newUid })
        return known?.messageId ?? null
      }),
    /**
     * Every place that the message has in the folder of `at` (null = the first of its folders: INBOX, else one that is
     * no view of all mail). Done already when it lies only there where it shall.
     */
    move: (message: MessageRecord, at: Placement | null, to: FolderRecord): Promise<void> =>
      onLink(deps, message.accountId, (context) => move(context, message, at, to)),
    /** Done already when it lies there, and not as \Deleted. */
    copy: (message: MessageRecord, at: Placement, to: FolderRecord): Promise<void> =>
      onLink(deps, message.accountId, async (context) => {
        const now = await currentMessage(deps.sync.store, message)
        if (now.placements.some((place) => place.folderId === to.id && !isMarked(place))) return
        const given: Transfer = { kind: 'copy', message: now, at: await currentPlace(context, now, at), to }
        if (!(await transfer(context, given))) throw notFound('message', message.id)
      }),
  }
}

export interface Letter {
  readonly literal: Upload
  readonly flags: readonly string[]
  readonly internalDate: number
}

/**
 * The folder has been opened before: what comes into it is no history. The index has the message afterwards; where the
 * look at it fails, soon: the server has it, and the same call again would make one more.
 */
export async function appendTo(context: SyncContext, to: FolderRecord, letter: Letter): Promise<Placed> {
  const { literal, flags, internalDate } = letter
  const appending = context.session.append(to.path, literal, flags, internalDate)
  const placed = await appending.catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
  await catchUp(context, to.path).catch((error: unknown) => {
    if (!isAppError(error)) throw error
    context.state.askLook(to.path)
  })
  return placed
}

/** false when the server does not have the message there any more. */
async function removeAt(context: SyncContext, messageId: string, place: Placement): Promise<boolean> {
  return inSteps(context, place, async () => {
    const change = { add: ['\\Deleted'], remove: [] }
    const stored = await inPlace(context, place, () => context.session.store(place.uid, change))
    if (stored === null) return false
    // A server may answer OK to who has no right to remove: then the mark is not there.
    const now = isMarked(stored) ? stored : await flagsAt(context.session, place.uid)
    if (now !== null && !isMarked(now))
      throw new AppError('server_refused', `the mail server lets no mail be removed from folder ${place.path}`)
    await context.session.expunge([place.uid])
    await tellDeparture(context, messageId, place, null)
    return true
  })
}

async function placesOf(
  context: SyncContext,
  message: MessageRecord,
  from: readonly string[] | null,
): Promise<readonly Placement[]> {
  const { placements } = message
  if (placements.length === 0) throw await notThere(context, message)
  if (from !== null) return placements.filter(({ folderId }) => from.includes(folderId))
  const real = placements.filter((place) => !isShown(context.state, place))
  return real.length === 0 ? placements : real
}

/** Several commands: what is seen between them is not reported, but what a failure leaves is. */
async function inSteps<T>(context: SyncContext, place: Placement, work: () => Promise<T>): Promise<T> {
  const end = context.state.own.begin(place.folderId, place.uid)
  return work()
    .finally(end)
    .catch(async (error: unknown) => {
      await reportLeft(context, place).catch(() => context.state.askLook(place.path))
      throw error
    })
}

async function reportLeft(context: SyncContext, place: Placement): Promise<void> {
  const now = await inPlace(context, place, () => flagsAt(context.session, place.uid))
  if (now !== null) await reportFlags(context, place, now)
}

interface Transfer {
  readonly kind: 'move' | 'copy'
  readonly message: MessageRecord
  readonly at: Placement
  readonly to: FolderRecord
}

/** Every place in the folder: a mail that came twice leaves no twin behind. Where it has left them, the next folder. */
async function move(
  context: SyncContext,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<void> {
  const { store } = context.deps
  const left: Placement[] = []
  let moved = false
  let now = await currentMessage(store, message)
  while (!moved) {
    const placements = now.placements.filter((place) => !left.some((one) => liesAt(one, place)))
    const places = await placesToLeave(context, { ...now, placements }, at, to)
    if (places.length === 0) return
    for (const place of places) {
      if (await transfer(context, { kind: 'move', message: now, at: place, to })) moved = true
      else left.push(place)
      now = await currentMessage(store, message)
    }
  }
}

/** What has to leave; nothing when the message lies there already, as after a move that was asked for twice. */
async function placesToLeave(
  context: SyncContext,
  message: MessageRecord,
  at: Placement | null,
  to: FolderRecord,
): Promise<Placement[]> {
  const isThere = message.placements.some((place) => place.folderId === to.id)
  if (at === null && isThere) return []
  const from = at?.folderId ?? firstFolder(context.state, message)
  const places = message.placements.filter((place) => place.folderId === from)
  if (places.length === 0 && !isThere) throw await notThere(context, message, from)
  return places
}

/** INBOX, else the first that is no view of others. */
function firstFolder(state: AccountState, { placements }: MessageRecord): string | undefined {
  const rank = (place: Placement): number => (place.path === 'INBOX' ? 0 : isShown(state, place) ? 2 : 1)
  return placements.toSorted((one, other) => rank(one) - rank(other))[0]?.folderId
}

/** false when the server does not have the message there any more. */
function transfer(context: SyncContext, given: Transfer): Promise<boolean> {
  const work = (): Promise<boolean> => carryOut(context, given)
  return given.kind === 'move' ? inSteps(context, given.at, work) : work()
}

async function carryOut(context: SyncContext, { kind, message, at, to }: Transfer): Promise<boolean> {
  const { state, session } = context
  await openFirst(context, to)
  const moving = inPlace({ state, session }, at, () => session[kind](at.uid, to.path))
  const placed = await moving.catch((error: unknown) => {
    throw isAppError(error, 'not_found') ? folderGone(to, error) : error
  })
  if (placed === null) return false
  if (!(await tellArrival(context, message, to, placed, at.flags))) await lookFor(context, to)
  if (kind === 'move') await tellDeparture(context, message.id, at, to)
  return true
}

/** What was put there. It is done in any case: where it cannot be looked for now, the sync finds it. */
async function lookFor(context: SyncContext, to: FolderRecord): Promise<void> {
  await openFolder(context, to.path).catch((error: unknown) => {
    if (!isAppError(error)) throw error
    context.state.askLook(to.path)
  })
}

function folderGone(to: FolderRecord, cause: AppError): AppError {
  const { code, message, details } = notFound('folder', to.path)
  return new AppError(code, message, { details, cause })
}

/** Does nothing where the folder is gone or has another UIDVALIDITY by now: the sync finds it, and reports it. */
async function commitIn({ state }: SyncContext, { folderId, uidValidity }: FolderPlace, build: Build): Promise<void> {
  const inFolder = (folder: FolderRecord) =>
    folder.cursor?.uidValidity === uidValidity ? build(folder.cursor, folder) : null
  await state.commit(folderId, inFolder, 'api').catch((error: unknown) => {
    if (!isGoneMeanwhile(error)) throw error
  })
}

type FolderPlace = Pick<Placement, 'folderId' | 'uidValidity'>

/** Others may change the same flags again and again. */
const askedMost = 5

/** The server's answer to our STORE. `place` = as the index had it before. The folder is selected. */
async function reportFlags(context: SyncContext, place: Placement, stored: FlagsNow): Promise<void> {
  let now: FlagsNow | null = stored
  let rev: number | undefined = place.rev
  for (let asked = 0; asked < askedMost && now !== null && rev !== undefined; asked += 1) {
    if (await storeFlagsNow(context, place, now, rev)) return
    // The sync has stored others since we asked.
    rev = (await knownThere(context.deps.store, place))?.rev
    now = await flagsAt(context.session, place.uid)
  }
}

/** false when the index has others than it had at this rev. */
async function storeFlagsNow(context: SyncContext, place: Placement, now: FlagsNow, rev: number): Promise<boolean> {
  const { folderId, uid } = place
  let sure = true
  context.state.own.wrote(folderId, uid)
  await commitIn(context, place, async (cursor, folder) => {
    const seen = { flags: [{ uid, ...now }], isUnsure: (known: { readonly rev: number }) => known.rev !== rev }
    const { unsure, parts } = await flagParts({ ...context, folderId }, folder, seen)
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
  await commitIn(context, { folderId: to.id, uidValidity: validity }, async (cursor, folder) => {
    const row = await deps.store.messages.get(state.account.id, before.id)
    if (row === null) return null
    // The sync was here first; or the server named the UID of another message.
    arrived = isNewIn(to.id, row, before)
    if (arrived || newUid < cursor.uidNext) return null
    arrived = true
    const message = { id: row.id, identity: row.identity, facts: row, fetched: { uid: newUid, flags, modseq: null } }
    const plan = { account: state.account, folder, uidValidity: validity, now: deps.now() }
    const { added, changes } = planAdded(plan, [message], new Map([[row.id, row]]), 'ours')
    return { cursor, added, changes }
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
  await commitIn(context, place, async (cursor) => {
    const row = await deps.store.messages.get(state.account.id, messageId)
    if (row === null) return null
    const after = vanish(row, place, deps.now())
    const entry = after.gone.find((one) => liesAt(one, place))
    if (entry === undefined) return null
    const isSure = to === null || after.placements.some(({ folderId }) => folderId === to.id)
    const parts = { cursor, ...(isSure ? departed(state, after, [entry], deps.now()) : {}) }
    // Else the sync has taken it out.
    if (row.placements.some((one) => liesAt(one, place))) return { ...parts, vanished: [place.uid] }
    return isSure ? parts : null
  })
}
