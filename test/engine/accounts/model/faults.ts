/** Faults between the mail server and its clients. */
import type { Folder, HookAnswer, HookCall, ImapServer } from '../../../support/imap-server/index.ts'
import type { VirtualTime } from '../../../support/virtual-time.ts'

/**
 * 'before': the connection breaks before a command is run. 'after': the command is run, and the connection breaks
 * instead of the answer. 'never': the command is run, and the answer never comes.
 */
export type Loss = 'before' | 'after' | 'never'

/** Connections by their number: the first one watches. */
export type Which = 'all' | 'odd' | 'even'

export interface Faults {
  readonly hooks: {
    readonly send: (response: Buffer, call: HookCall | null) => Buffer | null | Promise<Buffer | null>
    readonly command: (call: HookCall) => HookAnswer | undefined
    readonly deaf: (connection: number) => boolean
  }
  /** The answer to one of the next commands is lost. */
  lose(loss: Loss, after: number): void
  /** For so long everything that these connections are sent comes so much later. */
  lag(which: Which, byMs: number, forMs: number): void
  /** For so long these connections hear nothing of what others do in their open folder. */
  deafen(which: Which, forMs: number): void
  /** For so long the server leaves this message out of its answers, but for its flags. */
  hide(path: string, uid: number, forMs: number): void
  clear(): void
}

const isOf = (which: Which, connection: number): boolean =>
  which === 'all' || (connection % 2 === 1) === (which === 'odd')

const isIndexOf = (response: Buffer, uid: number): boolean =>
  new RegExp(`^\\* \\d+ FETCH \\(.*\\bUID ${uid}\\b.*RFC822\\.SIZE`).test(response.toString('latin1'))

const isTagged = (response: Buffer, { tag }: HookCall): boolean => response.toString('latin1', 0, tag.length) === tag

export function createFaults(server: ImapServer, time: VirtualTime): Faults {
  let losses: { readonly loss: Loss; after: number }[] = []
  let lags: { readonly which: Which; readonly byMs: number; readonly until: number } = {
    which: 'all',
    byMs: 0,
    until: 0,
  }
  let hidden: { readonly path: string; readonly uid: number; readonly until: number }[] = []
  let deafness: { readonly which: Which; readonly until: number } = { which: 'all', until: 0 }

  /** The loss that is due now, one command of its kind counted. */
  function due(...kinds: readonly Loss[]): Loss | null {
    const first = losses.find(({ loss }) => kinds.includes(loss))
    if (first === undefined) return null
    first.after -= 1
    if (first.after >= 0) return null
    losses = losses.filter((one) => one !== first)
    return first.loss
  }

  /** Something of a folder is always shown: a server that shows nothing has another fault. */
  function isHidden({ name, messages }: Folder, response: Buffer): boolean {
    const uids = new Set(hidden.flatMap(({ path, uid, until }) => (path === name && time.now() < until ? uid : [])))
    return messages.some(({ uid }) => !uids.has(uid)) && [...uids].some((uid) => isIndexOf(response, uid))
  }

  return {
    hooks: {
      command: () => (due('before') === null ? undefined : { close: 'reset' }),
      send(response, call) {
        if (call !== null && isTagged(response, call)) {
          const loss = due('after', 'never')
          if (loss === 'after') server.dropConnection(call.connection)
          if (loss !== null) return null
        }
        if (call?.folder && isHidden(call.folder, response)) return null
        const { which, byMs, until } = lags
        if (call === null || time.now() >= until || !isOf(which, call.connection)) return response
        return new Promise((resolve) => setTimeout(() => resolve(response), byMs))
      },
      deaf: (connection) => time.now() < deafness.until && isOf(deafness.which, connection),
    },
    lose: (loss, after) => void losses.push({ loss, after }),
    lag: (which, byMs, forMs) => void (lags = { which, byMs, until: time.now() + forMs }),
    hide: (path, uid, forMs) => void hidden.push({ path, uid, until: time.now() + forMs }),
    deafen: (which, forMs) => void (deafness = { which, until: time.now() + forMs }),
    clear() {
      losses = []
      hidden = []
      lags = { ...lags, until: 0 }
      deafness = { ...deafness, until: 0 }
    },
  }
}
