/**
 * Watches an account with its one session that reads. The session waits in IDLE on INBOX; between two IDLEs it reads
 * folders that API calls wait for, polls the other folders, reads the changed folders and old mail (background.ts).
 * Work in other folders is interrupted for INBOX.
 *
 * A push ends IDLE: the news is read and stored, and IDLE begins again. Only pushes during a reading are merged. A host
 * is trusted to push once it has pushed to one of its accounts. Until then INBOX is asked every MAILROOM_INBOX_POLL; so
 * is the INBOX of an account in which a poll found mail that was not pushed, until its next push.
 *
 * With NOTIFY the server reports changes of other folders, but not mail that comes to a folder just before the session
 * leaves it: polls follow a folder that was left, and a rare poll checks that NOTIFY works. Without NOTIFY a poll
 * follows MAILROOM_FOLDER_POLL after activity of the account (mail, an API call), and the distance doubles after each
 * poll without. Without CONDSTORE each poll of an active account compares the flags of the newest messages. The first
 * poll of a session has its turn among the logins of the account's developer at this host; activity brings it at once,
 * and MAILROOM_FOLDER_POLL after the login is the latest.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { toAppError } from '../errors.ts'
import type { FairQueue } from '../fair-queue.ts'
import { answerCalls, type BackgroundOptions, createBackground, createPlaces } from './background.ts'
import { createFolderPoll } from './folders.ts'
import { goneMeanwhile } from './absent.ts'
import { reportGone } from './departures.ts'
import type { FolderCursor } from '../store/records.ts'
import { loginTurn } from './login.ts'
import { createLooks } from './looks.ts'
import type { MailboxStatus, SessionEvent } from './session-types.ts'
import { catchUp, compareIfDue, hasModseqs, openInbox, readNew, syncFlags } from './sync.ts'
import type { SyncContext } from './write.ts'

/** A response this soon after the start of IDLE, or this short before its end, may answer IDLE or DONE: no push. */
const idleStartMs = 200
const idleEndMs = 20
/** During work in other folders INBOX is asked this often. */
const turnMs = 300
/** The distance of polls in a quiet account, in MAILROOM_FOLDER_POLL: 10 min. */
const quietFactor = 13
/** The distance of polls with NOTIFY, in MAILROOM_FOLDER_POLL: 15 min. */
export const checkFactor = 20
/**
 * Servers gather changes before they push (Dovecot: for half a second from the first). Leaving IDLE once, this long
 * after a reading, finds the mail that came during the reading.
 */
const lookAgainMs = 500

interface WatchOptions extends BackgroundOptions {
  readonly renewMs: number
  /** The queue of all logins. */
  readonly dialing: FairQueue
  /** When the session has to be renewed with another access token, in ms since 1970; Infinity = a password. */
  readonly tokenRenewAt: number
  /** Called after each poll. */
  readonly alive: () => void
  /** Whether the connection for API calls, which ends with the session, has work. */
  readonly isCalling: () => boolean
}

/** One IDLE: when it began, and when it ends unless a push ends it. */
interface Stay {
  readonly from: number
  readonly until: number
  /** false = it ends early, at `lookAgainAt`: changes that it reports at its end were not due yet as pushes. */
  readonly isWhole: boolean
}

/** The pushes that are not read yet, and the times of the next polls. */
type Watch = ReturnType<typeof createWatch>

/**
 * Runs until the signal aborts. 'rotate' = another session has to take over: the access token is about to expire, or
 * with NOTIFY the list of folders has lost a folder, and may be wrong for good (Dovecot 2.3, after renames). Rejects
 * when the connection fails.
 */
