/**
 * `npm run demo [-- --once]`: a mailbox on an IMAP server in this process, the service (main.ts, embedded store,
 * temporary directory) beside it, and a developer's server that receives callbacks. --once ends with 0 after the first
 * verified callback, with 1 when none came within 30 s. Ctrl-C ends it in order.
 */
import { bodySignatureFits, headerSignatureFits, part, startReceiver, type Callback } from '../support/callbacks.ts'
import { createImapServer } from '../support/imap-server/index.ts'
import { createReceiver } from '../support/receiver.ts'
import { startService, type Json, type Service } from '../support/service.ts'
import { until } from '../support/until.ts'
import { listed, userBody } from '../support/users.ts'
import { arrivingMail, owner, startingMail } from './mailbox.ts'
import { curl, result, sameAs, say, shell, step } from './narrate.ts'

const once = process.argv.includes('--once')
const key = 'demo-key'
const secret = 'demo-secret-please-change'
const credentials = `${key}:${secret}`
const consolePassword = 'demo-console-please-change'
const password = 'janes-password'
/** Whose mailbox is connected in a browser. */
const second = { email: 'john@demo.example', password: 'johns-password' }
/** Whose mailbox the quick start of /docs connects. */
const third = { email: 'kim@demo.example', password: 'kims-password' }
const everyMs = 4000
const patienceMs = 30_000

type Imap = Awaited<ReturnType<typeof createImapServer>>
type Receiver = Awaited<ReturnType<typeof startReceiver>>

const closers: (() => Promise<unknown>)[] = []
let ending: Promise<void> | null = null

/** Everything back as it was, then the status. Safe to call twice. */
function end(status: number, words: string): Promise<void> {
  ending ??= (async () => {
    say()
    say(words)
    for (const close of closers.toReversed()) await close()
    process.exit(status)
  })()
  return ending
}

async function startParts() {
  step('A mail server starts in this process, with the mailbox of Jane: six messages, one of them with an attachment.')
  const users = { [owner]: { password }, [second.email]: { password: second.password }, [third.email]: third }
  const imap = await createImapServer({ users })
  closers.push(() => imap.close())
  for (const { folder, raw, flags, date } of startingMail()) imap.append(owner, folder, raw, flags, date)
  result(`IMAP at ${imap.host}:${imap.port}, user ${owner}, password ${password}`)

  const receiver = await startReceiver()
  closers.push(() => receiver.close())
  step('A developer’s server starts. It answers 200 and checks both signatures of each callback.')
  result(`callbacks go to ${receiver.url}/mail`)

  const own = { MAILROOM_ADMIN_PASSWORD: consolePassword, MAILROOM_WIZARD_NAME: 'Demo' }
  const env = { MAILROOM_API_KEY: key, MAILROOM_API_SECRET: secret, ...own }
  const service = await startService({ env })
  closers.push(() => service.remove())
  step('Mailroom starts on the embedded store, in a temporary directory.')
  const settings = Object.entries({ ...env, MAILROOM_ALLOW_PRIVATE: 1 }).map(([name, value]) => `${name}=${value}`)
  sameAs(`${settings.join(' ')} npm start`)
  result(`API at ${service.url}`)
  result(`console at ${service.url}/console, password ${consolePassword}`)
  return { imap, receiver, service }
}

async function connectMailbox(service: Service, imap: Imap): Promise<string> {
  step('Jane’s mailbox is connected. The login is tried first; nothing is created when it fails.')
  const body = userBody({ host: imap.host, port: imap.port, password }, owner, { first_name: 'Jane' })
  sameAs(curl(credentials, `${service.url}/lite/users`, body))
  const answer = await service.ok('POST', '/lite/users', body)
  result(JSON.stringify(answer))
  if (answer['success'] !== true) throw new Error('the mailbox could not be connected')
  return String(answer['id'])
}

async function readMailbox(service: Service, user: string): Promise<void> {
  await listed(service, user, 'Figures for the meeting', patienceMs)
  const account = `/lite/users/${user}/email_accounts/0`
  step('Her folders:')
  sameAs(curl(credentials, `${service.url}${account}/folders`))
  const folders = await service.list(`${account}/folders`)
  result(folders.map((folder) => `${String(folder['name'])} (${String(folder['nb_messages'])})`).join(', '))

  step('Her messages, newest first, from the index:')
  sameAs(curl(credentials, `${service.url}${account}/messages?limit=10`))
  const messages = await until('every folder read', () => service.list(`${account}/messages?limit=10`))
  result(messages.map(line).join('\n'))
}

/** One message in one line. */
function line(message: Json): string {
  const date = new Date(Number(message['sent_at'] ?? message['date']) * 1000)
    .toISOString()
    .slice(0, 16)
    .replace('T', ' ')
  const from = part(message, 'addresses')['from']
  const sender = (Array.isArray(from) ? from[0] : from) as { email?: string } | undefined
  return `${date}  ${(sender?.email ?? '').padEnd(24)}  ${String(message['subject'])}`
}

