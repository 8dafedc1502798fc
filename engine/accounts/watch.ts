/**
 * Watching an account: IDLE on INBOX on the watching connection; polls of the other folders between two IDLEs; everything those
 * polls find, and the back-fill, on the command connection at its own pace (background.ts).
 *
 * A push is answered at once: IDLE is left, what is new is read and stored, IDLE is entered again. Only what arrives while a
 * fetch is under way is merged.
 */
import { toAppError } from '../errors.ts'
import { createFolderPoll, type FolderPoll } from './folders.ts'
import { tellGone } from './gone.ts'
import { createLooks, type Looks } from './looks.ts'
import type { SessionEvent } from './session-types.ts'
import { catchUp, compareIfDue, readNew, syncFlags } from './sync.ts'
import type { SyncContext } from './write.ts'

/** Pushes missed this often in a row: IDLE is not trusted any more and renewed at the floor. */
const missedMax = 3
const renewFloorMs = 55_000
const rotateBeforeMs = 5 * 60_000
/**
 * Servers gather changes before they tell IDLE of them (Dovecot: half a second from the first). What came during our own reading
 * of the mail before is seen sooner by leaving IDLE once, this long after.
 */
const lookAgainMs = 500
/** What has left INBOX may have been moved by another client: the other folders are looked at this long after, once for a burst. */
const lookForMovedMs = 1000

export interface WatchOptions {
  /** IDLE cycle of this host. */
  readonly renewMs: number
  /** When the access token ends; null = a password. */
  readonly tokenExpiresAt: number | null
  /** Paths that moved, for the command connection; perhaps none. */
  readonly moved: (paths: readonly string[]) => void
  /** The server has answered. */
  readonly alive: () => void
}

/** What the pushes announced and is not read yet, and when which look comes next. */
interface Watch {
  readonly context: SyncContext
  readonly options: WatchOptions
  readonly signal: AbortSignal
  readonly folders: FolderPoll
  readonly looks: Looks
  news: boolean
  flags: boolean
  closed: Error | null
  leaveIdle: AbortController
  polledAt: number
  lookAgainAt: number
  /** Polls in a row that found INBOX moved without a push. */
  missed: number
}

/** Runs until the signal aborts. Resolves with 'rotate' when it is time for a new access token; rejects when the connection fails. */
export async function watchInbox(
  context: SyncContext,
  options: WatchOptions,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  const watch = createWatch(context, options, signal)
  const stop = () => watch.leaveIdle.abort()
  context.session.listen((event) => {
    soil(watch, event)
    stop()
  })
  context.state.onLook((path) => {
    watch.looks.want(0, path)
    stop()
  })
  signal.addEventListener('abort', stop)
  try {
    while (!signal.aborted) {
      if (watch.closed !== null) throw watch.closed
      if (watch.news || watch.flags) await clean(watch)
      else if (isTokenEnding(watch)) return 'rotate'
      else if (isPollDue(watch)) await poll(watch)
      else await idle(watch)
    }
    return 'stopped'
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function createWatch(context: SyncContext, options: WatchOptions, signal: AbortSignal): Watch {
  return {
    context,
    options,
    signal,
    folders: createFolderPoll(context),
    looks: createLooks(context.deps.now),
    news: false,
    flags: false,
    closed: null,
    leaveIdle: new AbortController(),
    polledAt: Number.NEGATIVE_INFINITY,
    lookAgainAt: Number.POSITIVE_INFINITY,
    missed: 0,
  }
}

function soil(watch: Watch, event: SessionEvent): void {
  if (event.type === 'closed') watch.closed = toAppError(event.error ?? new Error('connection closed'))
  else if (event.type === 'flags') watch.flags = true
  else watch.news = true
}

/** Reads what the pushes announced; what comes meanwhile is for the next round. */
async function clean(watch: Watch): Promise<void> {
  const { context } = watch
  const inbox = context.state.folderByPath('INBOX')
  if (inbox === null) throw toAppError(new Error('INBOX is gone'))
  const { news, flags } = take(watch)
  if (news) await readNew(context, inbox.id)
  if (flags) await syncFlags(context, inbox.id, null)
  if (!watch.news && (await compareIfDue(context, inbox.id, null)) > 0) watch.looks.want(lookForMovedMs)
  watch.lookAgainAt = context.deps.now() + lookAgainMs
}

function take(watch: Watch): { readonly news: boolean; readonly flags: boolean } {
  const { news, flags } = watch
  watch.news = false
  watch.flags = false
  return { news, flags }
}

function isTokenEnding({ context, options }: Watch): boolean {
  return options.tokenExpiresAt !== null && context.deps.now() > options.tokenExpiresAt - rotateBeforeMs
}

function isPollDue(watch: Watch): boolean {
  return watch.context.deps.now() >= nextPollAt(watch)
}

function nextPollAt({ context, polledAt, looks }: Watch): number {
  return Math.min(polledAt + context.deps.config.MAILROOM_FOLDER_POLL, looks.at)
}

/** Asks for the counts of all folders. INBOX moved without a push: IDLE missed something. */
async function poll(watch: Watch): Promise<void> {
  const { context, options, folders, looks } = watch
  const look = looks.begin()
  const moved = await folders.poll(look)
  const inboxMoved = moved.includes('INBOX')
  if (inboxMoved) await catchUp(context, 'INBOX')
  options.moved(moved.filter((path) => path !== 'INBOX'))
  await tellGone(context.deps, context.state)
  if (look === null) watch.missed = inboxMoved && watch.polledAt > 0 ? watch.missed + 1 : 0
  else looks.end()
  watch.polledAt = context.deps.now()
  options.alive()
}

async function idle(watch: Watch): Promise<void> {
  const { context, options, signal } = watch
  const { now } = context.deps
  watch.leaveIdle = new AbortController()
  if (watch.news || watch.flags || watch.closed !== null || signal.aborted) return
  const at = now()
  const renewMs = watch.missed >= missedMax ? Math.min(renewFloorMs, options.renewMs) : options.renewMs
  const nextLookMs = Math.min(nextPollAt(watch), watch.lookAgainAt) - at
  await context.session.idle(Math.max(1, Math.min(renewMs, nextLookMs)), watch.leaveIdle.signal)
  if (now() >= watch.lookAgainAt) watch.lookAgainAt = Number.POSITIVE_INFINITY
}