export async function watchAll(
  context: SyncContext,
  options: WatchOptions,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  const { now } = context.deps
  const stop = () => watch.leaveIdle.abort('news')
  const over = new AbortController()
  const watch = createWatch(context, options, AbortSignal.any([signal, over.signal]), stop)
  context.session.listen((event) => {
    note(watch, event)
    stop()
  })
  context.state.moved.onFound(stop)
  context.state.watchedBy({
    stir: () => stir(watch, stop),
    nextLookAt: () => nextPollAt(watch),
    look() {
      watch.looks.want()
      stop()
    },
  })
  signal.addEventListener('abort', stop)
  try {
    // Without LIST-STATUS the checking polls would cost a STATUS for each folder.
    watch.isNotified = (await context.session.notify()) && context.session.capabilities.listStatus
    // Mail may have come after the first reading, before `listen`.
    watch.news = context.session.selected?.exists !== inboxCursor(context)?.exists
    // Departures of an earlier session; without a look so far the first poll reports them.
    if (watch.polledAt > 0) await reportGone(watch.others)
    while (!signal.aborted) {
      if (watch.closed !== null) throw watch.closed
      if (context.state.moved.isCalled()) await readForCalls(watch)
      else if (watch.news || watch.flags) await readPushed(watch)
      else if (now() >= options.tokenRenewAt || isListDoubtful(watch)) return 'rotate'
      else if (now() >= nextAskAt(watch)) await ask(watch)
      else if (await isPollDue(watch)) await poll(watch)
      else if (watch.heard.size > 0) await takeHeard(watch)
      else if (await watch.background.work()) await hearInbox(watch)
      else await idle(watch)
    }
    return 'stopped'
  } finally {
    over.abort()
    signal.removeEventListener('abort', stop)
  }
}

function createWatch(context: SyncContext, options: WatchOptions, signal: AbortSignal, wake: () => void) {
  const others: SyncContext = { ...context, giveWay: () => giveWay(watch) }
  const watch = {
    context,
    /** The context of work in other folders. */
    others,
    options,
    signal,
    background: createBackground(others, options, wake, signal),
    /** A place among the logins, for the first poll. */
    first: createPlaces(loginTurn(context.state.account), options.dialing, wake, signal),
    folders: createFolderPoll(context),
    looks: createLooks(context.deps.now),
    host: options.host,
    isGivingWay: false,
    /** A poll or the end of IDLE has found a change of INBOX that was not pushed. */
    missed: false,
    isNotified: false,
    /** Paths that NOTIFY has reported since the last poll; and changed paths of the last poll that it had not. */
    told: new Set<string>(),
    untold: [] as readonly string[],
    /** By path: the last STATUS by NOTIFY that is not taken yet. */
    heard: new Map<string, MailboxStatus>(),
    stay: null as Stay | null,
    /** The server has reported a change of INBOX since the last poll. */
    reported: false,
    news: false,
    flags: false,
    closed: null as Error | null,
    leaveIdle: new AbortController(),
    polledAt: context.state.moved.lookedAt,
    /** When the session first left another folder since the last poll: NOTIFY may miss mail that just came there. */
    leftAt: context.state.moved.lookedAt,
    /** Time from the last poll to the next. */
    pollMs: context.deps.config.MAILROOM_FOLDER_POLL,
    /** The first activity since the last poll; Infinity = none. */
    stirredAt: Infinity,
    askedAt: context.deps.now(),
    lookAgainAt: Infinity,
    /** When the last IDLE ended, or INBOX was asked last. */
    heardAt: context.deps.now(),
  }
  return watch
}

/** Whether this session's list of folders may be wrong for good, and no API call is cut short by the session's end. */
function isListDoubtful({ isNotified, context, options }: Watch): boolean {
  return isNotified && context.state.absent.hasLost && !options.isCalling()
}

/** A response during IDLE is a push. A response only at DONE means that this server does not push. */
function judge(watch: Watch): void {
  const { stay, host, leaveIdle, context } = watch
  watch.reported = true
  if (stay === null || leaveIdle.signal.aborted) return
  const at = context.deps.now()
  const soonMs = Math.min(idleStartMs, (stay.until - stay.from) / 4)
  if (at >= stay.until - idleEndMs) watch.missed ||= stay.isWhole
  else if (at > stay.from + soonMs) {
    host.pushes = true
    watch.missed = false
  }
}

/** After mail or an API call: the next poll may be due sooner. */
function stir(watch: Watch, wake: () => void): void {
  if (watch.stirredAt < Infinity) return
  watch.stirredAt = watch.context.deps.now()
  if (watch.stay === null || nextPollAt(watch) < watch.stay.until) wake()
}

function note(watch: Watch, event: SessionEvent): void {
  const { session, state } = watch.context
  if (event.type === 'closed') watch.closed = toAppError(event.error ?? new Error('connection closed'))
  else if (event.type === 'folders') watch.looks.want()
  else if (event.type === 'status' && event.path !== 'INBOX') {
    watch.told.add(event.path)
    watch.heard.set(event.path, event.status)
  } else if (event.type !== 'status' && session.selected !== null && session.selected.path !== 'INBOX')
    state.moved.found([session.selected.path])
  else {
    judge(watch)
    if (event.type === 'flags') watch.flags = true
    else watch.news = true
  }
}

