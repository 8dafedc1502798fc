/**
 * `mailroom <command>`: what an operator does from a shell. Most commands ask the admin API of a service that runs;
 * `restore` and `tokens create --local` work on its data directory.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AppError,
  createLocalToken,
  operatorScopes,
  type OperatorScope,
  readConfig,
  restoreStore,
} from '../../engine/index.ts'
import { type Client, createClient } from './client.ts'
import {
  type AccountList,
  showAccounts,
  showDevelopers,
  showEvent,
  showExplanation,
  showTokens,
  showTop,
} from './show.ts'
import { type CommandName, isCommand, readWords, usage, UsageError, usageOf, type Values } from './usage.ts'

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  out(line: string): void
  error(line: string): void
  /** Ends what goes on until it is told to end. */
  readonly signal: AbortSignal
  /** Whether the screen may be cleared. */
  readonly isScreen: boolean
}

/** Answers the exit status: 0 done, 1 failed, 2 wrong usage. */
export async function runCli(words: readonly string[], terminal: Terminal): Promise<number> {
  const [command = '--help', ...rest] = words
  try {
    if (!isCommand(command)) {
      if (command !== '--help' && command !== 'help') throw new UsageError(`${command}: unknown command`)
      terminal.out(usage())
      return 0
    }
    const { values, positionals } = readWords(command, rest)
    if (values.help) terminal.out(usageOf(command))
    else await run({ command, values, words: positionals, terminal })
    return 0
  } catch (error) {
    if (terminal.signal.aborted) return 0
    if (error instanceof UsageError) {
      terminal.error(`mailroom: ${error.message}\n${isCommand(command) ? usageOf(command) : usage()}`)
      return 2
    }
    if (!(error instanceof AppError)) throw error
    terminal.error(`mailroom: ${error.message}`)
    return 1
  }
}

interface Given {
  readonly command: CommandName
  readonly values: Values
  readonly words: readonly string[]
  readonly terminal: Terminal
}

async function run(given: Given): Promise<void> {
  switch (given.command) {
    case 'top':
      return top(given)
    case 'accounts':
      return accounts(given)
    case 'tail':
      return tail(given)
    case 'explain':
      return explain(given)
    case 'keys':
      return keys(given)
    case 'tokens':
      return tokens(given)
    case 'backup':
      return backup(given)
    case 'reseal':
      return resealAll(given)
    case 'restore':
      restore(given)
  }
}

async function explain(given: Given): Promise<void> {
  const client = clientOf(given)
  const id = await accountId(client, given.words[0] ?? '')
  say(given, await client.call('GET', `/admin/accounts/${id}/explain`), showExplanation)
}

async function backup(given: Given): Promise<void> {
  say(given, await clientOf(given).call('POST', '/admin/backup'), (answer) => {
    const { name, bytes, seconds } = answer as { name: string; bytes: number; seconds: number }
    return [`${name}: ${bytes} bytes in ${seconds.toFixed(1)} s, in MAILROOM_DATA_DIR/backups of the service`]
  })
}

/** Until nothing is left; told to stop, or killed, it goes on at the next time. */
async function resealAll(given: Given): Promise<void> {
  const client = clientOf(given)
  for (;;) {
    const answer = (await client.call('POST', '/admin/reseal')) as {
      readonly resealed: number
      readonly done: boolean
      readonly keys: Readonly<Record<string, number>>
    }
    const counts = Object.entries(answer.keys).map(([key, count]) => `${key}: ${count}`)
    const words = answer.done ? 'Former keys seal nothing any more: MAILROOM_SECRET_OLD may go.' : 'Not done yet.'
    say(given, answer, () => [`${answer.resealed} sealed anew (values by key: ${counts.join(', ')}). ${words}`])
    if (answer.done) return
    if (answer.resealed === 0) throw new AppError('conflict', 'values were changed meanwhile: try again')
  }
}

function restore(given: Given): void {
  const { kept } = restoreStore(readConfig(given.terminal.env), given.words[0] ?? '')
  const words = kept === null ? 'restored' : `restored; the store that was there is ${kept}`
  say(given, { kept }, () => [words])
}

/** The answer itself with --json, else in lines for people. */
function say(
  { values, terminal }: Pick<Given, 'values' | 'terminal'>,
  answer: unknown,
  show: (answer: unknown) => readonly string[],
): void {
  if (values.json) terminal.out(JSON.stringify(answer, null, 2))
  else for (const line of show(answer)) terminal.out(line)
}

function clientOf({ values, terminal: { env } }: Given): Client {
  const url = values.url ?? env['MAILROOM_URL'] ?? 'http://127.0.0.1:3000'
  const token = values.token ?? env['MAILROOM_ADMIN_TOKEN'] ?? ''
  if (!URL.canParse(url)) throw new UsageError(`--url: ${url} is no URL`)
  if (token === '')
    throw new UsageError(
      '--token or MAILROOM_ADMIN_TOKEN is missing; the first one is made by: mailroom tokens create --name me --scopes read,act,keys --local',
    )
  return createClient(url, token)
}

