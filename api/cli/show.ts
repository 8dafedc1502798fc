/** Formats answers of the admin API as lines of text. */
import type { z } from 'zod'
import type { accountList } from '../admin/accounts.ts'
import type { explanationView, LineRow } from '../admin/account.ts'
import type { logView } from '../admin/deliveries.ts'
import type { overviewView } from '../admin/overview.ts'
import type { retentionView } from '../admin/store.ts'
import type { developerView, tokenView } from '../admin/keys.ts'

/** Text of strangers in one line, without control characters and without those that change the direction of writing. */
export function printable(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Bidi_Control}]/gu, '?')
}

/** Columns by their headings, each as wide as its widest cell, with two spaces between. */
function table<T>(rows: readonly T[], columns: Readonly<Record<string, (row: T) => string>>): readonly string[] {
  const heads = Object.keys(columns)
  const lines = [heads, ...rows.map((row) => Object.values(columns).map((cell) => cell(row)))]
  const widths = heads.map((_head, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)) + 2)
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)))
  return padded.map((line) => line.join('').trimEnd())
}

/** A duration: 41s, 12m, 3h, 5d. */
function age(seconds: number): string {
  if (seconds >= 86_400) return `${Math.floor(seconds / 86_400)}d`
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)}h`
  if (seconds >= 60) return `${Math.floor(seconds / 60)}m`
  return `${Math.max(0, Math.round(seconds))}s`
}

const since = (at: number): string => age(Date.now() / 1000 - at)
const day = (at: number): string => `${new Date(at * 1000).toISOString().slice(0, 19).replace('T', ' ')}Z`

function next(step: { readonly what: string; readonly at: number } | null): string {
  return step === null ? '' : `${step.what} in ${age(step.at - Date.now() / 1000)}`
}

function counts(by: Readonly<Record<string, number>>): string {
  const some = Object.entries(by).filter(([, count]) => count > 0)
  return some.length === 0 ? 'none' : some.map(([name, count]) => `${count} ${name}`).join(', ')
}

export function showTop(answer: unknown): readonly string[] {
  const { version, started, ready, accounts, hosts, webhooks, now, attention } = answer as z.output<typeof overviewView>
  const oldest = webhooks.oldest === null ? '' : `, the oldest for ${since(webhooks.oldest)}`
  return [
    `Mailroom ${version}, ${ready ? 'ready' : 'NOT READY'}, up ${since(started)}`,
    `accounts   ${accounts.total}: ${counts(accounts.states)}; ${counts(accounts.statuses)}`,
    `webhooks   ${webhooks.total}: ${counts(webhooks.states)}; ${webhooks.pending} callbacks wait${oldest}`,
    `now        ${now.events_per_second.toFixed(1)} events/s, ${now.deliveries_per_second.toFixed(1)} deliveries/s, ${now.latency_ms.toFixed(0)} ms after the event, ${now.memory_mib.toFixed(0)} MiB, event loop ${now.loop_delay_ms.toFixed(0)} ms`,
    ...(hosts.length === 0 ? [] : ['', 'hosts with unhealthy accounts']),
    ...hosts.map(({ host, accounts: total, states }) => `  ${host}  ${total}: ${counts(states)}`),
    ...(attention.length === 0 ? [] : ['', 'action required']),
    ...attention.map(({ kind, id, what, since: at }) => `  ${kind} ${id}  ${what} (${since(at)})`),
  ]
}

export type AccountList = z.output<typeof accountList>

export function showAccounts(answer: unknown): readonly string[] {
  const { accounts, total } = answer as AccountList
  const lines = table(accounts, {
    ID: (row) => row.id,
    STATUS: (row) => row.condition,
    FOR: (row) => since(row.since),
    STATE: (row) => row.state,
    FAILURE: (row) => row.failure ?? '',
    SERVER: (row) => row.server,
    EMAIL: (row) => row.email,
    NEXT: (row) => next(row.next),
  })
  return [...lines, ...(total > accounts.length ? [`… ${total} in all`] : [])]
}

export const showAccount = (answer: unknown): readonly string[] => showAccounts({ total: 1, accounts: [answer] })

export function showDeliveries(answer: unknown): readonly string[] {
  return table((answer as z.output<typeof logView>).deliveries, {
    ID: (row) => row.delivery_id,
    STATE: (row) => row.state,
    CREATED: (row) => day(row.created),
    EVENT: (row) => row.event ?? row.kind,
    MAILBOX: (row) => row.mailbox ?? '',
    SUBJECT: (row) => row.subject ?? '',
  })
}

export function showExplanation(answer: unknown): readonly string[] {
  const { why, since: at, next: step, would_change, quarantined } = answer as z.output<typeof explanationView>
  const lacking = table(quarantined, {
    'NOT GIVEN': ({ folder, uid }) => `${folder} ${uid}`,
    'NEXT TRY': (row) => day(row.next_try),
    REASON: (row) => row.reason,
  })
  const lines = [why, `Since ${day(at)} (${since(at)}).`, step, ...would_change.map((change) => `- ${change}`)]
  return [...lines, ...(quarantined.length === 0 ? [] : lacking)]
}

const keyState = (revoked: number | null): string => (revoked === null ? 'in force' : `revoked ${day(revoked)}`)

/** One developer, or a list of them. */
export function showDevelopers(answer: unknown): readonly string[] {
  return table([answer].flat() as z.output<typeof developerView>[], {
    ID: (row) => row.id,
    'API KEY': (row) => row.api_key,
    USERS: (row) => String(row.users),
    ACCOUNTS: (row) => String(row.accounts),
    CREATED: (row) => day(row.created),
    STATE: (row) => keyState(row.revoked),
    NAME: (row) => row.name,
  })
}

/** One token, or a list of them. */
export function showTokens(answer: unknown): readonly string[] {
  return table([answer].flat() as z.output<typeof tokenView>[], {
    ID: (row) => row.id,
    SCOPES: (row) => row.scopes.join(','),
    CREATED: (row) => day(row.created),
    STATE: (row) => keyState(row.revoked),
    NAME: (row) => row.name,
  })
}

export function showRetention(answer: unknown): readonly string[] {
  return table((answer as z.output<typeof retentionView>).kept, {
    WHAT: (row) => row.what,
    'KEPT FOR': (row) => age(row.seconds),
    'SET BY': (row) => (row.set ? 'an operator' : row.setting),
  })
}

type News = { readonly at: number } & ({ readonly event: string; readonly state: string } | Omit<LineRow, 'at'>)

/** An event of an account: a step of its actor, or a line of a connection with the connection's number. */
export function showEvent(data: string): readonly string[] {
  const news = JSON.parse(data) as News
  const text = 'line' in news ? `#${news.connection} ${news.line}` : `${news.event} → ${news.state}`
  return [printable(`${new Date(news.at * 1000).toISOString().slice(11, 23)} ${text}`)]
}

