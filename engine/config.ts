/**
 * Configuration: environment → zod → one frozen object. A wrong value stops the start with one line (AppError
 * `bad_request`).
 */
import { z } from 'zod'
import { AppError } from './errors.ts'

const duration = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/
const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** '500ms', '30s', '5m', '2h', '3d'; a bare number is seconds. Throws a plain Error for zod to report. */
export function parseDuration(text: string): number {
  const match = duration.exec(text.trim())
  if (!match) throw new Error(`expected a duration such as 30s, 5m, 2h or 3d, got "${text}"`)
  return Math.round(Number(match[1]) * (unitMs[match[2] ?? 's'] ?? 1000))
}

/** setTimeout overflows at 2^31 ms (24.8 days), and fires at once. Ages, which have no timer, may be longer. */
const longestTimer = '24d'
const longestAge = '36500d'

/** Whether the text is #rrggbb, which is safe in a style sheet. */
export const isColor = (text: string): boolean => /^#[0-9a-f]{6}$/i.test(text)

/** `read` throws a plain Error with the problem of the key. */
function textKey<T>(fallback: string, read: (text: string) => T) {
  return z
    .string()
    .default(fallback)
    .transform((text, context) => {
      try {
        return read(text)
      } catch (error) {
        context.addIssue({ code: 'custom', message: (error as Error).message })
        return z.NEVER
      }
    })
}

/** A duration from `minimum` to `maximum`, both as text. The key of a timer keeps the default maximum. */
function durationKey(fallback: string, minimum: string, maximum = longestTimer) {
  return textKey(fallback, durationIn(minimum, maximum))
}

/** Durations separated by commas. */
function durationsKey(fallback: string, minimum: string) {
  return textKey(fallback, (text) => parseDurations(text, minimum, longestTimer))
}

/** Durations separated by commas, each from `minimum` to `maximum`. Throws a plain Error that names the bad one. */
export function parseDurations(text: string, minimum: string, maximum: string): number[] {
  return text.split(',').map(durationIn(minimum, maximum))
}

function durationIn(minimum: string, maximum: string): (text: string) => number {
  const [least, most] = [parseDuration(minimum), parseDuration(maximum)]
  return (text) => {
    const ms = parseDuration(text)
    if (ms >= least && ms <= most) return ms
    throw new Error(`expected a duration from ${minimum} to ${maximum}, got "${text}"`)
  }
}

function integerKey(fallback: number, minimum: number, maximum: number) {
  return textKey(String(fallback), integerIn(minimum, maximum))
}

function integerIn(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN
    if (value >= minimum && value <= maximum) return value
    throw new Error(`expected a whole number from ${minimum} to ${maximum}, got "${text}"`)
  }
}

function choiceKey<const T extends string>(fallback: NoInfer<T>, ...choices: readonly [T, ...T[]]) {
  const error = `expected ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`
  return z.enum(choices, { error }).default(fallback)
}

const flagKey = z
  .enum(['0', '1', 'true', 'false', ''], { error: 'expected 0 or 1' })
  .default('0')
  .transform((text) => text === '1' || text === 'true')

const optionalText = z
  .string()
  .optional()
  .transform((text) => (text === undefined || text.trim() === '' ? null : text.trim()))

/** Attackers guess at these secrets. The error does not repeat the text. */
const shortestSecret = 16
const optionalSecret = optionalText.refine((text) => text === null || text.length >= shortestSecret, {
  error: `expected at least ${shortestSecret} characters`,
})

const optionalUrl = optionalText.refine((text) => text === null || /^https?:\/\/[^/?#]+/.test(text), {
  error: 'expected an http:// or https:// URL',
})

/** Paths are added to it: without a slash at its end. */
const optionalBaseUrl = optionalUrl.transform((url) => url?.replace(/(?<!\/)\/+$/, '') ?? null)

