/** A developer whose filters, mails and calls take all that they can get. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basicOf, say, type Heard } from '../../hostile/stranger.ts'
import { openRawImap } from '../../support/raw-imap.ts'
import { addressOf, hold, holdMany, type Held } from '../../hostile/sockets.ts'
import { mail } from '../../support/mail.ts'
import { freePort } from '../../support/port.ts'
import { userBody } from '../../support/users.ts'
import { benchMail } from '../lib/mail.ts'
import type { Attack, Stage } from './stage.ts'

async function userAt(stage: Stage, name: string): Promise<{ readonly id: string; readonly email: string }> {
  const email = `${name}@mallory.example`
  const answer = await stage.client.ok('POST', '/lite/users', userBody(stage.dovecot, email))
  return { id: String(answer['id']), email }
}

async function append(stage: Stage, email: string, raw: string): Promise<void> {
  const client = await openRawImap({ ...stage.dovecot, user: email })
  await client.append('INBOX', [raw])
  await client.close()
}

/** A refused call counts as such. */
async function answered(call: Promise<Heard>): Promise<void> {
  const { status } = await call
  if (status === 429) throw new Error('refused')
}

function authorizationOf({ key, secret }: Stage): string {
  return `Authorization: ${basicOf(key, secret)}`
}

const fiveThousand = Array.from({ length: 5000 }, (_, n) => `aab${n}@host${n}.mallory.example`).join(',\r\n ')

const filters: Attack = async (stage) => {
  const { id, email } = await userAt(stage, 'filters')
  const callback_url = `http://127.0.0.1:${await freePort()}/nobody`
  const body_search = '/(a+b?){1,200}(x|y|z)*[^c]{1,100}q/'
  for (let n = 0; n < 5; n += 1) {
    await stage.client.ok('POST', `/lite/users/${id}/webhooks`, { callback_url, body_search })
    const filter_to = Array.from({ length: 190 }, (_, k) => `*a*b*${k}*`).join(',')
    await stage.client.ok('POST', `/lite/users/${id}/webhooks`, { callback_url, filter_to })
  }
  await stage.repeat('filters', 3000, async () => {
    await append(stage, email, benchMail(`body-${Date.now()}`, email, 1_000_000).replaceAll('quick', 'aaaaa'))
    await append(stage, email, mail({ to: fiveThousand, subject: `wild ${Date.now()}` }))
    const comments = [`Content-Type: ${'('.repeat(16_000)}`, `From: ${'('.repeat(16_000)}`]
    await append(stage, email, [...comments, `Subject: deep ${Date.now()}`, '', 'x'].join('\r\n'))
  })
}

const dryRuns: Attack = async (stage) => {
  const { id, email } = await userAt(stage, 'dry-runs')
  await append(stage, email, benchMail('dry', email, 1_000_000).replaceAll('quick', 'aaaaa'))
  const hook = { callback_url: `http://127.0.0.1:${await freePort()}/x`, body_search: '/(a+b?){1,200}q/' }
  const { webhook_id: webhook } = await stage.client.ok('POST', `/lite/users/${id}/webhooks`, hook)
  await stage.repeat('dry runs', 200, () =>
    stage.client.ok('GET', `/lite/users/${id}/webhooks/${String(webhook)}/dry_run`),
  )
}

const creations: Attack = (stage) => {
  let n = 0
  return stage.repeat('wrong passwords', 700, () => {
    n += 1
    const body = userBody({ ...stage.dovecot, password: 'wrong' }, `nobody-${n}@mallory.example`)
    return stage.client.ok('POST', '/lite/users', body)
  })
}

/** Large bodies, asked for and not read. */
const slowReader: Attack = async (stage) => {
  const { id, email } = await userAt(stage, 'slow-reader')
  for (let n = 0; n < 10; n += 1) await append(stage, email, benchMail(`large-${n}`, email, 3_000_000))
  await stage.repeat('slow readers', 1000, () => {
    const head = [
      `GET /lite/users/${id}/email_accounts/0/folders/INBOX/messages?include_body=1&limit=10 HTTP/1.1`,
      authorizationOf(stage),
    ]
    return holdMany(20, 10_000, (n) => hold(stage.url, addressOf(n), head, '', true))
  })
}

/** As many streams of events as a developer may hold, and more, over accounts whose mail changes all the time. */
const streams: Attack = async (stage) => {
  const users: Awaited<ReturnType<typeof userAt>>[] = []
  for (let n = 0; n < 13; n += 1) users.push(await userAt(stage, `streams-${n}`))
  const open = (n: number): Promise<Held> => {
    const id = users[n % users.length]?.id ?? ''
    return hold(stage.url, addressOf(n % 6), [`GET /lite/users/${id}/changes HTTP/1.1`, authorizationOf(stage)])
  }
  await Promise.all([
    stage.repeat('event streams', 5000, () => holdMany(400, 20_000, open)),
    stage.repeat('mail of streams', 500, () =>
      Promise.all(users.map(({ email }) => append(stage, email, benchMail(`s${Date.now()}`, email)))),
    ),
  ])
}

