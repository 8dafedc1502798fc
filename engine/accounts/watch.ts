/**
 * Watching an account: IDLE on INBOX on the watching connection; polls of the other folders between two IDLEs;
 * everything those polls find, and the back-fill, on the command connection at its own pace (background.ts).
 *
 * A push is answered at once: IDLE is left, what is new is read and stored, IDLE is entered again. Only what arrives
 * while a fetch is under way is merged. Where IDLE pushes nothing (see createPushRecords), INBOX is asked every
 * MAILROOM_INBOX_POLL.
 *
 * All folders are looked at out of turn where they turn out not to be as the index has them. What is noticed until a
 * look begins makes one look, and looks keep a distance: a mailbox in motion costs no more than the polls of a quick
 * setting.
 */
import { toAppError } from '../errors.ts'
import { pause } from '../waits.ts'
import { createFolderPoll } from './folders.ts'
import { reportGone } from './gone.ts'
import type { SessionEvent } from './session-types.ts'
import { catchUp, compareIfDue, readNew, syncFlags } from './sync.ts'
import type { SyncContext } from './write.ts'

/** What is reported this soon after IDLE begins, or this late, may be so because it does. */
const idleStartMs = 200
const idleEndMs = 20
/** A poll finds what was missed: INBOX is asked before it, unless that was so short a time ago. */
const askBeforePollMs = 1000
/**
 * Servers gather changes before they report them to IDLE (Dovecot: half a second from the first). What came during our
 * own reading of the mail before is seen sooner by leaving IDLE once, this long after.
 */
const lookAgainMs = 500
/** What has left INBOX may have been moved: the other folders are looked at this long after, once for a burst. */
const lookForMovedMs = 1000

interface WatchOptions {
  readonly renewMs: number
  readonly pushes: PushRecords
  /** When another access token is due; Infinity = a password. */
  readonly tokenRenewAt: number
  readonly alive: () => void
}

/** One IDLE, and when it is left unless something happens. */
interface Stay {
  readonly from: number
  readonly until: number
  /** It is not left for `lookAgainAt`: what it reports at its end had to be reported before. */
  readonly whole: boolean
  reportedLate: boolean
}

/** What the pushes announced and is not read yet, and when which look comes next. */
type Watch = ReturnType<typeof createWatch>

/** Until the signal aborts. 'rotate' = it is time for a new access token. Rejects when the connection fails. */
export async function watchInbox(
  context: SyncContext,
  options: WatchOptions,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  const { now } = context.deps
  const stop = () => watch.leaveIdle.abort('news')
  const watch = createWatch(context, options, signal, stop)
  context.session.listen((event) => {
    if (event.type !== 'closed') judge(watch)
    note(watch, event)
    stop()
  })
  context.state.onLook((path) => {
    watch.looks.want(path === undefined ? lookForMovedMs : 0, path)
    stop()
  })
  signal.addEventListener('abort', stop)
  try {
    while (!signal.aborted) {
      if (watch.closed !== null) throw watch.closed
      if (watch.news || watch.flags) await readPushed(watch)
      else if (now() >= options.tokenRenewAt) return 'rotate'
      else if (now() >= nextAskAt(watch)) await ask(watch)
      else if (now() >= nextPollAt(watch)) await poll(watch)
      else await idle(watch)
    }
    return 'stopped'
  } finally {
    signal.removeEventListener('abort', stop)
    watch.pushes.end()
  }
}

function createWatch(context: SyncContext, options: WatchOptions, signal: AbortSignal, wake: () => void) {
  return {
    context,
    options,
    signal,
    folders: createFolderPoll(context),
    looks: createLooks(context.deps.now),
    pushes: options.pushes.join(context.state.account.server, wake),
    stay: null as Stay | null,
    /** The server has reported something since the last poll, not to it. */
    reported: false,
    news: false,
    flags: false,
    closed: null as Error | null,
    leaveIdle: new AbortController(),
    polledAt: Number.NEGATIVE_INFINITY,
    askedAt: Number.NEGATIVE_INFINITY,
    lookAgainAt: Number.POSITIVE_INFINITY,
  }
}

/** Told in the middle of IDLE = pushed. Told when its time is over = the server waits to be asked. */
function judge(watch: Watch): void {
  const { stay, pushes, leaveIdle, context } = watch
  watch.reported = true
  if (stay === null || leaveIdle.signal.aborted) return
  const at = context.deps.now()
  const soonMs = Math.min(idleStartMs, (stay.until - stay.from) / 4)
  if (at >= stay.until - idleEndMs) {
    if (stay.whole && !stay.reportedLate) pushes.reportedLate()
    stay.reportedLate = true
  } else if (at > stay.from + soonMs) pushes.pushed()
}

