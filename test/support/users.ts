/** The first calls of every developer: a user with an email account, its mail listed, a webhook. */
import type { Client, Json } from './service.ts'
import { until } from './until.ts'

/** Where mail is, as POST /lite/users wants to know it. */
export interface MailServer {
  readonly host: string
  readonly port: number
  readonly password: string
}

/** Body of POST /lite/users; `extra` replaces or adds. */
export function userBody(server: MailServer, email: string, extra: Json = {}): Json {
  return {
    email,
    server: server.host,
    port: server.port,
    use_ssl: 0,
    username: email,
    password: server.password,
    type: 'imap',
    ...extra,
  }
}

/** Answers the id of the new user; throws when the mailbox cannot be reached. */
export async function createUser(
  service: Client,
  server: MailServer,
  email: string,
  extra: Json = {},
): Promise<string> {
  const answer = await service.ok('POST', '/lite/users', userBody(server, email, extra))
  if (answer['success'] !== true) throw new Error(`no user for ${email}: ${JSON.stringify(answer)}`)
  return String(answer['id'])
}

/** Subjects of INBOX as the API lists them. */
async function listSubjects(service: Client, userId: string): Promise<string[]> {
  const path = `/lite/users/${userId}/email_accounts/0/folders/INBOX/messages?limit=100`
  return (await service.list(path)).map((message) => String(message['subject']))
}

/** Resolves when the message is listed: from then on new mail counts as new. */
export async function listed(service: Client, userId: string, subject: string, withinMs = 15_000): Promise<void> {
  const there = async (): Promise<boolean> => (await listSubjects(service, userId)).includes(subject)
  await until(`"${subject}" in the list`, there, { withinMs, everyMs: 50 })
}

/** Answers the webhook's id. */
export async function createWebhook(service: Client, userId: string, url: string, extra: Json = {}): Promise<string> {
  const answer = await service.ok('POST', `/lite/users/${userId}/webhooks`, { callback_url: url, ...extra })
  return String(answer['webhook_id'])
}
