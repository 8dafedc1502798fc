/**
 * Watching an account: the one session that reads. IDLE on INBOX; between two IDLEs what API calls wait for, polls of
 * the other folders, and what those find, and old mail (background.ts). Work in other folders gives way to INBOX.
 *
 * A push is answered at once: IDLE is left, what is new is read and stored, IDLE is entered again. Only what arrives
 * while a fetch is under way is merged. A host is trusted to push once it has pushed to one of its accounts; until then
 * INBOX is asked every MAILROOM_INBOX_POLL, and so it is in an account of which a poll found what was not pushed, until
 * it is pushed to.
 *
 * Where NOTIFY stands the server tells of the other folders, except of what comes to one just before it is left: they
 * are polled after that, and seldom besides, to look whether it does. Else they are polled MAILROOM_FOLDER_POLL after
 * activity of the account (mail, an API call), and at twice the distance after each poll without. Counts do not show
 * the flags that others change: without CONDSTORE those of the newest messages are compared at each poll until the
 * account is quiet.
 *
 * All folders are looked at out of turn where they turn out not to be as the index has them. What is noticed until a
 * look begins makes one look, and looks keep a distance: a mailbox in motion costs no more than the polls of a quick
 * setting.
 */
import { toAppError } from '../errors.ts'
import { answerCalls, type BackgroundOptions, createBackground } from './background.ts'
import { createFolderPoll } from './folders.ts'
import { goneMeanwhile } from './absent.ts'
import { reportGone } from './departures.ts'
import type { FolderCursor } from '../store/records.ts'
import type { MailboxStatus, SessionEvent } from './session-types.ts'
import { catchUp, compareIfDue, hasModseqs, openInbox, readNew, syncFlags } from './sync.ts'
import type { SyncContext } from './write.ts'

/** What is reported this soon after IDLE begins, or this late, may be so because it does. */
const idleStartMs = 200
const idleEndMs = 20
/** While folders are asked or read INBOX is heard this often at least. */
const turnMs = 300
/** Polls of a quiet account are at most this many times as far apart: 10 min. */
const quietFactor = 13
/** Where NOTIFY stands they are this many times as far apart: 15 min. */
export const checkFactor = 20
/**
 * Servers gather changes before they report them to IDLE (Dovecot: half a second from the first). What came during our
 * own reading of the mail before is seen sooner by leaving IDLE once, this long after.
 */
const lookAgainMs = 500
/** What has left INBOX may have been moved: the other folders are looked at this long after. */
const lookForMovedMs = 1000

interface WatchOptions extends BackgroundOptions {
  readonly renewMs: number
  /** When another access token is due; Infinity = a password. */
  readonly tokenRenewAt: number
  readonly alive: () => void
}

/** One IDLE, and when it is left unless something happens. */
interface Stay {
  readonly from: number
  readonly until: number
  /** It is not left for `lookAgainAt`: what it reports at its end had to be pushed before. */
  readonly isWhole: boolean
}

/** What the pushes announced and is not read yet, and when which look comes next. */
type Watch = ReturnType<typeof createWatch>

/** Until the signal aborts. 'rotate' = it is time for a new access token. Rejects when the connection fails. */
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
    // By LIST-STATUS one command looks at all folders.
    watch.isNotified = (await context.session.notify()) && context.session.capabilities.listStatus
    // Mail may have come since the first reading, before anybody listened.
    watch.news = context.session.selected?.exists !== inboxCursor(context)?.exists
    // Departures of an earlier session: otherwise the poll tells them.
    if (watch.polledAt > 0) await reportGone(context.deps, context.state)
    while (!signal.aborted) {
      if (watch.closed !== null) throw watch.closed
      if (context.state.moved.isCalled()) await readForCalls(watch)
      else if (watch.news || watch.flags) await readPushed(watch)
      else if (now() >= options.tokenRenewAt) return 'rotate'
      else if (now() >= nextAskAt(watch)) await ask(watch)
      else if (now() >= nextPollAt(watch)) await poll(watch)
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
    /** For work in other folders. */
    others,
    options,
    signal,
    background: createBackground(others, options, wake, signal),
    folders: createFolderPoll(context),
    looks: createLooks(context.deps.now),
    host: options.host,
    isGivingWay: false,
    /** INBOX has moved, and nothing had been pushed: a poll found it, or the end of IDLE. */
    missed: false,
    isNotified: false,
    /** Paths of which the server has told since the last poll; and those that it found to have moved untold. */
    told: new Set<string>(),
    untold: [] as readonly string[],
    /** The last STATUS of folders by NOTIFY, until they are taken one after the other. */
    heard: new Map<string, MailboxStatus>(),
    stay: null as Stay | null,
    /** The server has reported something since the last poll, not to it. */
    reported: false,
    news: false,
    flags: false,
    closed: null as Error | null,
    leaveIdle: new AbortController(),
    polledAt: context.state.moved.lookedAt,
    /** Another folder was first left then, since the last poll: nobody tells of mail that had just come there. */
    leftAt: context.state.moved.lookedAt,
    /** How long after the last poll the next one is due. */
    pollMs: context.deps.config.MAILROOM_FOLDER_POLL,
    /** Activity since the last poll; Infinity = none. */
    stirredAt: Number.POSITIVE_INFINITY,
    askedAt: context.deps.now(),
    lookAgainAt: Number.POSITIVE_INFINITY,
    /** The last IDLE ended then, or the server was asked for news. */
    heardAt: context.deps.now(),
  }
  return watch
}