/** An id, or a whole address that one account alone has. */
async function accountId(client: Client, given: string): Promise<string> {
  if (!given.includes('@')) return encodeURIComponent(given)
  const answer = (await client.call('GET', `/admin/accounts?q=${encodeURIComponent(given)}`)) as AccountList
  const own = answer.accounts.filter(({ email }) => email.toLowerCase() === given.toLowerCase())
  const [first] = own
  if (first === undefined) throw new AppError('not_found', `${given}: no such account`)
  if (own.length > 1)
    throw new UsageError(`${given}: several accounts (${own.map(({ id }) => id).join(', ')}); name one by its id`)
  return first.id
}

async function top(given: Given): Promise<void> {
  const { values, terminal } = given
  const every = numberOf('every', values.every ?? '2')
  const client = clientOf(given)
  for (;;) {
    const overview = await client.call('GET', '/admin/overview')
    if (terminal.isScreen && !values.once && !values.json) terminal.out('\u001B[2J\u001B[H')
    say(given, overview, showTop)
    if (values.once || values.json) return
    await sleep(every * 1000, undefined, { signal: terminal.signal })
  }
}

function numberOf(option: string, text: string): number {
  const value = Number(text)
  if (!(value > 0) || value > 86_400) throw new UsageError(`--${option}: expected a number above 0, got ${text}`)
  return value
}

async function accounts(given: Given): Promise<void> {
  const { state, host, q, limit = '50' } = given.values
  numberOf('limit', limit)
  const query = new URLSearchParams({ limit })
  for (const [name, value] of Object.entries({ state, host, q })) if (value !== undefined) query.set(name, value)
  say(given, await clientOf(given).call('GET', `/admin/accounts?${query.toString()}`), showAccounts)
}

async function tail(given: Given): Promise<void> {
  const { values, words, terminal } = given
  const client = clientOf(given)
  const id = await accountId(client, words[0] ?? '')
  for await (const data of client.events(`/admin/accounts/${id}/events`, terminal.signal))
    for (const line of values.json ? [data] : showEvent(data)) terminal.out(line)
}

async function keys(given: Given): Promise<void> {
  const [verb = 'list', id] = given.words
  const at = '/admin/developers'
  if (id === undefined && verb === 'list') say(given, await clientOf(given).call('GET', at), showDevelopers)
  else if (id === undefined && verb === 'create') {
    const name = needed(given, 'name')
    say(given, await clientOf(given).call('POST', at, { name }), showSecret('api_secret'))
  } else if (id !== undefined && (verb === 'rotate' || verb === 'revoke' || verb === 'restore')) {
    const answer = await clientOf(given).call('POST', `${at}/${encodeURIComponent(id)}/${verb}`)
    say(given, answer, verb === 'rotate' ? showSecret('api_secret') : (one) => showDevelopers([one]))
  } else throw new UsageError('keys: expected list, create, rotate <id>, revoke <id> or restore <id>')
}

async function tokens(given: Given): Promise<void> {
  const [verb = 'list', id] = given.words
  const at = '/admin/tokens'
  if (given.values.local && verb !== 'create') throw new UsageError('--local: only with tokens create')
  if (id === undefined && verb === 'list') say(given, await clientOf(given).call('GET', at), showTokens)
  else if (id === undefined && verb === 'create') say(given, await newToken(given, at), showSecret('token'))
  else if (id !== undefined && verb === 'revoke') {
    const revoked = await clientOf(given).call('DELETE', `${at}/${encodeURIComponent(id)}`)
    say(given, revoked, (one) => showTokens([one]))
  } else throw new UsageError('tokens: expected list, create or revoke <id>')
}

async function newToken(given: Given, at: string): Promise<unknown> {
  const { values, terminal } = given
  const [name, scopes] = [needed(given, 'name'), scopesOf(values.scopes ?? 'read')]
  if (!values.local) return clientOf(given).call('POST', at, { name, scopes: scopes.join(',') })
  const { record, token } = await createLocalToken(readConfig(terminal.env), name, scopes)
  return { id: record.id, name, scopes, token }
}

function needed({ values }: Given, name: 'name'): string {
  const value = values[name]?.trim() ?? ''
  if (value === '') throw new UsageError(`--${name}: is required`)
  return value
}

function scopesOf(text: string): readonly OperatorScope[] {
  return text.split(',').map((word) => {
    const scope = operatorScopes.find((known) => known === word.trim())
    if (scope === undefined)
      throw new UsageError(`--scopes: expected some of ${operatorScopes.join(', ')}, got ${word}`)
    return scope
  })
}

/** What was made, its secret last: it is shown this once. */
function showSecret(name: string): (answer: unknown) => readonly string[] {
  return (answer) => {
    const { [name]: secret, ...rest } = answer as Record<string, unknown>
    const lines = Object.entries(rest).map(
      ([key, value]) => `${key}: ${Array.isArray(value) ? value.join(',') : String(value)}`,
    )
    return [...lines, `${name}: ${String(secret)}`, `Keep the ${name}: it is shown this once.`]
  }
}
