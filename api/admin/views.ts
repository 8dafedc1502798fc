/**
 * What operators see, by the admin API and in the console: the answers. Times are Unix timestamps in seconds, durations
 * milliseconds.
 */
import { z } from 'zod'
import { address, answer, exampleOf, ids, label, time, view } from '../examples.ts'
import { deliveryFields } from '../lite/webhooks/schema.ts'

const id = z.string()
const name = z.string()
const count = z.int().min(0)
const at = z.int()
const counts = z.record(z.string(), count)

const nextView = answer({
  what: [z.string(), 'connects again'],
  at: [at, time + 40],
}).nullable()

const accountFields = {
  id: [id, '7c9e6679f81d4b1c8a2e3d4f'],
  developer_id: [id, '4a1b2c3d4e5f60718293a4b5'],
  user_id: [id, ids.user],
  label: [name, label],
  email: [name, address],
  server: [name, 'imap.example.com'],
  status: [z.enum(['OK', 'DISABLED']), 'OK'],
  state: [
    name,
    'waiting',
    'what its actor does: watching, syncing, connecting, queued, waiting, throttled, disabled, paused, dead',
  ],
  since: [at, time, 'in this state since then'],
  failure: [name.nullable(), 'network', 'class of the last failure since it was well; null = none'],
  message: [z.string().nullable(), 'the connection to the mail server was closed'],
  attempt: [count, 3, 'failed attempts in a row'],
  next: [nextView, { what: 'connects again', at: time + 40 }, 'what happens by itself; null = nothing is timed'],
} as const
export const accountRow = view('AdminAccount', accountFields)

export const accountList = answer({
  total: [count, 1, 'that match, on all pages'],
  accounts: [z.array(accountRow), [exampleOf(accountRow)]],
})

export const stepView = answer({
  at: [z.number(), time],
  event: [name, 'connect failed: network'],
  state: [name, 'waiting'],
  ms: [z.int().nullable(), 1200, 'how long it stayed there; null = it still does'],
})

export const explanationView = answer({
  why: [z.string(), 'The connection to imap.example.com was closed (network), for the third time in a row.'],
  since: [at, time],
  next: [z.string(), 'It connects again at 22:14:00 UTC.'],
  would_change: [z.array(z.string()), ['The mail server answers again.', 'POST …/reconnect tries at once.']],
})

export const accountView = view('AdminAccountDetail', {
  ...accountFields,
  port: [z.int().min(1).max(65_535), 993],
  use_ssl: [z.boolean(), true],
  username: [name, address],
  auth_type: [z.enum(['password', 'oauth2']), 'password'],
  created: [at, time],
  last_connected: [at.nullable(), time],
  tags: [z.array(name), ['ok', 'waiting']],
  active: [
    z.array(name),
    ['running.life.waiting.backoff', 'running.status.ok'],
    'the states of its chart that are active, as paths',
  ],
  explain: explanationView,
  steps: [z.array(stepView), [], 'the last 100, oldest first'],
  wire: [
    z.array(z.string()),
    ['> A3 NOOP', '< A3 OK done'],
    'the last 200 lines of its connections, secrets and content masked',
  ],
  frozen: [
    answer({ at: [at, time], failure: [name, 'network'], lines: [z.array(z.string()), ['> A3 NOOP']] }).nullable(),
    null,
    'the lines as they were at the last failure',
  ],
  folders: [
    z.array(
      answer({
        name: [name, 'INBOX'],
        messages: [count, 120],
        indexed: [count, 120],
        unseen: [count, 3],
        complete: [z.boolean(), true, 'its older mail is read'],
      }),
    ),
    [],
  ],
  queues: [z.array(answer({ name: [name, 'commands'], waiting: [count, 0], running: [count, 1] })), []],
})

const webhookFields = {
  id: [id, ids.webhook],
  developer_id: [id, '4a1b2c3d4e5f60718293a4b5'],
  user_id: [id.nullable(), ids.user],
  callback_url: [z.string(), 'https://app.example.com/callback'],
  active: [z.boolean(), true],
  state: [name, 'idle'],
  since: [at, time],
  failing_since: [at.nullable(), null],
  failures: [count, 0, 'failed attempts in a row'],
  message: [z.string().nullable(), null],
  next: [nextView, null],
} as const
export const webhookRow = view('AdminWebhook', webhookFields)

