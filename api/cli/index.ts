/** `mailroom <command>`. Most ask the admin API; `restore` and `tokens create --local` work on the data directory. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { z } from 'zod'
import {
  AppError,
  createLocalToken,
  operatorScopes,
  type OperatorScope,
  own,
  readConfig,
  restoreStore,
} from '../../engine/index.ts'
import type { backupView, resealView } from '../admin/store.ts'
import { serviceVersion } from '../openapi.ts'
import { accountOptions, actingCommands, valuesOf } from './acting.ts'
import { accountId, clientOf, pagesOf, say } from './client.ts'
import {
  type AccountList,
  showAccounts,
  showDevelopers,
  showEvent,
  showRetention,
  showSecret,
  showTokens,
  showTop,
} from './show.ts'
import { type Command, completion, type Given, readWords, type Terminal, usage, UsageError, usageOf } from './usage.ts'

/** Runs a command. Returns the exit status: 0 done, 1 failed, 2 wrong usage. */
export async function runCli(words: readonly string[], terminal: Terminal): Promise<number> {
  const [name = '--help', ...rest] = words
  const command = own(commands, name)
  const help = (): string => (command === undefined ? usage(commands) : usageOf(name, command))
  try {
    if (command !== undefined) {
      const { values, words: positionals } = readWords(name, command, rest)
      if (values.help) terminal.out(help())
      else await command.run({ values, words: positionals, terminal })
    } else if (name === '--version') terminal.out(serviceVersion)
    else if (name === '--help' || name === 'help') terminal.out(help())
    else throw new UsageError(`${name}: unknown command`)
    return 0
  } catch (error) {
    if (terminal.signal.aborted) return 0
    if (error instanceof UsageError) {
      terminal.error(`mailroom: ${error.message}\n${help()}`)
      return 2
    }
    if (!(error instanceof AppError)) throw error
    terminal.error(`mailroom: ${error.message}`)
    return 1
  }
}

const commands: Readonly<Record<string, Command>> = {
  top: { does: 'overview of the installation, refreshed', options: ['every', 'once'], run: top },
  accounts: { does: 'email accounts with status, state and failure', options: accountOptions, run: accounts },
  tail: { words: '<account>', does: 'state changes of one account (id or address) as they happen', run: tail },
  ...actingCommands,
  keys: {
    words: '[list | create | rotate <id> | end-overlap <id> | revoke <id> | restore <id>]',
    does: 'developers and their API keys',
    options: ['name'],
    run: keys,
  },
  tokens: {
    words: '[list | create | revoke <id>]',
    does: 'tokens of the admin API',
    options: ['name', 'scopes', 'local'],
    run: tokens,
  },
  backup: { does: 'makes a backup of the embedded store while the service runs', run: backup },
  retention: {
    words: '[set <what> <seconds> | reset <what>]',
    does: 'how long changes, deliveries and calls are kept; what is older goes for good',
    run: retention,
  },
  reseal: { does: 'seals with MAILROOM_SECRET what the keys of MAILROOM_SECRET_OLD sealed', run: resealAll },
  restore: { words: '<file>', does: 'puts a backup in the place of the store; stop the service first', run: restore },
  completion: {
    words: '[bash | zsh | fish]',
    does: 'completion of commands and options: source <(mailroom completion bash)',
    run({ words: [shell = 'bash'], terminal }) {
      terminal.out(completion(commands, shell))
      return Promise.resolve()
    },
  },
}

async function retention(given: Given): Promise<void> {
  const [verb, what = '', seconds = ''] = given.words
  const client = clientOf(given)
  const at = '/admin/retention'
  const answer =
    verb === undefined ? client.call('GET', at) : client.call('PUT', `${at}/${encodeURIComponent(what)}`, { seconds })
  say(given, await answer, showRetention)
}

type BackupAnswer = z.output<typeof backupView>

async function backup(given: Given): Promise<void> {
  const client = clientOf(given)
  let answer = (await client.call('POST', '/admin/backup')) as BackupAnswer
  while (answer.bytes === null) {
    if (answer.error !== null) throw new AppError('backup_failed', answer.error)
    await sleep(500, undefined, { signal: given.terminal.signal })
    answer = (await client.call('GET', '/admin/backup')) as BackupAnswer
  }
  say(given, answer, () => {
    const { name, bytes, seconds } = answer
    return [`${name}: ${bytes} bytes in ${seconds.toFixed(1)} s, in MAILROOM_DATA_DIR/backups of the service`]
  })
}