/** The page that the browser comes back to is the developer's. */
async function offerWizard(service: Service, imap: Imap): Promise<void> {
  const application = await createReceiver(() => ({
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: '<h1>Back in the developer’s application</h1><p>Its server asks for the token now, and has the new user.</p>',
  }))
  closers.push(() => application.close())
  step(
    'An end user connects another mailbox in a browser; the developer never sees its password. The link is good once:',
  )
  const body = { callback_url: application.url('/connected'), email: second.email, first_name: 'John' }
  sameAs(curl(credentials, `${service.url}/lite/connect_tokens`, body))
  const { browser_redirect_url: link } = await service.ok('POST', '/lite/connect_tokens', body)
  result(`wizard at ${String(link)}`)
  result(`password ${second.password}; server ${imap.host}, port ${imap.port}, STARTTLS, user name ${second.email}`)
}

async function registerWebhook(service: Service, user: string, receiver: Receiver): Promise<void> {
  step('New mail shall be told to the developer’s server, with its text:')
  const body = { callback_url: `${receiver.url}/mail`, include_body: 1, body_type: 'text/plain' }
  sameAs(curl(credentials, `${service.url}/lite/users/${user}/webhooks`, body))
  result(JSON.stringify(await service.ok('POST', `/lite/users/${user}/webhooks`, body)))
}

/** Puts one message into Jane's INBOX, as her mail server would. */
function deliver(imap: Imap, n: number): number {
  const { from, subject, raw } = arrivingMail(n)
  step(`New mail from ${from}: “${subject}”`)
  sameAs(`curl -u ${owner}:${password} imap://${imap.host}:${imap.port}/INBOX -T mail.eml`)
  const at = performance.now()
  imap.append(owner, 'INBOX', raw)
  return at
}

/** Shows a callback; answers whether both signatures fit. */
function show(callback: Callback, service: Service, user: string, deliveredAt: number): boolean {
  const message = part(callback.body, 'message_data')
  const { timestamp, token, signature } = callback.body
  const inBody = bodySignatureFits(callback, secret)
  const inHeader = headerSignatureFits(callback, `whsec_${Buffer.from(secret).toString('base64')}`)
  step(`Callback after ${Math.round(callback.at - deliveredAt)} ms: “${String(message['subject'])}”`)
  result(line(message))
  result(`webhook-id ${String(callback.headers['webhook-id'])}`)
  result(`signature in the body: ${inBody ? 'valid' : 'WRONG'} (${String(signature)}), as computed by`)
  sameAs(`printf %s ${shell(`${String(timestamp)}${String(token)}`)} | openssl dgst -sha256 -hmac ${secret}`)
  result(`Standard Webhooks signature in the header: ${inHeader ? 'valid' : 'WRONG'}`)
  sameAs(
    curl(credentials, `${service.url}/lite/users/${user}/email_accounts/0/messages/${String(message['message_id'])}`),
  )
  return inBody && inHeader
}

/** The settings that the quick start of /docs asks for, as a line for a shell. */
function offerQuickStart(service: Service, imap: Imap, receiver: Receiver): void {
  step('The quick start of the documentation works here too. In a second terminal:')
  imap.append(third.email, 'INBOX', arrivingMail(0).raw)
  const settings = {
    KEY: key,
    SECRET: secret,
    RECEIVER: `${receiver.url}/mail`,
    EMAIL: third.email,
    PASSWORD: third.password,
    SERVER: imap.host,
    PORT: imap.port,
    TLS: 0,
  }
  sameAs(
    `export ${Object.entries(settings)
      .map(([name, value]) => `${name}=${value}`)
      .join(' ')}`,
  )
  result(`documentation at ${service.url}/docs`)
}

function watch(imap: Imap, receiver: Receiver, service: Service, user: string): void {
  let deliveredAt = 0
  let delivered = 0
  receiver.onCallback((callback) => {
    if (callback.body['user_id'] !== user) {
      step('A callback of another mailbox: the quick start’s, or the one connected in a browser.')
      result(`webhook-id ${String(callback.headers['webhook-id'])}, ${callback.raw.length} bytes`)
      return
    }
    const valid = show(callback, service, user, deliveredAt)
    if (!valid) void end(1, 'A callback carried a wrong signature.')
    else if (once) void end(0, 'One callback came and was verified.')
  })
  const next = (): void => void (deliveredAt = deliver(imap, delivered++))
  next()
  if (once) return
  const timer = setInterval(next, everyMs)
  closers.push(() => {
    clearInterval(timer)
    return Promise.resolve()
  })
  say()
  say(`   A new message every ${everyMs / 1000} s from here on. Ctrl-C ends the demo.`)
}

async function demo(): Promise<void> {
  const { imap, receiver, service } = await startParts()
  const user = await connectMailbox(service, imap)
  await readMailbox(service, user)
  await offerWizard(service, imap)
  offerQuickStart(service, imap, receiver)
  await registerWebhook(service, user, receiver)
  watch(imap, receiver, service, user)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end(0, 'The demo ends.'))
if (once) setTimeout(() => void end(1, `No verified callback within ${patienceMs / 1000} s.`), patienceMs).unref()
try {
  await demo()
} catch (error) {
  await end(1, error instanceof Error ? error.message : String(error))
}
