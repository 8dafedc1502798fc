/** Answers of the admin API as lines for people. */
import type { z } from 'zod'
import type { accountList, developerView, explanationView, overviewView, tokenView } from '../admin/views.ts'

type Shown<T extends z.ZodType> = z.output<T>

const columnGap = 2

/** In columns as wide as their widest cell; the last one is not padded. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd((widths[column] ?? 0) + columnGap))
      .join('')
      .trimEnd(),
  )
}

/** 41s, 12m, 3h, 5d. */
function age(seconds: number): string {
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
  ] as const)
    if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`
  return `${Math.max(0, Math.round(seconds))}s`
}

const since = (at: number): string => age(Date.now() / 1000 - at)
const day = (at: number): string => new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' ')

function next(step: { readonly what: string; readonly at: number } | null): string {
  return step === null ? '' : `${step.what} in ${age(step.at - Date.now() / 1000)}`
}

function counts(by: Readonly<Record<string, number>>): string {
  const some = Object.entries(by).filter(([, count]) => count > 0)
  return some.length === 0 ? 'none' : some.map(([name, count]) => `${count} ${name}`).join(', ')
}

export function showTop(answer: unknown): readonly string[] {
  const { version, started, ready, accounts, hosts, webhooks, now, attention } = answer as Shown<typeof overviewView>
  const oldest = webhooks.oldest === null ? '' : `, the oldest for ${since(webhooks.oldest)}`
  return [
    `Mailroom ${version}, ${ready ? 'ready' : 'NOT READY'}, up ${since(started)}`,
    `accounts   ${accounts.total}: ${counts(accounts.states)}; ${counts(accounts.statuses)}`,
    `webhooks   ${webhooks.total}: ${counts(webhooks.states)}; ${webhooks.pending} callbacks wait${oldest}`,
    `now        ${now.events_per_second.toFixed(1)} events/s, ${now.deliveries_per_second.toFixed(1)} deliveries/s in ${now.delivery_ms.toFixed(0)} ms, ${now.memory_mib.toFixed(0)} MiB, event loop ${now.loop_delay_ms.toFixed(0)} ms`,
    ...(hosts.length === 0 ? [] : ['', 'hosts that are not well']),
    ...hosts.map(({ host, accounts: total, states }) => `  ${host}  ${total}: ${counts(states)}`),
    ...(attention.length === 0 ? [] : ['', 'needs a person']),
    ...attention.map(({ kind, id, what, since: at }) => `  ${kind} ${id}  ${what} (${since(at)})`),
  ]
}

export type AccountList = Shown<typeof accountList>

export function showAccounts(answer: unknown): readonly string[] {
  const { accounts, total } = answer as AccountList
  const rows = accounts.map(({ id, state, since: at, status, failure, server, email, next: step }) => [
    ...[id, state, since(at), status, failure ?? '', server, email],
    next(step),
  ])
  const more = total > accounts.length ? [`… ${total} in all`] : []
  return [...table(['ID', 'STATE', 'SINCE', 'STATUS', 'FAILURE', 'SERVER', 'EMAIL', 'NEXT'], rows), ...more]
}

export function showExplanation(answer: unknown): readonly string[] {
  const { why, since: at, next: step, would_change } = answer as Shown<typeof explanationView>
  return [why, `Since ${day(at)} UTC (${since(at)}).`, step, ...would_change.map((change) => `- ${change}`)]
}

export function showDevelopers(answer: unknown): readonly string[] {
  const rows = (answer as Shown<typeof developerView>[]).map(
    ({ id, name, api_key, users, accounts, created, revoked }) => [
      ...[
        id,
        api_key,
        String(users),
        String(accounts),
        day(created),
        revoked === null ? 'in force' : `revoked ${day(revoked)}`,
        name,
      ],
    ],
  )
  return table(['ID', 'API KEY', 'USERS', 'ACCOUNTS', 'CREATED', 'STATE', 'NAME'], rows)
}

export function showTokens(answer: unknown): readonly string[] {
  const rows = (answer as Shown<typeof tokenView>[]).map(({ id, name, scopes, created, revoked }) => [
    ...[id, scopes.join(','), day(created), revoked === null ? 'in force' : `revoked ${day(revoked)}`, name],
  ])
  return table(['ID', 'SCOPES', 'CREATED', 'STATE', 'NAME'], rows)
}

/** A step of an actor, or a line of its connections. */
export function showEvent(data: string): readonly string[] {
  const news = JSON.parse(data) as string | { readonly at: number; readonly event: string; readonly state: string }
  if (typeof news === 'string') return [news]
  return [`${new Date(news.at * 1000).toISOString().slice(11, 23)}  ${news.event}  → ${news.state}`]
}
