/** The world that the console shows: a user whose callbacks arrive, one whose receiver fails, a lost mail server. */
import assert from 'node:assert/strict'
import { acceptedFor, openStage, quickRetries, type Stage, watchedUser, type WatchedUser } from '../e2e/stage.ts'
import { type Dovecot, startDovecot } from '../support/dovecot.ts'
import { createImapServer } from '../support/imap-server/index.ts'
import { mail } from '../support/mail.ts'
import { until } from '../support/until.ts'
import { createUser } from '../support/users.ts'

export const password = 'a password of an operator'
const env = {
  MAILROOM_ADMIN_PASSWORD: password,
  MAILROOM_WEBHOOK_SCHEDULE: '10m,10m',
  MAILROOM_BACKOFF_FIRST: '60s',
  MAILROOM_BACKOFF_MAX: '60s',
}

export interface World {
  readonly stage: Stage
  readonly dovecot: Dovecot
  /** A user with mail and a webhook that works. */
  readonly ada: WatchedUser
  /** Her email account, its webhook and one callback of it have these pages. */
  readonly account: string
  readonly webhook: string
  readonly delivery: string
  readonly developer: string
  /** Address of an account whose mail server is gone. */
  readonly lost: string
}

/** `accounts`: how many, beside the three that are looked at. */
export async function build(parts: AsyncDisposableStack, accounts: number): Promise<World> {
  const dovecot = await startDovecot({ mailboxes: accounts + 10 })
  parts.defer(() => dovecot.remove())
  const stage = await openStage({ env: { ...quickRetries, ...env } })
  parts.defer(() => stage.remove())
  const ada = await watchedUser(stage, dovecot, 'ada')
  await dovecot.append(ada.email, 'INBOX', mail({ to: ada.email, subject: 'news' }))
  await until('a callback', () => acceptedFor(stage, ada).length > 0, {
    explain: () => stage.service.log().slice(-2000),
  })
  stage.receiver.behave(({ path }) => (path === '/late' ? 500 : 200))
  const late = await watchedUser(stage, dovecot, 'late')
  await dovecot.append(late.email, 'INBOX', mail({ to: late.email, subject: 'late news' }))
  await until('a callback that fails', () => stage.receiver.all.some(({ path }) => path === '/late'))
  const lost = 'lost@mail.example'
  const imap = await createImapServer({ users: { [lost]: { password: 'secret' } } })
  await createUser(stage.service, { host: imap.host, port: imap.port, password: 'secret' }, lost)
  for (let n = 0; n < accounts; n += 1) await createUser(stage.service, dovecot, `user${n}@mail.example`)
  await imap.close()
  return { stage, dovecot, ada, lost, ...(await addresses(stage, ada)) }
}

/** As the console itself links to them. */
async function addresses(
  { service }: Stage,
  ada: WatchedUser,
): Promise<Pick<World, 'account' | 'webhook' | 'delivery' | 'developer'>> {
  const body = new URLSearchParams({ password })
  const opened = await fetch(`${service.url}/console/login`, { method: 'POST', body, redirect: 'manual' })
  const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const text = async (path: string) => (await fetch(service.url + path, { headers: { cookie } })).text()
  const linkIn = async (path: string, wanted: RegExp) =>
    wanted.exec(await text(path))?.[0] ?? assert.fail(`${path}: no ${wanted.source}`)
  const webhook = `/console/webhooks/${ada.webhookId}`
  return {
    account: await linkIn(`/console/accounts?q=${ada.email}`, /\/console\/accounts\/[0-9a-f]{24}/),
    webhook,
    delivery: await linkIn(webhook, /\/console\/deliveries\/[\w-]+/),
    developer: await linkIn('/console/developers', /\/console\/developers\/[0-9a-f]{24}/),
  }
}