export const webhookView = view('AdminWebhookDetail', {
  ...webhookFields,
  created: [at, time],
  tags: [z.array(name), ['idle']],
  active_states: [z.array(name), ['running.work.idle'], 'the states of its chart that are active, as paths'],
  pending: [count, 0, 'callbacks that wait'],
  oldest: [at.nullable(), null, 'the oldest of them is of then'],
  steps: [z.array(stepView), []],
})

export const webhookList = answer({
  total: [count, 1, 'that match, on all pages'],
  webhooks: [z.array(webhookRow), [exampleOf(webhookRow)]],
})

/** A callback, and what led to it. */
export const deliveryDetail = view('AdminDelivery', {
  ...deliveryFields,
  developer_id: [id, '4a1b2c3d4e5f60718293a4b5'],
  email_account: [id.nullable(), '7c9e6679f81d4b1c8a2e3d4f', 'id of the email account'],
  data: [z.record(z.string(), z.unknown()), {}, 'what is kept of the request; the body is made when it is sent'],
  why: [
    z.array(answer({ filter: [name, 'filter_from'], matched: [z.boolean(), true], why: [z.string(), 'it fits'] })),
    [],
    'what each filter says of the message; none when message or webhook are gone, or it is about no message',
  ],
})

export const hostView = view('AdminHost', {
  host: [name, 'imap.example.com'],
  accounts: [count, 120],
  states: [counts, { watching: 118, waiting: 2 }],
  logins: [counts, { ok: 4, network: 1 }, 'in the last minute, by outcome'],
  pace: [z.int().nullable(), null, 'logins a minute at most, as set by an operator; 0 = stopped; null = as configured'],
})

const developerFields = {
  id: [id, '4a1b2c3d4e5f60718293a4b5'],
  name: [name, 'Example'],
  api_key: [name, 'k3v9x1m7q2w8e5r4'],
  revoked: [at.nullable(), null],
  created: [at, time],
} as const
export const developerView = view('AdminDeveloper', {
  ...developerFields,
  users: [count, 12],
  accounts: [count, 14],
})
export const developerKey = answer({
  ...developerFields,
  api_secret: [name, '8f2k4m6n8p0q2r4s6t8v', 'shown this once'],
})

const tokenFields = {
  id: [id, '5e8d7c6b5a4938271605f4e3'],
  name: [name, 'grafana'],
  scopes: [z.array(z.enum(['read', 'act', 'keys'])), ['read']],
  created: [at, time],
  revoked: [at.nullable(), null],
} as const
export const tokenView = view('AdminToken', tokenFields)
export const tokenMade = answer({ ...tokenFields, token: [name, 'mra_5e8d7c6b_x3v9', 'shown this once'] })

export const checkView = answer({
  success: [z.boolean(), true],
  failure: [name.nullable(), null, 'class of the failure; null = the login went well'],
  message: [z.string().nullable(), null],
  account: accountRow,
})

const series = [z.array(z.number()), [1.5, 2]] as const
const historyView = answer({
  until: [at, time],
  every: [z.int(), 10, 'seconds between two values'],
  events_per_second: series,
  deliveries_per_second: series,
  delivery_ms: series,
  memory_mib: series,
  loop_delay_ms: series,
})

export const overviewView = view('AdminOverview', {
  version: [name, '0.1.0'],
  started: [at, time],
  ready: [z.boolean(), true],
  accounts: answer({
    total: [count, 3],
    states: [counts, { watching: 2, waiting: 1 }],
    statuses: [counts, { OK: 3, DISABLED: 0 }],
  }),
  hosts: [z.array(hostView), [], 'the twenty with most accounts that are not well'],
  webhooks: answer({
    total: [count, 2],
    states: [counts, { idle: 2 }],
    pending: [count, 0],
    oldest: [at.nullable(), null],
  }),
  now: answer({
    events_per_second: [z.number(), 1.5],
    deliveries_per_second: [z.number(), 1.5],
    delivery_ms: [z.number(), 20, 'mean of the last ten seconds'],
    memory_mib: [z.number(), 210],
    loop_delay_ms: [z.number(), 3, 'the longest of the last ten seconds'],
  }),
  history: [historyView, exampleOf(historyView), 'the last hour, oldest first'],
  attention: [
    z.array(
      answer({
        kind: [z.enum(['account', 'host', 'webhook', 'service']), 'webhook'],
        id: [id, ids.webhook],
        what: [z.string(), 'https://app.example.com/callback has failed for 5 days: only probes are sent'],
        since: [at, time],
      }),
    ),
    [],
    'what needs a person, most urgent first, at most fifty',
  ],
})