/** Marks the folders that NOTIFY reports as changed. */
async function takeHeard({ heard, context: { state }, folders, looks }: Watch): Promise<void> {
  for (const [path, status] of heard) {
    heard.delete(path)
    const folder = state.folderByPath(path)
    if (folder === null) looks.want()
    else if (await folders.hear(folder, status)) state.moved.found([path])
    state.stir()
  }
}

/** Reads the pushed changes of INBOX; pushes that come meanwhile are for the next round. */
async function readPushed(watch: Watch): Promise<void> {
  const { context } = watch
  if (!watch.news && !watch.flags) return
  const inbox = context.state.folderByPath('INBOX')
  if (inbox === null) throw toAppError(new Error('INBOX is gone'))
  context.state.stir()
  await toInbox(watch)
  const { news, flags } = watch
  Object.assign(watch, { news: false, flags: false })
  const folder = { ...context, folderId: inbox.id }
  if (news) await readNew(folder)
  if (flags) await syncFlags(folder, null)
  if (!watch.news && (await compareIfDue(folder, null))) watch.looks.want()
  watch.lookAgainAt = context.deps.now() + lookAgainMs
}

/** Reads the list of folders, and the folders, that API calls wait for. */
async function readForCalls({ context, others, folders }: Watch): Promise<void> {
  const { moved } = context.state
  await moved.answerLists(async () => moved.found(await folders.list()))
  await answerCalls(others)
}

/** Asks for the place of the first poll before it; a place that comes after that poll is given back. */
async function isPollDue(watch: Watch): Promise<boolean> {
  const { polledAt, first, context } = watch
  if (polledAt < 0) {
    void first.ask()
    // A free place comes at once.
    await nextTurn()
  } else first.held?.end()
  return context.deps.now() >= nextPollAt(watch)
}

function nextPollAt(watch: Watch): number {
  const { polledAt, pollMs, stirredAt, leftAt, first } = watch
  const { MAILROOM_FOLDER_POLL: often } = watch.context.deps.config
  if (polledAt < 0)
    return first.held !== null || stirredAt < Infinity
      ? polledAt
      : Math.min(watch.context.state.beganAt + often, watch.looks.at)
  const isTold = watch.isNotified && watch.host.tells && !watch.context.state.isHolding
  const at = isTold ? [polledAt + checkFactor * often, leftAt + often] : [polledAt + pollMs, stirredAt + often]
  return Math.min(...at, watch.looks.at)
}

/**
 * A changed folder that a poll found and NOTIFY has not reported by the next poll: NOTIFY is not trusted any more.
 * `hadLeft`: a folder was left since the last poll, so NOTIFY may have missed changes.
 */
function judgeNotify(watch: Watch, hadLeft: boolean): void {
  const { told, untold, host, isNotified, folders, context } = watch
  if (isNotified && untold.some((path) => !told.has(path))) host.tells = false
  const isUntold = (path: string): boolean => path !== 'INBOX' && !told.has(path) && !context.state.moved.isMarked(path)
  watch.untold = hadLeft ? [] : folders.ahead().filter(isUntold)
  told.clear()
}

/** When INBOX has to be asked; Infinity while pushes are trusted. */
function nextAskAt({ context, host, missed, askedAt }: Watch): number {
  if (context.session.capabilities.idle && host.pushes && !missed) return Infinity
  return askedAt + context.deps.config.MAILROOM_INBOX_POLL
}

/** Asks INBOX by NOOP, whose responses are read like pushes, then by STATUS, where some servers alone report mail. */
async function ask(watch: Watch): Promise<void> {
  const { context, folders } = watch
  watch.askedAt = context.deps.now()
  await toInbox(watch)
  await context.session.noop()
  if (!watch.news && !watch.flags && (await folders.ask('INBOX'))) await catchUp(context, 'INBOX')
}

