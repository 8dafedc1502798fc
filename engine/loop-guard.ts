/**
 * Who holds the event loop is named in the log and in the metrics; an account that does so again and again is set
 * aside.
 */
import type { Accounts } from './accounts/index.ts'
import type { Logger } from './observe/log.ts'
import type { Held } from './observe/loop.ts'
import type { Metrics } from './observe/metrics.ts'

/** An account that held the loop for this long, in turns that are each too long … */
const mostMs = 5_000
/** … within this time, is set aside. */
const withinMs = 600_000

interface LoopGuardDeps {
  readonly log: Pick<Logger, 'warn'>
  readonly metrics: Pick<Metrics, 'loopHeld'>
  readonly accounts: Pick<Accounts, 'setAside'>
  readonly now?: () => number
}

export function createLoopGuard({ log, metrics, accounts, now = Date.now }: LoopGuardDeps): (held: Held) => void {
  let turns: readonly (Held & { readonly at: number })[] = []
  return ({ owner, ms }) => {
    const { kind, id } = owner ?? { kind: 'none', id: null }
    metrics.loopHeld.observe({ kind }, ms / 1000)
    log.warn({ kind, id, ms: Math.round(ms) }, 'held the event loop')
    const at = now()
    turns = [...turns.filter((turn) => turn.at > at - withinMs), { owner, ms, at }]
    const own = turns.filter((turn) => turn.owner?.kind === 'account' && turn.owner.id === id)
    const seconds = own.reduce((sum, turn) => sum + turn.ms, 0) / 1000
    if (id === null || seconds * 1000 < mostMs) return
    turns = turns.filter((turn) => !own.includes(turn))
    log.warn({ accountId: id, seconds }, 'account is set aside')
    const reason = `its mailbox kept the whole service waiting for ${seconds.toFixed(1)} s within ${withinMs / 60_000} minutes`
    accounts.setAside(id, reason)
  }
}