/** A receiver that answers without end. */
const endlessReceiver: Attack = async (stage) => {
  const { id, email } = await userAt(stage, 'receiver')
  const server = createServer((_request, response) => {
    response.writeHead(200)
    const more = setInterval(() => void response.write(Buffer.alloc(65_536, 'x')), 5)
    response.once('close', () => clearInterval(more))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const callback_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  for (let n = 0; n < 20; n += 1) await stage.client.ok('POST', `/lite/users/${id}/webhooks`, { callback_url })
  await stage.repeat('endless answers of a receiver', 1000, () =>
    append(stage, email, benchMail(`e${Date.now()}`, email)),
  )
  server.closeAllConnections()
}

/** A large body of small values, from many at the same moment. */
const manyValues: Attack = (stage) => {
  const body = JSON.stringify(Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`k${n}`, n])))
  const headers = { authorization: basicOf(stage.key, stage.secret), 'content-type': 'application/json' }
  return stage.repeat('bodies of many values', 2000, () =>
    Promise.all(
      Array.from({ length: 40 }, () => answered(say(`${stage.url}/lite/users`, { method: 'POST', headers, body }))),
    ),
  )
}

/** The largest list that is not divided into pages, asked for by many at the same moment. */
const tokenLists: Attack = async (stage) => {
  const body = { callback_url: 'https://app.example/done', first_name: 'n'.repeat(200), last_name: 'n'.repeat(200) }
  for (let n = 0; n < 1000; n += 1) await stage.client.ok('POST', '/lite/connect_tokens', body)
  const headers = { authorization: basicOf(stage.key, stage.secret) }
  await stage.repeat('lists of connect tokens', 20_000, () =>
    Promise.all(Array.from({ length: 60 }, () => answered(say(`${stage.url}/lite/connect_tokens`, { headers })))),
  )
}

/** A batch of mail to thousands of people, and a search for the last of them. */
const wideMail: Attack = async (stage) => {
  const { id, email } = await userAt(stage, 'wide')
  const client = await openRawImap({ ...stage.dovecot, user: email })
  await stage.repeat('mail to 5,000 people', 20_000, async () => {
    for (let n = 0; n < 30; n += 1) await client.append('INBOX', [mail({ to: fiveThousand, subject: `wide ${n}` })])
    await stage.client.list(`/lite/users/${id}/email_accounts/0/messages?to=aab999@host999.mallory.example`)
  })
}

/** End users of many links, in many browsers. */
const visits: Attack = async (stage) => {
  const links: string[] = []
  for (let n = 0; n < 20; n += 1) {
    const made = await stage.client.ok('POST', '/lite/connect_tokens', { callback_url: 'https://app.example/done' })
    links.push(String(made['browser_redirect_url']))
  }
  await stage.repeat('visits of the wizard', 2000, () =>
    Promise.all(links.map((link, n) => say(link, { from: addressOf(100 + (n % 50)) }))),
  )
}

/** Users are made until there may be no more. */
const crowd: Attack = (stage) =>
  stage.repeat('users without mail', 200, () => stage.client.ok('POST', '/lite/users', {}))

/** As many as there may be. */
const addresses: Attack = async (stage) => {
  const { id } = await userAt(stage, 'addresses')
  let n = 0
  await stage.repeat('addresses of an account', 50, () => {
    n += 1
    return stage.client.ok('POST', `/2.0/accounts/${id}/email_addresses`, { email_address: `a${n}@mallory.example` })
  })
}

const longPaths: Attack = (stage) => {
  const headers = { authorization: basicOf(stage.key, stage.secret) }
  return stage.repeat('paths of 30 kB', 500, () =>
    answered(say(`${stage.url}/lite/users/${'x'.repeat(30_000)}`, { headers, from: addressOf(220) })),
  )
}

/** Reads that no index bounds, at the same moment. */
const searches: Attack = (stage) => {
  const paths = ['subject=nowhere', 'from=sender.example&subject=nowhere', 'offset=40000', 'email=nobody@example.com']
  return stage.repeat('searches of a large mailbox', 2000, () =>
    Promise.all(paths.map((query) => stage.client.list(`${stage.large}/messages?${query}`))),
  )
}

export const tenant: readonly Attack[] = [
  filters,
  dryRuns,
  creations,
  slowReader,
  streams,
  endlessReceiver,
  manyValues,
  tokenLists,
  wideMail,
  visits,
  crowd,
  addresses,
  longPaths,
  searches,
]