/** Repeats the call until nothing is left. After a stop, the next run goes on with the rest. */
async function resealAll(given: Given): Promise<void> {
  const client = clientOf(given)
  for (;;) {
    const answer = (await client.call('POST', '/admin/reseal')) as z.output<typeof resealView>
    const counts = Object.entries(answer.keys).map(([key, count]) => `${key}: ${count}`)
    const words = answer.done
      ? 'Former keys seal nothing any more: MAILROOM_SECRET_OLD may go.'
      : `Not done yet: ${answer.left} left.`
    say(given, answer, () => [`${answer.resealed} sealed anew (values by key: ${counts.join(', ')}). ${words}`])
    if (answer.done) return
    if (answer.resealed === 0) throw new AppError('conflict', 'values were changed meanwhile: try again')
  }
}

function restore(given: Given): Promise<void> {
  const restored = restoreStore(readConfig(given.terminal.env), given.words[0] ?? '')
  const { kept, revoked, consents, reconnect } = restored
  const unknown = 'Keys and tokens that were revoked after the backup was made are in force again: revoke them anew.'
  const words = kept === null ? 'restored' : `restored; the store that was there is ${kept}`
  say(given, restored, () => [
    words,
    ...(revoked?.map((one) => `stays revoked: ${one}`) ?? [unknown]),
    ...(consents === 0 ? [] : [`email accounts that keep their newer OAuth token: ${consents}`]),
    ...(reconnect.length === 0
      ? []
      : ['The OAuth token of these accounts may have been replaced. Send each user the link (24 hours):']),
    ...reconnect.map(({ email, account, url }) => `${email ?? ''} (${account ?? ''}) ${url}`),
  ])
  return Promise.resolve()
}

async function allOf(given: Given, path: string): Promise<unknown[]> {
  return (await Array.fromAsync(pagesOf<readonly unknown[]>(clientOf(given), path))).flat()
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

function wholeOf(option: string, text: string, least: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1
  if (value < least) throw new UsageError(`--${option}: expected a whole number from ${least}, got ${text}`)
  return value
}

async function accounts(given: Given): Promise<void> {
  const { limit = '50', offset = '0' } = given.values
  const [most, from] = [wholeOf('limit', limit, 1), wholeOf('offset', offset, 0)]
  const filters = valuesOf(given, accountOptions)
  const pages = await Array.fromAsync(pagesOf<AccountList>(clientOf(given), '/admin/accounts', filters, most, from))
  say(given, { ...pages.at(-1), accounts: pages.flatMap((page) => page.accounts) }, showAccounts)
}

async function tail(given: Given): Promise<void> {
  const { values, words, terminal } = given
  const client = clientOf(given)
  const id = await accountId(client, words[0] ?? '')
  for await (const data of client.events(`/admin/accounts/${id}/events`))
    for (const line of values.json ? [data] : showEvent(data)) terminal.out(line)
}

async function keys(given: Given): Promise<void> {
  const [verb = 'list', id = ''] = given.words
  const at = '/admin/developers'
  const body = verb === 'create' ? { name: nameIn(given) } : undefined
  const path = verb === 'create' ? at : `${at}/${encodeURIComponent(id)}/${verb}`
  const answer = verb === 'list' ? await allOf(given, at) : await clientOf(given).call('POST', path, body)
  say(given, answer, ['create', 'rotate'].includes(verb) ? showSecret('api_secret') : showDevelopers)
}

async function tokens(given: Given): Promise<void> {
  const [verb = 'list', id = ''] = given.words
  const at = '/admin/tokens'
  if (given.values.local && verb !== 'create') throw new UsageError('--local: only with tokens create')
  if (verb === 'list') say(given, await allOf(given, at), showTokens)
  else if (verb === 'create') say(given, await newToken(given, at), showSecret('token'))
  else say(given, await clientOf(given).call('DELETE', `${at}/${encodeURIComponent(id)}`), showTokens)
}

async function newToken(given: Given, at: string): Promise<unknown> {
  const { values, terminal } = given
  const [name, scopes] = [nameIn(given), scopesOf(values.scopes ?? 'read')]
  if (!values.local) return clientOf(given).call('POST', at, { name, scopes: scopes.join(',') })
  const { record, token } = await createLocalToken(readConfig(terminal.env), name, scopes)
  return { id: record.id, name, scopes, token }
}

function nameIn({ values }: Given): string {
  const name = values.name?.trim() ?? ''
  if (name === '') throw new UsageError('--name: is required')
  return name
}

function scopesOf(text: string): readonly OperatorScope[] {
  return text.split(',').map((word) => {
    const scope = operatorScopes.find((known) => known === word.trim())
    if (scope === undefined)
      throw new UsageError(`--scopes: expected some of ${operatorScopes.join(', ')}, got ${word}`)
    return scope
  })
}
