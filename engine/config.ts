/**
 * Configuration: environment → zod → one frozen object. `configTable()` prints docs/configuration.md from the keys
 * here; a test keeps the two equal. A wrong value stops the start with one line (AppError `bad_request`).
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
  return textKey(String(fallback), (text) => {
    const value = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN
    if (value >= minimum && value <= maximum) return value
    throw new Error(`expected a whole number from ${minimum} to ${maximum}, got "${text}"`)
  })
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

/** name → [schema, meaning]. The order is the order of the table in docs/configuration.md. */
const keys = {
  MAILROOM_HOST: [z.string().default('127.0.0.1'), 'address the API listens on'],
  MAILROOM_PORT: [integerKey(3000, 0, 65535), 'port the API listens on; 0 = any free one, printed in the log'],
  MAILROOM_ADMIN_PORT: [
    z.preprocess((text) => optionalText.parse(text), integerKey(0, 0, 65_535).nullable()),
    'port of /healthz, /readyz, /metrics, /console and /admin; where set, the API’s port serves of these /healthz and /readyz alone',
  ],
  MAILROOM_ADMIN_HOST: [z.string().default('127.0.0.1'), 'address that MAILROOM_ADMIN_PORT listens on'],
  MAILROOM_ROLE: [choiceKey('all', 'all', 'api', 'engine'), 'api: owns no users; engine: takes no calls of clients'],
  MAILROOM_NODE_HOST: [optionalText, 'address at which other processes reach this one; unset = as MAILROOM_HOST'],
  MAILROOM_NODE_PORT: [integerKey(0, 0, 65_535), 'port on which this process listens for others; 0 = any free one'],
  MAILROOM_PUBLIC_URL: [optionalBaseUrl, 'base URL that clients use, behind a proxy; signs, and builds resource_url'],
  MAILROOM_TRUST_PROXY: [flagKey, '1 = believe X-Forwarded-Proto, -Host and -For of the proxy in front'],
  MAILROOM_DATA_DIR: [z.string().min(1).default('./data'), 'directory of the embedded store and the generated secret'],
  MONGODB_URI: [optionalText, 'MongoDB to use instead of the embedded SQLite store'],
  MAILROOM_MONGO_POOL: [integerKey(20, 1, 1000), 'connections to MongoDB at most'],
  MAILROOM_STORE_TIMEOUT: [durationKey('10s', '100ms'), 'deadline of one operation of the store'],
  MAILROOM_SQLITE_SYNC: [
    choiceKey('full', 'off', 'normal', 'full'),
    'durability of the embedded store: full survives power loss (delivered callbacks may be repeated), normal a crash of the process',
  ],
  MAILROOM_API_KEY: [optionalText, 'API key of the first developer; else made, and shown once at the first start'],
  MAILROOM_API_SECRET: [optionalSecret, 'API secret of the first developer; at least 16 characters'],
  MAILROOM_SECRET: [
    optionalText,
    '32 bytes (hex or base64) or a pass phrase of at least 16 characters; seals credentials. Generated into the data directory otherwise',
  ],
  MAILROOM_SECRET_OLD: [
    optionalText,
    'the former MAILROOM_SECRET, or what was in the file: what it sealed still opens. `mailroom reseal` says when it may go',
  ],
  MAILROOM_SECRET_LOST: [
    flagKey,
    '1 = start although a former secret is lost: what it sealed (credentials of mailboxes, client and webhook secrets) has to be given anew',
  ],
  MAILROOM_ALLOW_PRIVATE: [flagKey, '1 = callbacks and IMAP hosts may be private or loopback addresses'],
  MAILROOM_PLAINTEXT: [
    choiceKey('private', 'never', 'private', 'always'),
    'IMAP logins without TLS or STARTTLS: never, at private and loopback addresses only, or always',
  ],
  MAILROOM_LOG_LEVEL: [
    choiceKey('info', 'fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'least level that is logged',
  ],
  MAILROOM_STATUS_HEADER: [
    z
      .string()
      .regex(/^[A-Za-z0-9-]+$/, 'expected letters, digits and hyphens')
      .default('X-Service-Email-Account-Status'),
    'response header with the status of the email account',
  ],
  MAILROOM_TOKEN_PARAM: [
    z.string().regex(/^\w+$/, 'expected letters, digits and underscores').default('service_token'),
    'query parameter of the connect callback',
  ],
  MAILROOM_WIZARD_NAME: [
    optionalText,
    'who asks for the mailbox, in the connect wizard; unset = the host of the callback_url',
  ],
  MAILROOM_WIZARD_COLOR: [
    optionalText.refine((text) => text === null || isColor(text), { error: 'expected a colour such as #2457d6' }),
    'colour of the buttons of the connect wizard, such as #2457d6; the text on them is black or white, as is read better',
  ],
  MAILROOM_WIZARD_LOGO: [
    optionalText,
    'logo in the connect wizard: a file (png, jpg, gif, webp or svg, 100 KB at most) or a data: URL of such a picture',
  ],
  MAILROOM_WIZARD_PASSWORDS: [flagKey, '1 = the wizard takes passwords at Google and Microsoft beside sign-in'],
  MAILROOM_ADMIN_PASSWORD: [
    optionalSecret,
    'password of /console, at least 16 characters; unset = one is generated and shown once when the host that it is served on is loopback, else there is no console',
  ],
  OTEL_EXPORTER_OTLP_ENDPOINT: [
    optionalBaseUrl,
    'where traces of messages and their callbacks go: OTLP as JSON over HTTP, to its /v1/traces; unset = there are none',
  ],
  MAILROOM_METRICS_TOKEN: [
    optionalSecret,
    'Bearer token that /metrics asks for, at least 16 characters; unset = open, without names of mail servers',
  ],

  MAILROOM_BUFFER_MAX: [
    integerKey(536_870_912, 33_554_432, 2 ** 40),
    'bytes of bodies, mail and answers that are held in memory at once; who would be too much waits',
  ],
  MAILROOM_CONNECTIONS_MAX: [integerKey(1000, 1, 1e6), 'connections to the API at once; more are refused'],
  MAILROOM_CONNECTIONS_PER_ADDRESS: [
    integerKey(200, 1, 1e6),
    'the same of one address; behind a trusted proxy it counts the calls under way of each client',
  ],
  MAILROOM_BODY_LIMIT: [integerKey(1_048_576, 1024, 104_857_600), 'largest request body in bytes'],
  MAILROOM_MESSAGE_LIMIT: [
    integerKey(52_428_800, 1024, 2 ** 30),
    'largest message in bytes that POST /2.0/accounts/{id}/messages takes; it waits in MAILROOM_DATA_DIR for its mail server',
  ],
  MAILROOM_REQUEST_TIMEOUT: [durationKey('60s', '100ms'), 'deadline of one API call'],
  MAILROOM_OAUTH_WINDOW: [durationKey('5m', '1s', longestAge), 'allowed distance of oauth_timestamp from our clock'],
  MAILROOM_OAUTH_NONCE_TTL: [durationKey('10m', '2s', longestAge), 'how long a nonce is kept; at least two windows'],
  MAILROOM_WRONG_KEYS: [
    integerKey(10, 0, 1e6),
    'wrong keys or signatures in a row from one address until it has to wait, longer each time; 0 = never',
  ],
  MAILROOM_RATE_CALLS_PER_HOUR: [integerKey(5000, 0, 1e9), 'API calls per hour and key; 0 = no limit'],
  MAILROOM_RATE_IMAP_PER_MINUTE: [integerKey(240, 0, 1e9), 'API calls that touch IMAP a minute and user; 0 = no limit'],
  MAILROOM_RATE_CONNECT_PER_MINUTE: [
    integerKey(60, 0, 1e9),
    'forms of the connect wizard that one address may send a minute; 0 = no limit',
  ],
  MAILROOM_LINK_TTL: [durationKey('15m', '100ms', longestAge), 'validity of a signed download link'],
  MAILROOM_CALL_LOG_PER_DAY: [
    integerKey(150_000, 0, 1e9),
    'API calls of one developer that are kept in 24 hours; 0 = all. Those answered 429 are counted by the metrics alone',
  ],
  MAILROOM_CALL_LOG_RETENTION: [durationKey('7d', '1m', longestAge), 'how long API calls are kept for /app/logs/calls'],

  MAILROOM_USERS_PER_DEVELOPER: [integerKey(100_000, 0, 1e9), 'users of one developer; 0 = no limit'],
  MAILROOM_ADDRESSES_PER_USER: [integerKey(100, 0, 1e6), 'email addresses of one account of 2.0; 0 = no limit'],
  MAILROOM_TOKENS_PER_DEVELOPER: [
    integerKey(50_000, 0, 1e9),
    'connect tokens of one developer, which are kept for 30 days after they have expired; 0 = no limit',
  ],
  MAILROOM_PROVIDERS_PER_DEVELOPER: [integerKey(100, 0, 1e6), 'OAuth providers of one developer; 0 = no limit'],

  MAILROOM_LOGINS_PER_MINUTE: [
    integerKey(50, 0, 1e6),
    'new IMAP logins per host and minute, a fifth of them at once; developers take turns; 0 = no limit. A login that an API call waits for goes first',
  ],
  MAILROOM_CONNECT_TIMEOUT: [durationKey('15s', '100ms'), 'IMAP: TCP, TLS and greeting'],
  MAILROOM_LOGIN_TIMEOUT: [durationKey('15s', '100ms'), 'IMAP: login'],
  MAILROOM_CREATE_TIMEOUT: [durationKey('20s', '100ms'), 'the whole check of a new email account'],
  MAILROOM_COMMAND_TIMEOUT: [durationKey('30s', '100ms'), 'IMAP: a command without progress for this long is given up'],
  MAILROOM_COMMAND_IDLE_CLOSE: [durationKey('60s', '100ms'), 'IMAP: an idle command connection is closed after this'],
  MAILROOM_IDLE_RENEW: [durationKey('9m', '1s'), 'IMAP: IDLE is issued anew after this time'],
  MAILROOM_INBOX_POLL: [durationKey('10s', '100ms'), 'how often INBOX is asked until the host has pushed to IDLE'],
  MAILROOM_FOLDER_POLL: [durationKey('45s', '100ms'), 'folders are polled so often; a quiet account 13 times less'],
  MAILROOM_FOLDER_POLL_COLD: [durationKey('5m', '100ms'), 'the same of all but 50 folders, without LIST-STATUS'],
  MAILROOM_FOLDER_LIST: [durationKey('10m', '100ms'), 'how often the list of folders is read anew'],
  MAILROOM_FOLDERS_MAX: [integerKey(10_000, 100, 100_000), 'folders of one mailbox; one with more is not read'],
  MAILROOM_FLAG_COMPARE: [
    durationKey('30m', '0ms'),
    'full comparison: of flags where CONDSTORE is missing, of folders that do not add up',
  ],
  MAILROOM_GONE_HOLD: [durationKey('90s', '0ms'), 'how long a disappearance is held before it is reported as deleted'],
  MAILROOM_SYNC_BATCH: [integerKey(100, 1, 1000), 'messages read and written at once'],
  MAILROOM_BACKFILL_PAUSE: [durationKey('0ms', '0ms'), 'pause between two back-fill batches of one account'],
  MAILROOM_BACKFILL_CONCURRENCY: [
    integerKey(4, 1, 1000),
    'accounts that back-fill at the same time, in turns by developer and account',
  ],
  MAILROOM_START_CONCURRENCY: [
    integerKey(20, 1, 10_000),
    'accounts that connect at the same time, in turns by developer and host',
  ],
  MAILROOM_BACKOFF_FIRST: [durationKey('1s', '10ms'), 'reconnect after a network failure: first wait, full jitter'],
  MAILROOM_BACKOFF_MAX: [durationKey('5m', '10ms'), 'reconnect after a network failure: longest wait'],
  MAILROOM_BACKOFF_AUTH: [durationsKey('1m,5m,30m,2h,6h', '10ms'), 'waits after a rejected login'],
  MAILROOM_STRIKES: [integerKey(3, 1, 100), 'rejections in a row (login, consent, permission) until DISABLED'],
  MAILROOM_DISABLED_PROBE: [durationKey('6h', '100ms'), 'how often a DISABLED account is tried'],
  MAILROOM_UIDVALIDITY_CHANGES: [integerKey(3, 1, 1000), 'UIDVALIDITY changes a day until a folder is slowed down'],

  MAILROOM_OAUTH_ISSUER_A: [
    optionalUrl,
    'OpenID issuer of provider A (PROVIDER_A_OAUTH2): its endpoints are asked of it, unless they are set; unset = the public one',
  ],
  MAILROOM_OAUTH_AUTHORIZATION_URL_A: [optionalUrl, 'authorization endpoint of provider A: where end users sign in'],
  MAILROOM_OAUTH_TOKEN_URL_A: [optionalUrl, 'token endpoint of provider A; unset = the public one'],
  MAILROOM_OAUTH_SCOPE_A: [
    z.string().min(1).default('https://mail.google.com/ openid email'),
    'scopes that are asked for: IMAP, a refresh token, and openid for the address of who signs in',
  ],
  MAILROOM_OAUTH_PARAMS_A: [
    z.string().default('access_type=offline&prompt=consent'),
    'further parameters of the authorization request, as a query string',
  ],
  MAILROOM_OAUTH_HOSTS_A: [
    z.string().default('imap.gmail.com'),
    'IMAP servers whose mailboxes provider A signs in for, separated by commas',
  ],
  MAILROOM_OAUTH_ISSUER_B: [optionalUrl, 'the same of provider B (PROVIDER_B_CONNECT)'],
  MAILROOM_OAUTH_AUTHORIZATION_URL_B: [optionalUrl, 'the same of provider B'],
  MAILROOM_OAUTH_TOKEN_URL_B: [optionalUrl, 'the same of provider B; unset = the public one'],
  MAILROOM_OAUTH_SCOPE_B: [
    z.string().min(1).default('https://outlook.office.com/IMAP.AccessAsUser.All offline_access openid email profile'),
    'the same of provider B',
  ],
  MAILROOM_OAUTH_PARAMS_B: [z.string().default(''), 'the same of provider B'],
  MAILROOM_OAUTH_HOSTS_B: [z.string().default('outlook.office365.com'), 'the same of provider B'],
  MAILROOM_OAUTH_TIMEOUT: [durationKey('15s', '100ms'), 'deadline of a call to an OAuth provider'],

  MAILROOM_WEBHOOK_SCHEDULE: [
    durationsKey('5s,5m,30m,2h,5h,10h,14h,20h,24h', '10ms'),
    'waits between the attempts of a callback; one attempt more than waits',
  ],
  MAILROOM_WEBHOOK_JITTER: [integerKey(20, 0, 100), 'jitter of these waits in percent'],
  MAILROOM_WEBHOOK_TIMEOUT: [
    durationKey('15s', '100ms', '30s'),
    'connect, headers and body of a callback; 30s at most',
  ],
  MAILROOM_WEBHOOK_CONCURRENCY: [integerKey(16, 1, 1000), 'callbacks of a webhook at once; one of each account'],
  MAILROOM_WEBHOOK_BATCH: [integerKey(200, 1, 10_000), 'outbox rows that a webhook holds in memory'],
  MAILROOM_WEBHOOK_RETRY_AFTER_MAX: [durationKey('1h', '0ms'), 'longest Retry-After of a receiver that is obeyed'],
  MAILROOM_WEBHOOK_PAYLOAD_MAX: [
    integerKey(5_242_880, 1024, 104_857_600),
    'largest callback in bytes; bodies that do not fit are cut, with a link to the whole',
  ],
  MAILROOM_BODY_SEARCH_MAX: [
    integerKey(16_777_216, 1024, 134_217_728),
    'bytes of text of one message that body_search looks through',
  ],
  MAILROOM_FILTER_TIMEOUT: [
    durationKey('5s', '100ms', '30s'),
    'how long the filters of one webhook may work on one message, in a thread of their own, before it is skipped',
  ],
  MAILROOM_WEBHOOKS_PER_USER: [
    integerKey(100, 0, 1e6),
    'webhooks of one user, and as many of the application itself; 0 = no limit',
  ],
  MAILROOM_WEBHOOKS_PER_DEVELOPER: [
    integerKey(10_000, 0, 1e9),
    'webhooks of one developer, of all users and of the application together; 0 = no limit',
  ],
  MAILROOM_WEBHOOK_PROBE: [
    durationKey('1h', '100ms'),
    'a failing webhook, and a callback that waits for its next attempt, is tried at least this often',
  ],
  MAILROOM_WEBHOOK_ABANDON: [
    durationKey('5d', '100ms', longestAge),
    'after failing this long a webhook gets no more than the probes; what waits is kept',
  ],
  MAILROOM_SECRET_OVERLAP: [durationKey('24h', '0ms', longestAge), 'how long a replaced webhook secret still signs'],
  MAILROOM_API_SECRET_OVERLAP: [durationKey('24h', '0ms', longestAge), 'how long a replaced API secret is accepted'],
  MAILROOM_DELIVERY_RETENTION: [
    durationKey('30d', '1m', longestAge),
    'how long finished deliveries are kept, and how long a callback waits for a receiver that is away',
  ],
  MAILROOM_AUDIT_RETENTION: [durationKey('365d', '1m', longestAge), 'how long actions of operators are kept'],
  MAILROOM_CHANGE_RETENTION: [durationKey('30d', '1m', longestAge), 'how long the change log is kept'],
  MAILROOM_HISTORICAL_PAUSE: [durationKey('250ms', '0ms'), 'pause between two pages of a historical scan'],

  MAILROOM_SHUTDOWN_TIMEOUT: [durationKey('10s', '100ms'), 'time for open work at the end'],
  MAILROOM_DRAIN_WAIT: [
    durationKey('0s', '0ms'),
    'after SIGTERM: how long calls are still taken while /readyz says 503, so that a load balancer hears of it',
  ],
} as const satisfies Record<string, readonly [z.ZodType, string]>

type Keys = typeof keys
export type ConfigKey = keyof Keys
/** All settings by their environment name; durations in milliseconds. */
export type Config = { readonly [K in ConfigKey]: z.output<Keys[K][0]> }

/** Keys of the tests and of the command line (api/cli). */
const others: ReadonlySet<string> = new Set(['MAILROOM_REQUIRE', 'MAILROOM_URL', 'MAILROOM_ADMIN_TOKEN'])

/** Reads and checks the environment. AppError `bad_request`, one line that names every wrong key. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const values: Record<string, unknown> = {}
  const problems: string[] = []
  for (const [name, [schema]] of Object.entries(keys)) {
    const raw = env[name]
    const result = schema.safeParse(raw === '' ? undefined : raw)
    if (result.success) values[name] = result.data
    else problems.push(`${name}: ${result.error.issues.map((issue) => issue.message).join(', ')}`)
  }
  const strangers = Object.keys(env).filter(
    (name) => name.startsWith('MAILROOM_') && !(name in keys) && !others.has(name),
  )
  problems.push(...strangers.map((name) => `${name}: unknown setting`))
  const config = Object.freeze(values) as Config
  if (problems.length === 0 && (config.MAILROOM_API_KEY === null) !== (config.MAILROOM_API_SECRET === null)) {
    problems.push('MAILROOM_API_KEY and MAILROOM_API_SECRET: set both or none')
  }
  // A nonce that is forgotten while its timestamp is still accepted (a window before and after now) could be reused.
  if (problems.length === 0 && config.MAILROOM_OAUTH_NONCE_TTL < 2 * config.MAILROOM_OAUTH_WINDOW) {
    problems.push('MAILROOM_OAUTH_NONCE_TTL: must be at least twice MAILROOM_OAUTH_WINDOW')
  }
  if (problems.length === 0 && config.MAILROOM_ROLE !== 'all' && config.MONGODB_URI === null)
    problems.push('MAILROOM_ROLE: needs MONGODB_URI, since the embedded store has one process')
  if (problems.length > 0) throw new AppError('bad_request', `configuration: ${problems.join('; ')}`)
  return config
}

/** One row per key for docs/configuration.md; `fallback` is the default as text. */
export function configTable(): readonly Readonly<Record<'name' | 'fallback' | 'meaning', string>>[] {
  return Object.entries(keys).map(([name, [schema, meaning]]) => ({ name, fallback: defaultText(schema), meaning }))
}

function defaultText(schema: z.ZodType): string {
  const { default: fallback } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return typeof fallback === 'string' ? fallback : ''
}