/** Told in the middle of IDLE = pushed. Told when its time is over = the server waits to be asked. */
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

/** Mail, or an API call: the next poll may be due sooner. */
function stir(watch: Watch, wake: () => void): void {
  if (watch.stirredAt < Number.POSITIVE_INFINITY) return
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

/** Of other folders than INBOX, by NOTIFY. */
async function takeHeard({ heard, context: { state }, folders, looks }: Watch): Promise<void> {
  for (const [path, status] of heard) {
    heard.delete(path)
    if (state.folderByPath(path) === null) looks.want()
    else if (await folders.hear(path, status)) state.moved.found([path])
    state.stir()
  }
}

/** Reads what the pushes announced; what comes meanwhile is for the next round. */
async function readPushed(watch: Watch): Promise<void> {
  const { context } = watch
  const inbox = context.state.folderByPath('INBOX')
  if (inbox === null) throw toAppError(new Error('INBOX is gone'))
  if (!watch.news && !watch.flags) return
  context.state.stir()
  await toInbox(watch)
  const { news, flags } = watch
  Object.assign(watch, { news: false, flags: false })
  const folder = { ...context, folderId: inbox.id }
  if (news) await readNew(folder)
  if (flags) await syncFlags(folder, null)
  if (!watch.news && (await compareIfDue(folder, null)) > 0) watch.looks.want()
  watch.lookAgainAt = context.deps.now() + lookAgainMs
}

/** The list of folders, and folders that API calls have changed, or ask for. */
async function readForCalls({ context, others, folders }: Watch): Promise<void> {
  const { moved } = context.state
  await moved.answerLists(async () => moved.found(await folders.list()))
  await answerCalls(others)
}

function nextPollAt(watch: Watch): number {
  const { polledAt, pollMs, stirredAt, leftAt } = watch
  const { MAILROOM_FOLDER_POLL: often } = watch.context.deps.config
  const isTold = watch.isNotified && watch.host.tells && !watch.context.state.isHolding
  const at = isTold
    ? Math.min(polledAt + checkFactor * often, leftAt + often)
    : Math.min(polledAt + pollMs, stirredAt + often)
  return Math.min(at, watch.looks.at)
}

/**
 * A folder that a poll finds is told a moment later, or never. `hadLeft`: a folder was left since the last poll, of
 * which nobody could tell all.
 */
function judgeNotify(watch: Watch, hadLeft: boolean): void {
  const { told, untold, host, isNotified, folders, context } = watch
  if (isNotified && untold.some((path) => !told.has(path))) host.tells = false
  const isUntold = (path: string): boolean => path !== 'INBOX' && !told.has(path) && !context.state.moved.isMarked(path)
  watch.untold = hadLeft ? [] : folders.ahead().filter(isUntold)
  told.clear()
}

/** Infinity while the pushes are trusted. */
function nextAskAt({ context, host, missed, askedAt }: Watch): number {
  if (context.session.capabilities.idle && host.pushes && !missed) return Number.POSITIVE_INFINITY
  return askedAt + context.deps.config.MAILROOM_INBOX_POLL
}

/** What NOOP reports is read as if it had been pushed; some servers tell by STATUS alone. */
async function ask(watch: Watch): Promise<void> {
  const { context, folders } = watch
  watch.askedAt = context.deps.now()
  await toInbox(watch)
  await context.session.noop()
  if (!watch.news && !watch.flags && (await folders.ask('INBOX'))) await catchUp(context, 'INBOX')
}

/** Asks for the counts of all folders. INBOX moved and nothing was reported: IDLE missed something. */
async function poll(watch: Watch): Promise<void> {
  const { context, options, folders, looks, reported, stirredAt } = watch
  await toInbox(watch)
  const look = looks.begin()
  const begunAt = context.deps.now()
  const { leftAt } = watch
  watch.stirredAt = watch.leftAt = Number.POSITIVE_INFINITY
  const { MAILROOM_FOLDER_POLL: often } = context.deps.config
  let before = inboxCursor(context)
  const moved = await folders.poll(look, async () => {
    await hearInbox(watch)
    await toInbox(watch)
    if (!(await watch.background.work())) return
    await toInbox(watch)
    // What came while another folder was open could not be pushed.
    before = inboxCursor(context)
  })
  if (moved.includes('INBOX')) await catchUp(context, 'INBOX')
  const found = hasNews(before, inboxCursor(context))
  const compares = watch.pollMs < quietFactor * often
  if (compares && !moved.includes('INBOX')) await compareInbox(context)
  const uncompared = compares ? folders.uncompared() : []
  judgeNotify(watch, leftAt < Number.POSITIVE_INFINITY)
  context.state.moved.found(
    [...moved.filter((path) => path !== 'INBOX'), ...uncompared],
    Math.min(begunAt, folders.askedAt),
  )
  await reportGone(context.deps, context.state)
  if (look) looks.end()
  else if (found && !reported && watch.polledAt > 0) watch.missed = true
  watch.reported = false
  watch.polledAt = watch.askedAt = context.deps.now()
  const isQuiet = moved.length === 0 && !look && !context.state.isHolding && stirredAt === Number.POSITIVE_INFINITY
  watch.pollMs = isQuiet ? Math.min(2 * watch.pollMs, quietFactor * often) : often
  options.alive()
}

/** Between the questions of a poll, which takes seconds where each folder is asked for, and behind other folders. */
async function hearInbox(watch: Watch): Promise<void> {
  const { session, deps } = watch.context
  if (deps.now() - watch.heardAt >= turnMs) {
    await (session.selected?.path === 'INBOX' ? session.noop() : toInbox(watch))
    watch.heardAt = deps.now()
  }
  await readForCalls(watch)
  await readPushed(watch)
}

/** Between the pages of another folder, which is open afterwards. */
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

/** Whether messages have come or gone. Flags are no measure: some servers push those of others seldom or never. */
function hasNews(before: FolderCursor | null, after: FolderCursor | null): boolean {
  return after?.uidNext !== before?.uidNext || after?.exists !== before?.exists
}

async function idle(watch: Watch): Promise<void> {
  const { context, options, signal, background } = watch
  const { now } = context.deps
  await toInbox(watch)
  watch.leaveIdle = new AbortController()
  const isTold = watch.news || watch.flags || watch.heard.size > 0
  if (isTold || watch.closed !== null || signal.aborted || background.isDue()) return
  const from = now()
  const dueAt = Math.min(
    from + options.renewMs,
    nextPollAt(watch),
    nextAskAt(watch),
    options.tokenRenewAt,
    background.at,
  )
  const until = Math.max(from + 1, Math.min(dueAt, watch.lookAgainAt))
  watch.stay = { from, until, isWhole: until < watch.lookAgainAt }
  await context.session.idle(until - from, watch.leaveIdle.signal)
  watch.stay = null
  watch.heardAt = now()
  if (now() >= watch.lookAgainAt) watch.lookAgainAt = Number.POSITIVE_INFINITY
}

const distanceMs = 5000
/** A slow server is looked at more seldom: a look takes at most a tenth of the time. */
const share = 10

export function createLooks(now: () => number) {
  let wantedAt = Number.POSITIVE_INFINITY
  let begunAt = 0
  let endedAt = 0
  const dueAt = (): number => Math.max(wantedAt, endedAt + Math.max(distanceMs, (endedAt - begunAt) * share))
  return {
    /** When the next look is due, in ms since 1970; Infinity = none is wanted. */
    get at(): number {
      return dueAt()
    },
    /** What has left a folder may have been moved: a look is wanted, once for a burst. */
    want: (): void => void (wantedAt = Math.min(wantedAt, now() + lookForMovedMs)),
    /** Begins the look that is due. */
    begin(): boolean {
      if (now() < dueAt()) return false
      begunAt = now()
      wantedAt = Number.POSITIVE_INFINITY
      return true
    },
    end(): void {
      endedAt = now()
    },
  }
}
