/**
 * Storing what the chart says of an account. A change between OK and DISABLED goes with its callback in one step, exactly once:
 * the transition's version names it, so a report that is repeated, or made by another process too, changes nothing.
 */
import type { AccountReport } from '../../machines/events.ts'
import { isAppError, notFound } from '../errors.ts'
import type { AccountRecord, OutboxRecord } from '../store/records.ts'
import type { SyncDeps } from './state.ts'

type ReportDeps = Pick<SyncDeps, 'store' | 'listener' | 'log'>

/** Attempts to connect follow each other at intervals; more than a few within one report are not ours. */
const claimsAtOnce = 3

/**
 * Stores reports. `epochOf`: the epoch of our last claim, null before the first one and while one is under way; an owner that has taken the account over
 * since has the word, and what we would report is dropped.
 */
export function createReports(
  deps: ReportDeps,
  epochOf: (accountId: string) => number | null,
): (report: AccountReport) => Promise<void> {
  /** Callbacks of transitions, by account: they may be stored although the answer was lost, and then nobody was told. */
  const unanswered = new Map<string, readonly OutboxRecord[]>()
  return async (report) => {
    const { accountId } = report
    for (let again = claimsAtOnce; ; again -= 1) {
      const claimed = epochOf(accountId)
      try {
        await storeReport(deps, report, claimed, unanswered)
        unanswered.delete(accountId)
        return
      } catch (error) {
        if (isAppError(error, 'not_found')) unanswered.delete(accountId)
        if (!isAppError(error, 'lease_lost')) throw error
        // A claim of our own came in between.
        if (again > 0 && (claimed === null || epochOf(accountId) !== claimed)) continue
        unanswered.delete(accountId)
        deps.log.debug({ accountId }, 'another owner speaks for the account')
        return
      }
    }
  }
}

async function storeReport(
  deps: ReportDeps,
  report: AccountReport,
  claimed: number | null,
  unanswered: Map<string, readonly OutboxRecord[]>,
): Promise<void> {
  const { store, listener } = deps
  const account = await store.accounts.get(report.accountId)
  if (account === null) throw notFound('email account', report.accountId)
  const epoch = claimed ?? account.epoch
  const before = unanswered.get(account.id) ?? []
  let fresh: readonly OutboxRecord[] = []
  if (account.status === report.status) {
    await store.accounts.edit(account.id, { statusMessage: report.message, resume: report.resume }, epoch)
  } else {
    const outbox = await listener.planStatus(account, { ...said(report), version: account.statusVersion + 1 })
    unanswered.set(account.id, [...before, ...outbox])
    fresh = await transition(deps, account, report, epoch, outbox)
  }
  const rows = [...(await stillPending(deps, unanswered.get(account.id) ?? [], fresh)), ...fresh]
  if (rows.length > 0) listener.stored(account.id, rows, [])
}

function said({ status, message }: AccountReport): Pick<AccountReport, 'status' | 'message'> {
  return { status, message }
}

/** Answers the callbacks that it stored: none when the transition had been recorded before. */
async function transition(
  { store }: ReportDeps,
  account: AccountRecord,
  { status, message, resume }: AccountReport,
  epoch: number,
  outbox: readonly OutboxRecord[],
): Promise<readonly OutboxRecord[]> {
  const written = await store.accounts.transition({
    accountId: account.id,
    epoch,
    fromVersion: account.statusVersion,
    status,
    statusMessage: message,
    resume,
    outbox,
  })
  return written === null ? [] : outbox
}

/** Those that a report before this one stored without hearing of it. */
async function stillPending(
  { store }: ReportDeps,
  rows: readonly OutboxRecord[],
  fresh: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  const told = new Set(fresh.map(({ id }) => id))
  const earlier = rows.filter(({ id }) => !told.has(id))
  const stored = await Promise.all(earlier.map(({ id }) => store.outbox.get(id)))
  return stored.flatMap((row) => (row?.state === 'pending' ? [row] : []))
}