/** Shows a new record with its secret, `name`, at the end. */
export function showSecret(name: string): (answer: unknown) => readonly string[] {
  return (answer) => {
    const { [name]: secret, ...rest } = answer as Record<string, unknown>
    return [...showAny(rest), `${name}: ${String(secret)}`, `Keep the ${name}: it is shown this once.`]
  }
}

/** Larger numbers are Unix timestamps, later than 2001, and no counts. */
const firstTime = 1_000_000_000

function cellOf(value: unknown): string {
  if (typeof value === 'number' && value > firstTime) return day(value)
  if (typeof value === 'object' && value !== null && 'what' in value && 'at' in value)
    return next(value as Parameters<typeof next>[0])
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([name, inner]) => `${name} ${cellOf(inner)}`)
      .join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value ?? '').replace('""', '')
}

/** Any answer of the admin API: a list as a table, a record as a line for each field. */
export function showAny(answer: unknown): readonly string[] {
  const whole = answer as object
  const isList = 'total' in whole || 'found' in whole
  const list = Array.isArray(whole) ? whole : isList ? Object.values(whole).find(Array.isArray) : null
  if (!list) return Object.entries(whole).map(([name, value]) => `${name}: ${cellOf(value)}`)
  const rows = list as readonly Readonly<Record<string, unknown>>[]
  if (rows.length === 0) return ['none']
  const names = Object.keys(rows[0] ?? {})
  return table(rows, Object.fromEntries(names.map((name) => [name.toUpperCase(), (row) => cellOf(row[name])])))
}
