/** What the command line takes: its commands, their words and options. */
import { parseArgs } from 'node:util'

/** Exit status 2. */
export class UsageError extends Error {}

interface Command {
  /** Words after the command, as they are shown. */
  readonly words: string
  readonly fewest: number
  readonly most: number
  readonly does: string
  /** Of its own, besides those that all have. */
  readonly options: readonly OptionName[]
}

const optionWords = {
  state: 'STATE: only accounts in this state (watching, waiting, disabled, …)',
  host: 'HOST: only accounts at this mail server',
  q: 'TEXT: only accounts with it in their address, username or label',
  limit: 'N: lines at most, 50 otherwise',
  name: 'NAME of the developer or of the token',
  scopes: 'read,act,keys: what the token may do',
  every: 'SECONDS between two looks, 2 otherwise',
} as const

type OptionName = keyof typeof optionWords | 'once' | 'local'

const flagWords = {
  once: 'looks once, and ends',
  local: 'writes into the store of MAILROOM_DATA_DIR instead of asking the service: for the first token',
} as const

const account = { words: '<account>', fewest: 1, most: 1 } as const
const none = { words: '', fewest: 0, most: 0 } as const

export const commands = {
  top: { ...none, does: 'how the installation is, again and again', options: ['every', 'once'] },
  accounts: { ...none, does: 'accounts, with state and failure', options: ['state', 'host', 'q', 'limit'] },
  tail: { ...account, does: 'steps of one account (id or address) as they happen', options: [] },
  explain: { ...account, does: 'why an account is as it is, and what would change it', options: [] },
  keys: {
    words: '[list | create | rotate <id> | revoke <id> | restore <id>]',
    fewest: 0,
    most: 2,
    does: 'developers and their API keys',
    options: ['name'],
  },
  tokens: {
    words: '[list | create | revoke <id>]',
    fewest: 0,
    most: 2,
    does: 'tokens of the admin API',
    options: ['name', 'scopes', 'local'],
  },
  backup: { ...none, does: 'makes a backup of the embedded store while the service runs', options: [] },
  reseal: { ...none, does: 'seals with MAILROOM_SECRET what the keys of MAILROOM_SECRET_OLD sealed', options: [] },
  restore: {
    words: '<file>',
    fewest: 1,
    most: 1,
    does: 'puts a backup in the place of the store; stop the service first',
    options: [],
  },
} as const satisfies Readonly<Record<string, Command>>

export type CommandName = keyof typeof commands

export function isCommand(word: string): word is CommandName {
  return Object.hasOwn(commands, word)
}

const text = { type: 'string' } as const
const flag = { type: 'boolean', default: false } as const
const options = {
  ...{ url: text, token: text, state: text, host: text, q: text, limit: text, name: text, scopes: text, every: text },
  ...{ json: flag, help: flag, once: flag, local: flag },
} as const

export type Values = ReturnType<typeof parse>['values']

function parse(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

const common = new Set(['url', 'token', 'json', 'help'])

/** Throws UsageError, which names the option. */
export function readWords(command: CommandName, words: readonly string[]) {
  const { values, positionals } = parse(words)
  const { fewest, most, options: own }: Command = commands[command]
  const isDefault = (value: unknown): boolean => value === undefined || value === false
  const strange = Object.entries(values).find(
    ([name, value]) => !isDefault(value) && !common.has(name) && !own.some((known) => known === name),
  )
  if (strange !== undefined) throw new UsageError(`--${strange[0]}: ${command} does not take it`)
  if (!values.help && (positionals.length < fewest || positionals.length > most))
    throw new UsageError(`${command}: expected ${commands[command].words || 'no words'}`)
  return { values, positionals }
}

export function usageOf(command: CommandName): string {
  const { words, does, options: own }: Command = commands[command]
  const lines = own.map((name) => {
    if (name === 'once' || name === 'local') return `  --${name}  ${flagWords[name]}`
    return `  --${name} ${optionWords[name]}`
  })
  return [`usage: mailroom ${command} ${words}`.trimEnd(), `  ${does}`, ...lines, ...commonLines].join('\n')
}

const commonLines = [
  '  --json  the answer as JSON',
  '  --url URL of the service; MAILROOM_URL otherwise, or http://127.0.0.1:3000',
  '  --token TOKEN of the admin API; MAILROOM_ADMIN_TOKEN otherwise',
]

const shownWidth = 34

/** What does not fit beside its words stands below them. */
function line(words: string, does: string): string {
  return words.length > shownWidth
    ? `  ${words}\n${' '.repeat(shownWidth + 3)}${does}`
    : `  ${words.padEnd(shownWidth)} ${does}`
}

export function usage(): string {
  return [
    'usage: mailroom [command] [options]; without a command the service starts',
    ...Object.entries(commands).map(([name, { words, does }]) => line(`${name} ${words}`.trim(), does)),
    line('store copy --from … --to …', 'copies a store to another one'),
    'mailroom <command> --help says more. Exit status: 0 done, 1 failed, 2 wrong usage.',
  ].join('\n')
}