function note(watch: Watch, event: SessionEvent): void {
  if (event.type === 'closed') watch.closed = toAppError(event.error ?? new Error('connection closed'))
  else if (event.type === 'flags') watch.flags = true
  else watch.news = true
}

/** Reads what the pushes announced; what comes meanwhile is for the next round. */
async function readPushed(watch: Watch): Promise<void> {
  const { context } = watch
  const inbox = context.state.folderByPath('INBOX')
  if (inbox === null) throw toAppError(new Error('INBOX is gone'))
  const { news, flags } = watch
  Object.assign(watch, { news: false, flags: false })
  const folder = { ...context, folderId: inbox.id }
  if (news) await readNew(folder)
  if (flags) await syncFlags(folder, null)
  if (!watch.news && (await compareIfDue(folder, null)) > 0) watch.looks.want(lookForMovedMs)
  watch.lookAgainAt = context.deps.now() + lookAgainMs
}

function nextPollAt({ context, polledAt, looks }: Watch): number {
  return Math.min(polledAt + context.deps.config.MAILROOM_FOLDER_POLL, looks.at)
}

/** Infinity while the pushes are trusted. */
function nextAskAt(watch: Watch): number {
  const { context, pushes, askedAt } = watch
  if (pushes.asking(context.session.capabilities.idle) === 'never') return Number.POSITIVE_INFINITY
  const { MAILROOM_INBOX_POLL } = context.deps.config
  return Math.min(askedAt + MAILROOM_INBOX_POLL, Math.max(askedAt + askBeforePollMs, nextPollAt(watch)))
}

/** What NOOP reports is read as if it had been pushed. */
async function ask(watch: Watch): Promise<void> {
  const { context, pushes, folders } = watch
  watch.askedAt = context.deps.now()
  await context.session.noop()
  if (watch.news || watch.flags) pushes.answered()
  else if (pushes.asking(true) === 'status' && (await folders.ask('INBOX'))) await catchUp(context, 'INBOX')
}

/** Asks for the counts of all folders. INBOX moved and nothing was reported: IDLE missed something. */
async function poll(watch: Watch): Promise<void> {
  const { context, options, folders, looks, pushes, reported } = watch
  const look = looks.begin()
  const begunAt = context.deps.now()
  const moved = await folders.poll(look)
  const found = moved.includes('INBOX') && (await findNews(context))
  context.state.moved.found(moved, Math.min(begunAt, folders.askedAt))
  await reportGone(context.deps, context.state)
  if (look !== null) looks.end()
  else if (found && !reported && watch.polledAt > 0) pushes.missed()
  watch.reported = false
  watch.polledAt = watch.askedAt = context.deps.now()
  options.alive()
}

/** Whether messages have come or gone. Flags are no measure: some servers push those of others seldom or never. */
async function findNews(context: SyncContext): Promise<boolean> {
  const before = context.state.folderByPath('INBOX')?.cursor
  await catchUp(context, 'INBOX')
  const after = context.state.folderByPath('INBOX')?.cursor
  return after?.uidNext !== before?.uidNext || after?.exists !== before?.exists
}

/**
 * Where INBOX is asked, one IDLE after each poll shows whether pushes come again. Between the other questions the line
 * is left alone: entering and leaving IDLE costs more than the question.
 */
function isResting({ context, pushes, askedAt, polledAt }: Watch): boolean {
  return askedAt > polledAt && pushes.asking(context.session.capabilities.idle) !== 'never'
}

async function idle(watch: Watch): Promise<void> {
  const { context, options, signal } = watch
  const { now } = context.deps
  watch.leaveIdle = new AbortController()
  if (watch.news || watch.flags || watch.closed !== null || signal.aborted) return
  const from = now()
  const dueAt = Math.min(from + options.renewMs, nextPollAt(watch), nextAskAt(watch), options.tokenRenewAt)
  const until = Math.max(from + 1, Math.min(dueAt, watch.lookAgainAt))
  const { leaveIdle, lookAgainAt } = watch
  if (isResting(watch)) await pause(until - from, leaveIdle.signal)
  else {
    watch.stay = { from, until, whole: until < lookAgainAt, reportedLate: false }
    await context.session.idle(until - from, leaveIdle.signal)
    watch.stay = null
  }
  if (now() >= watch.lookAgainAt) watch.lookAgainAt = Number.POSITIVE_INFINITY
}

