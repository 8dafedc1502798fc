/**
 * Watching an account: IDLE on INBOX on the watching connection; polls of the other folders between two IDLEs; everything those
 * polls find, and the back-fill, on the command connection at its own pace (background.ts).
 *
 * A push is answered at once: IDLE is left, what is new is read and stored, IDLE is entered again. Only what arrives while a
 * fetch is under way is merged.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { toAppError } from '../errors.ts'
import { createFolderPoll } from './folders.ts'
import { tellGone } from './gone.ts'
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

export interface WatchOptions {
  /** IDLE cycle of this host. */
  readonly renewMs: number
  /** When the access token ends; null = a password. */
  readonly tokenExpiresAt: number | null
  /** Paths that moved, for the command connection. */
  readonly moved: (paths: readonly string[]) => void
  /** The server has answered. */
  readonly alive: () => void
}

interface Dirt {
  news: boolean
  flags: boolean
  closed: Error | null
}

/** Runs until the signal aborts. Resolves with 'rotate' when it is time for a new access token; rejects when the connection fails. */
export async function watchInbox(
  context: SyncContext,
  options: WatchOptions,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  const { session, deps } = context
  const dirt: Dirt = { news: false, flags: false, closed: null }
  let leaveIdle = new AbortController()
  session.listen((event) => {
    soil(dirt, event)
    leaveIdle.abort()
  })
  const stop = () => leaveIdle.abort()
  signal.addEventListener('abort', stop)
  const folders = createFolderPoll(context)
  let polledAt = Number.NEGATIVE_INFINITY
  let missed = 0
  let lookAgainAt = Number.POSITIVE_INFINITY
  try {
    while (!signal.aborted) {
      if (dirt.closed !== null) throw dirt.closed
      if (dirt.news || dirt.flags) {
        await clean(context, dirt)
        lookAgainAt = deps.now() + lookAgainMs
        continue
      }
      const now = deps.now()
      if (options.tokenExpiresAt !== null && now > options.tokenExpiresAt - rotateBeforeMs) return 'rotate'
      if (now - polledAt >= deps.config.MAILROOM_FOLDER_POLL) {
        missed = (await pollOnce(context, folders, options)) && polledAt > 0 ? missed + 1 : 0
        polledAt = deps.now()
        options.alive()
        continue
      }
      leaveIdle = new AbortController()
      if (hasDirt(dirt) || isAborted(signal)) continue
      const renew = missed >= missedMax ? Math.min(renewFloorMs, options.renewMs) : options.renewMs
      const untilPoll = polledAt + deps.config.MAILROOM_FOLDER_POLL - now
      await session.idle(Math.max(1, Math.min(renew, untilPoll, lookAgainAt - now)), leaveIdle.signal)
      if (deps.now() >= lookAgainAt) lookAgainAt = Number.POSITIVE_INFINITY
    }
    return 'stopped'
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Read anew: both may change while awaiting, which the compiler does not know. */
const hasDirt = (dirt: Dirt): boolean => dirt.news || dirt.flags || dirt.closed !== null
const isAborted = (signal: AbortSignal): boolean => signal.aborted

function soil(dirt: Dirt, event: SessionEvent): void {
  if (event.type === 'closed') dirt.closed = toAppError(event.error ?? new Error('connection closed'))
  else if (event.type === 'flags') dirt.flags = true
  else dirt.news = true
}

/** Reads what the pushes announced. */
async function clean(context: SyncContext, dirt: Dirt): Promise<void> {
  const inbox = context.state.folderByPath('INBOX')
  if (inbox === null) throw toAppError(new Error('INBOX is gone'))
  const { news, flags } = dirt
  dirt.news = false
  dirt.flags = false
  if (news) await readNew(context, inbox.id)
  if (flags) await syncFlags(context, inbox.id, null)
  if (!dirt.news) await compareIfDue(context, inbox.id, null)
}

/** Answers true when INBOX had moved without a push. */
async function pollOnce(
  context: SyncContext,
  folders: ReturnType<typeof createFolderPoll>,
  options: WatchOptions,
): Promise<boolean> {
  const moved = await folders.poll()
  const inboxMoved = moved.includes('INBOX')
  if (inboxMoved) await catchUp(context, 'INBOX')
  options.moved(moved.filter((path) => path !== 'INBOX'))
  await tellGone(context.deps, context.state)
  return inboxMoved
}

/** Sleeps unless aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
}
