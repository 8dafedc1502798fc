/**
 * Whose page of a historical scan comes next. Webhooks take turns, and the accounts of a webhook; of one webhook one page is under
 * way at a time. A webhook that has to wait is left out for a second, and twice as long each time after that. No I/O and no clock.
 */

export interface Turn {
  readonly webhookId: string
  readonly accountId: string
}

/**
 * `more`, `done`: after a page that was scanned. `nothing`: there was none to scan, and there will be none. `wait`: not now, and
 * not for the other accounts of this webhook either.
 */
export type TurnEnd = 'more' | 'done' | 'nothing' | 'wait'

export interface Turns {
  /** The account is to be scanned. A webhook that was left out is asked again. */
  add(webhookId: string, accountId: string): void
  /** null = nobody is ready. */
  take(now: number): Turn | null
  give(turn: Turn, end: TurnEnd, now: number): void
  /** When the next one that was left out is ready; null = all are done or under way. */
  nextAt(): number | null
}

interface Line {
  readonly accounts: Set<string>
  busy: boolean
  /** Asked for while a page was under way: what that page found may be out of date. */
  renewed: boolean
  readyAt: number
  /** Waits in a row. */
  waits: number
}

const firstWaitMs = 1_000
const longestWaitMs = 30_000

export function createTurns(): Turns {
  const lines = new Map<string, Line>()
  return {
    add(webhookId, accountId) {
      const line = lines.get(webhookId) ?? { accounts: new Set(), busy: false, renewed: false, readyAt: 0, waits: 0 }
      line.accounts.add(accountId)
      line.renewed = line.busy
      line.readyAt = 0
      lines.set(webhookId, line)
    },
    take(now) {
      for (const [webhookId, line] of lines) {
        const [accountId] = line.accounts
        if (line.busy || line.readyAt > now || accountId === undefined) continue
        line.busy = true
        // Both to the end of their lines.
        line.accounts.delete(accountId)
        line.accounts.add(accountId)
        lines.delete(webhookId)
        lines.set(webhookId, line)
        return { webhookId, accountId }
      }
      return null
    },
    give({ webhookId, accountId }, end, now) {
      const line = lines.get(webhookId)
      if (line === undefined) return
      line.busy = false
      const over = !line.renewed && (end === 'done' || end === 'nothing')
      line.renewed = false
      if (over) line.accounts.delete(accountId)
      if (line.accounts.size === 0) lines.delete(webhookId)
      line.readyAt = end === 'wait' ? now + Math.min(firstWaitMs * 2 ** line.waits, longestWaitMs) : 0
      line.waits = end === 'wait' ? line.waits + 1 : 0
    },
    nextAt() {
      const times = Array.from(lines.values()).flatMap((line) => (line.busy ? [] : [line.readyAt]))
      return times.length === 0 ? null : Math.min(...times)
    },
  }
}