/** Polls all folders. A change of INBOX that the server has not reported: pushes are missing. */
async function poll(watch: Watch): Promise<void> {
  const { context, options, folders, looks, reported, stirredAt } = watch
  await toInbox(watch)
  const look = looks.begin()
  const begunAt = context.deps.now()
  const { leftAt } = watch
  watch.stirredAt = watch.leftAt = Infinity
  const { MAILROOM_FOLDER_POLL: often } = context.deps.config
  let before = inboxCursor(context)
  const moved = await folders.poll(look, async () => {
    // The place is for the list alone.
    watch.first.held?.end()
    await hearInbox(watch)
    await toInbox(watch)
    if (!(await watch.background.work())) return
    await toInbox(watch)
    // Mail that came while another folder was selected could not be pushed.
    before = inboxCursor(context)
  })
  if (moved.includes('INBOX')) await catchUp(context, 'INBOX')
  const found = hasNews(before, inboxCursor(context))
  const compares = watch.pollMs < quietFactor * often
  if (compares && !moved.includes('INBOX')) await compareInbox(context)
  const uncompared = compares ? folders.uncompared() : []
  judgeNotify(watch, leftAt < Infinity)
  context.state.moved.found(
    [...moved.filter((path) => path !== 'INBOX'), ...uncompared],
    Math.min(begunAt, folders.askedAt),
  )
  await reportGone(watch.others)
  if (look) looks.end()
  else if (found && !reported && watch.polledAt > 0) watch.missed = true
  watch.first.held?.end()
  watch.reported = false
  watch.polledAt = watch.askedAt = context.deps.now()
  const isQuiet = moved.length === 0 && !look && !context.state.isHolding && stirredAt === Infinity
  watch.pollMs = isQuiet ? Math.min(2 * watch.pollMs, quietFactor * often) : often
  options.alive()
}

/** Asks INBOX when its turn has come, and does the work that calls wait for: between two steps of a poll. */
async function hearInbox(watch: Watch): Promise<void> {
  const { session, deps } = watch.context
  if (deps.now() - watch.heardAt >= turnMs) {
    await (session.selected?.path === 'INBOX' ? session.noop() : toInbox(watch))
    watch.heardAt = deps.now()
  }
  await readForCalls(watch)
  await readPushed(watch)
}

/** Reads INBOX between two pages of another folder, and selects that folder again. */
async function giveWay(watch: Watch): Promise<void> {
  const { session } = watch.context
  const open = session.selected
  if (watch.isGivingWay || open === null) return
  watch.isGivingWay = true
  await hearInbox(watch).finally(() => (watch.isGivingWay = false))
  if (open.path === 'INBOX') await toInbox(watch)
  else if ((await session.select(open.path)).uidValidity !== open.uidValidity) throw goneMeanwhile()
}

async function compareInbox(context: SyncContext): Promise<void> {
  const { id: folderId, cursor } = context.state.folderByPath('INBOX') ?? {}
  if (folderId !== undefined && cursor && !hasModseqs(context.session, cursor))
    await syncFlags({ ...context, folderId }, null)
}

async function toInbox(watch: Watch): Promise<void> {
  const { session, deps } = watch.context
  if (session.selected !== null && session.selected.path !== 'INBOX') watch.leftAt = Math.min(watch.leftAt, deps.now())
  await openInbox(watch.context)
}

const inboxCursor = ({ state }: SyncContext): FolderCursor | null => state.folderByPath('INBOX')?.cursor ?? null

/** Whether messages have come or gone. Flags do not count: some servers push changes by others seldom or never. */
function hasNews(before: FolderCursor | null, after: FolderCursor | null): boolean {
  return after?.uidNext !== before?.uidNext || after?.exists !== before?.exists
}

async function idle(watch: Watch): Promise<void> {
  const { context, signal, background } = watch
  const { renewMs, tokenRenewAt } = watch.options
  const { now } = context.deps
  await toInbox(watch)
  watch.leaveIdle = new AbortController()
  const isTold = watch.news || watch.flags || watch.heard.size > 0
  if (isTold || watch.closed !== null || signal.aborted || background.isDue()) return
  const from = now()
  const dueAt = Math.min(from + renewMs, nextPollAt(watch), nextAskAt(watch), tokenRenewAt, background.at)
  const until = Math.max(from + 1, Math.min(dueAt, watch.lookAgainAt))
  watch.stay = { from, until, isWhole: until < watch.lookAgainAt }
  await context.session.idle(until - from, watch.leaveIdle.signal)
  watch.stay = null
  watch.heardAt = now()
  if (now() >= watch.lookAgainAt) watch.lookAgainAt = Infinity
}