/** docs/configuration.md has their meanings, in the same order. */
const settings = z.object({
  MAILROOM_HOST: z.string().default('127.0.0.1'),
  MAILROOM_PORT: integerKey(3000, 0, 65535),
  MAILROOM_ADMIN_PORT: textKey('', (text) => (text.trim() === '' ? null : integerIn(0, 65_535)(text))),
  MAILROOM_ADMIN_HOST: z.string().default('127.0.0.1'),
  MAILROOM_ROLE: choiceKey('all', 'all', 'api', 'engine'),
  MAILROOM_NODE_HOST: optionalText,
  MAILROOM_NODE_PORT: integerKey(0, 0, 65_535),
  MAILROOM_PUBLIC_URL: optionalBaseUrl,
  MAILROOM_TRUST_PROXY: flagKey,
  MAILROOM_DATA_DIR: z.string().min(1).default('./data'),
  MONGODB_URI: optionalText,
  MAILROOM_MONGO_POOL: integerKey(20, 1, 1000),
  MAILROOM_STORE_TIMEOUT: durationKey('10s', '100ms'),
  MAILROOM_SQLITE_SYNC: choiceKey('full', 'off', 'normal', 'full'),
  MAILROOM_API_KEY: optionalText,
  MAILROOM_API_SECRET: optionalSecret,
  MAILROOM_SECRET: optionalText,
  MAILROOM_SECRET_OLD: optionalText,
  MAILROOM_SECRET_LOST: flagKey,
  MAILROOM_ALLOW_PRIVATE: flagKey,
  MAILROOM_PLAINTEXT: choiceKey('private', 'never', 'private', 'always'),
  MAILROOM_LOG_LEVEL: choiceKey('info', 'fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  MAILROOM_STATUS_HEADER: z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, 'expected letters, digits and hyphens')
    .default('X-Service-Email-Account-Status'),
  MAILROOM_TOKEN_PARAM: z.string().regex(/^\w+$/, 'expected letters, digits and underscores').default('service_token'),
  MAILROOM_WIZARD_NAME: optionalText,
  MAILROOM_WIZARD_COLOR: optionalText.refine((text) => text === null || isColor(text), {
    error: 'expected a colour such as #2457d6',
  }),
  MAILROOM_WIZARD_LOGO: optionalText,
  MAILROOM_WIZARD_PASSWORDS: flagKey,
  MAILROOM_ADMIN_PASSWORD: optionalSecret,
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalBaseUrl,
  MAILROOM_METRICS_TOKEN: optionalSecret,

  MAILROOM_BUFFER_MAX: integerKey(536_870_912, 33_554_432, 2 ** 40),
  MAILROOM_CONNECTIONS_MAX: integerKey(1000, 1, 1e6),
  MAILROOM_CONNECTIONS_PER_ADDRESS: integerKey(200, 1, 1e6),
  MAILROOM_BODY_LIMIT: integerKey(1_048_576, 1024, 104_857_600),
  MAILROOM_MESSAGE_LIMIT: integerKey(52_428_800, 1024, 2 ** 30),
  MAILROOM_REQUEST_TIMEOUT: durationKey('60s', '100ms'),
  MAILROOM_OAUTH_WINDOW: durationKey('5m', '1s', longestAge),
  MAILROOM_OAUTH_NONCE_TTL: durationKey('10m', '2s', longestAge),
  MAILROOM_WRONG_KEYS: integerKey(10, 0, 1e6),
  MAILROOM_RATE_CALLS_PER_HOUR: integerKey(5000, 0, 1e9),
  MAILROOM_RATE_IMAP_PER_MINUTE: integerKey(240, 0, 1e9),
  MAILROOM_RATE_CONNECT_PER_MINUTE: integerKey(60, 0, 1e9),
  MAILROOM_LINK_TTL: durationKey('15m', '100ms', longestAge),
  MAILROOM_CALL_LOG_PER_DAY: integerKey(150_000, 0, 1e9),
  MAILROOM_CALL_LOG_RETENTION: durationKey('7d', '1m', longestAge),

  MAILROOM_USERS_PER_DEVELOPER: integerKey(100_000, 0, 1e9),
  MAILROOM_ADDRESSES_PER_USER: integerKey(100, 0, 1e6),
  MAILROOM_TOKENS_PER_DEVELOPER: integerKey(50_000, 0, 1e9),
  MAILROOM_PROVIDERS_PER_DEVELOPER: integerKey(100, 0, 1e6),

  MAILROOM_LOGINS_PER_MINUTE: integerKey(50, 0, 1e6),
  MAILROOM_CONNECT_TIMEOUT: durationKey('15s', '100ms'),
  MAILROOM_LOGIN_TIMEOUT: durationKey('15s', '100ms'),
  MAILROOM_CREATE_TIMEOUT: durationKey('20s', '100ms'),
  MAILROOM_COMMAND_TIMEOUT: durationKey('30s', '100ms'),
  MAILROOM_COMMAND_IDLE_CLOSE: durationKey('60s', '100ms'),
  MAILROOM_IDLE_RENEW: durationKey('9m', '1s'),
  MAILROOM_INBOX_POLL: durationKey('10s', '100ms'),
  MAILROOM_FOLDER_POLL: durationKey('45s', '100ms'),
  MAILROOM_FOLDER_POLL_COLD: durationKey('5m', '100ms'),
  MAILROOM_FOLDER_LIST: durationKey('10m', '100ms'),
  MAILROOM_FOLDERS_MAX: integerKey(10_000, 100, 100_000),
  MAILROOM_FLAG_COMPARE: durationKey('30m', '0ms'),
  MAILROOM_GONE_HOLD: durationKey('90s', '0ms'),
  MAILROOM_SYNC_BATCH: integerKey(100, 1, 1000),
  MAILROOM_BACKFILL_PAUSE: durationKey('0ms', '0ms'),
  MAILROOM_BACKFILL_CONCURRENCY: integerKey(4, 1, 1000),
  MAILROOM_START_CONCURRENCY: integerKey(20, 1, 10_000),
  MAILROOM_BACKOFF_FIRST: durationKey('1s', '10ms'),
  MAILROOM_BACKOFF_MAX: durationKey('5m', '10ms'),
  MAILROOM_BACKOFF_AUTH: durationsKey('1m,5m,30m,2h,6h', '10ms'),
  MAILROOM_STRIKES: integerKey(3, 1, 100),
  MAILROOM_DISABLED_PROBE: durationKey('6h', '100ms'),
  MAILROOM_UIDVALIDITY_CHANGES: integerKey(3, 1, 1000),

  MAILROOM_OAUTH_ISSUER_A: optionalUrl,
  MAILROOM_OAUTH_AUTHORIZATION_URL_A: optionalUrl,
  MAILROOM_OAUTH_TOKEN_URL_A: optionalUrl,
  MAILROOM_OAUTH_SCOPE_A: z.string().min(1).default('https://mail.google.com/ openid email'),
  MAILROOM_OAUTH_PARAMS_A: z.string().default('access_type=offline&prompt=consent'),
  MAILROOM_OAUTH_HOSTS_A: z.string().default('imap.gmail.com'),
  MAILROOM_OAUTH_ISSUER_B: optionalUrl,
  MAILROOM_OAUTH_AUTHORIZATION_URL_B: optionalUrl,
  MAILROOM_OAUTH_TOKEN_URL_B: optionalUrl,
  MAILROOM_OAUTH_SCOPE_B: z
    .string()
    .min(1)
    .default('https://outlook.office.com/IMAP.AccessAsUser.All offline_access openid email profile'),
  MAILROOM_OAUTH_PARAMS_B: z.string().default(''),
  MAILROOM_OAUTH_HOSTS_B: z.string().default('outlook.office365.com'),
  MAILROOM_OAUTH_TIMEOUT: durationKey('15s', '100ms'),

  MAILROOM_WEBHOOK_SCHEDULE: durationsKey('5s,5m,30m,2h,5h,10h,14h,20h,24h', '10ms'),
  MAILROOM_WEBHOOK_JITTER: integerKey(20, 0, 100),
  MAILROOM_WEBHOOK_TIMEOUT: durationKey('15s', '100ms', '30s'),
  MAILROOM_WEBHOOK_CONCURRENCY: integerKey(16, 1, 1000),
  MAILROOM_WEBHOOK_BATCH: integerKey(200, 1, 10_000),
  MAILROOM_WEBHOOK_RETRY_AFTER_MAX: durationKey('1h', '0ms'),
  MAILROOM_WEBHOOK_PAYLOAD_MAX: integerKey(5_242_880, 1024, 104_857_600),
  MAILROOM_BODY_SEARCH_MAX: integerKey(16_777_216, 1024, 134_217_728),
  MAILROOM_FILTER_TIMEOUT: durationKey('5s', '100ms', '30s'),
  MAILROOM_WEBHOOKS_PER_USER: integerKey(100, 0, 1e6),
  MAILROOM_WEBHOOKS_PER_DEVELOPER: integerKey(10_000, 0, 1e9),
  MAILROOM_WEBHOOK_PROBE: durationKey('1h', '100ms'),
  MAILROOM_WEBHOOK_ABANDON: durationKey('5d', '100ms', longestAge),
  MAILROOM_SECRET_OVERLAP: durationKey('24h', '0ms', longestAge),
  MAILROOM_API_SECRET_OVERLAP: durationKey('24h', '0ms', longestAge),
  MAILROOM_DELIVERY_RETENTION: durationKey('30d', '1m', longestAge),
  MAILROOM_AUDIT_RETENTION: durationKey('365d', '1m', longestAge),
  MAILROOM_CHANGE_RETENTION: durationKey('30d', '1m', longestAge),
  MAILROOM_HISTORICAL_PAUSE: durationKey('250ms', '0ms'),

  MAILROOM_SHUTDOWN_TIMEOUT: durationKey('10s', '100ms'),
  MAILROOM_DRAIN_WAIT: durationKey('0s', '0ms'),
})

/** All settings by their environment name; durations in milliseconds. */
export type Config = Readonly<z.output<typeof settings>>
export type ConfigKey = keyof Config

/** Keys of the tests and of the command line (api/cli). */
const others: ReadonlySet<string> = new Set(['MAILROOM_REQUIRE', 'MAILROOM_URL', 'MAILROOM_ADMIN_TOKEN'])

/** Reads and checks the environment. AppError `bad_request`, one line that names every wrong key. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, text]) => text !== ''))
  const { data: config, error } = settings.safeParse(given)
  const strangers = Object.keys(env).filter(
    (name) => name.startsWith('MAILROOM_') && !(name in settings.shape) && !others.has(name),
  )
  const problems = [
    ...(error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`),
    ...strangers.map((name) => `${name}: unknown setting`),
  ]
  if (problems.length === 0 && (config?.MAILROOM_API_KEY === null) !== (config?.MAILROOM_API_SECRET === null)) {
    problems.push('MAILROOM_API_KEY and MAILROOM_API_SECRET: set both or none')
  }
  // A nonce that is forgotten while its timestamp is still accepted (a window before and after now) could be reused.
  if (config !== undefined && config.MAILROOM_OAUTH_NONCE_TTL < 2 * config.MAILROOM_OAUTH_WINDOW) {
    problems.push('MAILROOM_OAUTH_NONCE_TTL: must be at least twice MAILROOM_OAUTH_WINDOW')
  }
  if (config === undefined || problems.length > 0)
    throw new AppError('bad_request', `configuration: ${problems.join('; ')}`)
  return Object.freeze(config)
}

/** Each key with its default as text, for the table of docs/configuration.md. */
export function configTable(): readonly Readonly<Record<'name' | 'fallback', string>>[] {
  return Object.entries(settings.shape).map(([name, schema]) => ({ name, fallback: defaultText(schema) }))
}

function defaultText(schema: z.ZodType): string {
  const { default: fallback } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return typeof fallback === 'string' ? fallback : ''
}
