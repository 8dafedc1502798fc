/** Keeps the time of each message on its three stations: sent, heard by a bare connection, told by a callback. */
import { part, type CallbackReceiver } from '../../support/callbacks.ts'
import type { RawImap } from '../../support/raw-imap.ts'
import { until } from '../../support/until.ts'
import { benchId, benchMail } from './mail.ts'
import type { BareWatcher } from './watcher.ts'

export interface Arrival {
  readonly id: string
  readonly series: string
  readonly mailbox: string
  readonly sentAt: number
  heardAt: number | null
  toldAt: number | null
  /** Callbacks for it; more than one is a repetition. */
  told: number
}

export interface Arrivals {
  /** Appends one message to the mailbox and notes when. */
  send(mailbox: Mailbox, series: string, folder?: string): Promise<void>
  /** Resolves when all were told and heard, or after `withinMs`; then waits a little for repetitions. */
  settle(withinMs: number): Promise<void>
  readonly all: readonly Arrival[]
}

/** One mailbox with the connections of the bench. */
export interface Mailbox {
  readonly name: string
  readonly appender: RawImap
  readonly watcher: BareWatcher | null
}

interface Expected {
  readonly count: number
  readonly arrival: Arrival
}

export function trackArrivals(mailboxes: readonly Mailbox[], receiver: CallbackReceiver): Arrivals {
  const byId = new Map<string, Arrival>()
  const expected = new Map<string, { next: number; waiting: Expected[] }>()
  const grace = 3000

  for (const { name, watcher } of mailboxes) {
    const state = { next: watcher?.exists ?? 0, waiting: [] as Expected[] }
    expected.set(name, state)
    watcher?.onExists((count, at) => {
      for (const one of state.waiting.filter((waiting) => waiting.count <= count)) one.arrival.heardAt = at
      state.waiting = state.waiting.filter((waiting) => waiting.count > count)
    })
  }
  receiver.onCallback((callback) => {
    const id = benchId(part(callback.body, 'message_data')['email_message_id'])
    const arrival = id === null ? undefined : byId.get(id)
    if (arrival === undefined) return
    arrival.toldAt ??= callback.at
    arrival.told++
  })

  return {
    get all() {
      return [...byId.values()]
    },
    async send(mailbox, series, folder = 'INBOX') {
      const id = `${series}-${byId.size}`
      const raw = benchMail(id, mailbox.name)
      const arrival: Arrival = {
        ...{ id, series, mailbox: mailbox.name, sentAt: performance.now() },
        heardAt: null,
        toldAt: null,
        told: 0,
      }
      byId.set(id, arrival)
      const state = expected.get(mailbox.name)
      if (state !== undefined && mailbox.watcher !== null) state.waiting.push({ count: ++state.next, arrival })
      await mailbox.appender.append(folder, [raw])
    },
    async settle(withinMs) {
      const complete = (): boolean =>
        [...byId.values()].every((arrival) => arrival.told > 0) &&
        [...expected.values()].every((state) => state.waiting.length === 0)
      await until('all callbacks', complete, { withinMs, everyMs: 50 }).catch(() => undefined)
      const before = performance.now()
      await until('the grace period', () => performance.now() - before > grace, { withinMs: grace * 2, everyMs: 100 })
    },
  }
}
