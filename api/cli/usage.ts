/** Options and words of the command line: their parsing, the usage texts, and the completion scripts of shells. */
import { parseArgs } from 'node:util'

/** A wrong command line: exit status 2. */
export class UsageError extends Error {}

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>
  out(line: string): void
  error(line: string): void
  /** Ends commands that run until they are stopped. */
  readonly signal: AbortSignal
  /** Whether `out` writes to a screen, which may be cleared. */
  readonly isScreen: boolean
}

const text = { type: 'string' } as const
const flag = { type: 'boolean', default: false } as const

const options = {
  condition: { ...text, words: 'STATUS: only up, down, disabled or paused accounts' },
  state: { ...text, words: 'STATE: only what is in this state (watching, waiting, disabled, pending, …)' },
  host: { ...text, words: 'HOST: only accounts at this mail server' },
  status: { ...text, words: 'OK or DISABLED: only accounts of this API status' },
  failure: { ...text, words: 'CLASS: only accounts whose last failure has this class (auth_rejected, network, …)' },
  developer: { ...text, words: 'ID: only what belongs to this developer' },
  user: { ...text, words: 'ID: only accounts of this user' },
  'older-than': { ...text, words: 'SECONDS: only accounts whose status is at least so old' },
  q: { ...text, words: 'TEXT: only what has it in its address, URL, name or subject, or as id or label' },
  limit: { ...text, words: 'N: entries at most, 50 otherwise' },
  offset: { ...text, words: 'N: leaves out the first N entries' },
  failing: { ...text, words: '1 = only webhooks whose receiver fails, 0 = only others' },
  name: { ...text, words: 'NAME of the developer or of the token' },
  scopes: { ...text, words: 'read,act,keys: what the token may do' },
  every: { ...text, words: 'SECONDS between two refreshes, 2 otherwise' },
  once: { ...flag, words: 'shows one overview, and ends' },
  local: {
    ...flag,
    words: 'writes into the store of MAILROOM_DATA_DIR instead of asking the service: for the first token',
  },
  json: { ...flag, words: 'the answer as JSON' },
  url: { ...text, words: 'URL of the service; MAILROOM_URL otherwise, or http://127.0.0.1:3000' },
  token: { ...text, words: 'TOKEN of the admin API; MAILROOM_ADMIN_TOKEN otherwise' },
  help: { ...flag, words: 'shows this' },
} as const

export type OptionName = keyof typeof options
export const isOption = (name: string): name is OptionName => name in options
/** Options of all commands. */
const common: readonly string[] = ['json', 'url', 'token', 'help'] satisfies OptionName[]

export interface Given {
  readonly values: Values
  readonly words: readonly string[]
  readonly terminal: Terminal
}

export interface Command {
  /** The words after the command, as the usage shows them: '<id>', or '[list | revoke <id>]' where none is needed. */
  readonly words?: string
  readonly does: string
  readonly options?: readonly OptionName[]
  run(given: Given): Promise<void>
}

type Values = ReturnType<typeof parse>['values']

function parse(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Whether the usage has these words: one of its choices, where a <placeholder> stands for any word. */
function fits(usage: string, given: readonly string[]): boolean {
  if (given.length === 0 && usage.startsWith('[')) return true
  const choices = usage.split('|').map((choice) => choice.match(/<[^<>]+>|[\w-]+/g) ?? [])
  const is = (part: string | undefined, word: string) => (part?.startsWith('<') ? word !== '' : part === word)
  return choices.some((parts) => parts.length === given.length && given.every((word, at) => is(parts[at], word)))
}

/** Throws UsageError, which names the option. */
export function readWords(name: string, command: Command, given: readonly string[]) {
  const { values, positionals } = parse(given)
  const { words = '', options: own = [] } = command
  const known = [...common, ...own]
  const strange = Object.entries(values).find(([option, value]) => value !== false && !known.includes(option))
  if (strange !== undefined) throw new UsageError(`--${strange[0]}: ${name} does not take it`)
  if (!values.help && !fits(words, positionals)) throw new UsageError(`${name}: expected ${words || 'no words'}`)
  return { values, words: positionals }
}

export function usageOf(name: string, { words = '', does, options: own = [] }: Command): string {
  const names: readonly OptionName[] = [...own, 'json', 'url', 'token']
  const lines = names.map((option) => {
    const { type, words } = options[option]
    return `  --${option} ${type === 'boolean' ? ' ' : ''}${words}`
  })
  return [`usage: mailroom ${name} ${words}`.trimEnd(), `  ${does}`, ...lines].join('\n')
}

const shownWidth = 34

/** A line of the usage: the words of a command and, beside or below them, what it does. */
function line(words: string, does: string): string {
  return words.length > shownWidth
    ? `  ${words}\n${' '.repeat(shownWidth + 3)}${does}`
    : `  ${words.padEnd(shownWidth)} ${does}`
}

export function usage(commands: Readonly<Record<string, Command>>): string {
  return [
    'usage: mailroom [command] [options]; without a command the service starts',
    ...Object.entries(commands).map(([name, { words = '', does }]) => line(`${name} ${words}`.trim(), does)),
    line('store copy --from … --to …', 'copies a store to another one'),
    'mailroom <command> --help says more. Exit status: 0 done, 1 failed, 2 wrong usage.',
  ].join('\n')
}

/** A script that completes commands, their verbs and their options. `shell`: bash, zsh or fish. */
export function completion(commands: Readonly<Record<string, Command>>, shell: string): string {
  if (shell === 'fish') return fishCompletion(commands)
  const cases = Object.entries(commands).map(([name, { words, options: own = [] }]) => {
    return `    ${name}) words="${[...verbsOf(words), ...[...own, ...common].map((option) => `--${option}`)].join(' ')}" ;;`
  })
  return [
    // zsh has the completion of bash in a function of its own.
    ...(shell === 'zsh' ? ['autoload -U +X compinit && compinit', 'autoload -U +X bashcompinit && bashcompinit'] : []),
    '_mailroom() {',
    `  local words="${Object.keys(commands).join(' ')}"`,
    '  [ "$COMP_CWORD" -gt 1 ] && case "${COMP_WORDS[1]}" in',
    ...cases,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -F _mailroom mailroom',
  ].join('\n')
}

/** The verbs in '[list | create | revoke <id>]': list, create, revoke. */
function verbsOf(words = ''): readonly string[] {
  return [...words.matchAll(/[[|] ?([a-z-]+)/g)].map(([, verb = '']) => verb)
}

function fishCompletion(commands: Readonly<Record<string, Command>>): string {
  const quoted = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`
  const rows = Object.entries(commands).flatMap(([name, { does, words, options: own = [] }]) => [
    `complete -c mailroom -f -n __fish_use_subcommand -a ${name} -d ${quoted(does)}`,
    ...verbsOf(words).map((verb) => `complete -c mailroom -f -n '__fish_seen_subcommand_from ${name}' -a ${verb}`),
    ...[...own, ...common].map(
      (option) => `complete -c mailroom -f -n '__fish_seen_subcommand_from ${name}' -l ${option}`,
    ),
  ])
  return rows.join('\n')
}