const distanceMs = 5000
/** The same where an API call waits for a folder. */
const namedDistanceMs = 2000
/** A slow server is looked at more seldom: a look takes at most a tenth of the time. */
const share = 10

export function createLooks(now: () => number) {
  let paths = new Set<string>()
  let wantedAt = Number.POSITIVE_INFINITY
  let begunAt = 0
  let endedAt = 0
  const dueAt = (): number => {
    const distance = paths.size > 0 ? namedDistanceMs : distanceMs
    return Math.max(wantedAt, endedAt + Math.max(distance, (endedAt - begunAt) * share))
  }
  return {
    /** When the next look is due, in ms since 1970; Infinity = none is wanted. */
    get at(): number {
      return dueAt()
    },
    /** A look is wanted, `afterMs` from now at the earliest. `path`: an API call waits for this folder. */
    want(afterMs: number, path?: string): void {
      if (path !== undefined) paths.add(path)
      wantedAt = Math.min(wantedAt, now() + afterMs)
    },
    /** Begins the look that is due, and answers the paths that were named; null = none is due. */
    begin(): ReadonlySet<string> | null {
      if (now() < dueAt()) return null
      begunAt = now()
      wantedAt = Number.POSITIVE_INFINITY
      const taken = paths
      paths = new Set()
      return taken
    },
    end(): void {
      endedAt = now()
    },
  }
}

/** Misses until INBOX is asked with NOOP; as many again, which NOOP did not report, until STATUS is asked. */
const toAsk = 3
const toDoubt = 2 * toAsk

type Asking = 'never' | 'noop' | 'status'

type Pushes = ReturnType<typeof createPushes>

export type PushRecords = ReturnType<typeof createPushRecords>

interface Host {
  misses: number
  readonly wakes: Set<() => void>
}

/**
 * Whether IDLE reports what happens in INBOX. A server shows that it does not by three misses: INBOX had moved and
 * nothing was pushed. From then on INBOX is asked. A push takes that back, of the account and of its host; the misses
 * of an account count for its host too, so that the others there need not find it out again. An account that misses
 * pushes goes on to ask where others of its host hear them: servers that run out of watches push to some mailboxes
 * only. Kept in memory, for hosts that missed something.
 */
export function createPushRecords(spreadMs: number) {
  const hosts = new Map<string, Host>()
  return {
    /** `wake`: the host turns out not to push. Called within `spreadMs`, so that not all ask in one moment. */
    join(name: string, wake: () => void): Pushes {
      const key = name.toLowerCase()
      const host: Host = hosts.get(key) ?? { misses: 0, wakes: new Set() }
      hosts.set(key, host)
      host.wakes.add(wake)
      const end = (): void => {
        host.wakes.delete(wake)
        if (host.wakes.size === 0 && host.misses === 0 && hosts.get(key) === host) hosts.delete(key)
      }
      return createPushes(host, () => wakeAll(host, spreadMs), end)
    },
  }
}

function wakeAll({ wakes }: Host, spreadMs: number): void {
  for (const wake of wakes) setTimeout(wake, Math.random() * spreadMs).unref()
}

function createPushes(host: Host, wakeOthers: () => void, end: () => void) {
  let own = 0
  const count = (most: number): void => {
    own = Math.max(own, Math.min(own + 1, most))
    const before = host.misses
    host.misses = Math.max(before, Math.min(before + 1, most))
    if (before < toAsk && host.misses >= toAsk) wakeOthers()
  }
  return {
    /** `idles`: false = the session has no IDLE, which pushes nothing. */
    asking(idles: boolean): Asking {
      const misses = Math.max(own, host.misses)
      if (misses >= toDoubt) return 'status'
      return idles && misses < toAsk ? 'never' : 'noop'
    },
    pushed(): void {
      own = 0
      host.misses = 0
    },
    /** Something was reported when IDLE had ended, and not before. */
    reportedLate: (): void => count(toAsk),
    answered(): void {
      own = Math.min(own, toAsk)
      host.misses = Math.min(host.misses, toAsk)
    },
    /** A poll found INBOX moved, and nothing had been reported. */
    missed: (): void => count(toDoubt),
    end,
  }
}
