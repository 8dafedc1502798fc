/**
 * Runs schemathesis against the real service with a small world in it: two mailboxes with mail of every kind, webhooks,
 * tokens, providers; on the store that MAILROOM_TEST_STORE names. The program is named by the first argument, more
 * arguments go to it. Ends with its exit status.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startReceiver } from '../callbacks.ts'
import { createImapServer, type ImapServer } from '../imap-server/index.ts'
import { mail } from '../mail.ts'
import { endsWithUs } from '../orphans.ts'
import { freePort } from '../port.ts'
import { apiKey, apiSecret, startService, type Json, type Service } from '../service.ts'
import { chosenStore } from '../store-choice.ts'
import { until } from '../until.ts'
import { createUser, createWebhook, listed, userBody } from '../users.ts'

const email = 'fuzz@mail.example'
const password = 'correct-horse'

const parts = '👋 parts'
const withAttachment = [
  'From: "=?utf-8?Q?J=C3=BCrgen?=" <j@sender.example>',
  `To: ${email}`,
  'Subject: =?utf-8?B?8J+RiyBwYXJ0cw==?=',
  'Message-ID: <parts/1@sender.example>',
  'In-Reply-To: <plain@sender.example>',
  'List-Id: <list.sender.example>',
  'Date: Mon, 06 May 2024 10:00:00 +0000',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: multipart/alternative; boundary=c',
  '',
  '--c',
  'Content-Type: text/plain; charset=iso-8859-1',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  'Gr=FC=DFe',
  '--c',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>Grüße</p>',
  '--c--',
  '--b',
  "Content-Type: application/pdf; name*=utf-8''%E2%82%AC.pdf",
  "Content-Disposition: attachment; filename*=utf-8''%E2%82%AC.pdf",
  'Content-Transfer-Encoding: base64',
  '',
  'JVBERi0=',
  '--b--',
  '',
].join('\r\n')

async function seed(service: Service, imap: ImapServer, receiver: string): Promise<Json> {
  const server = { host: imap.host, port: imap.port, password }
  const withinMs = 30_000
  const id = await until('the user', () => createUser(service, server, email, { first_name: 'Fuzz' }), { withinMs })
  await listed(service, id, 'plain')
  const accounts = `/lite/users/${id}/email_accounts`
  imap.addUser('spare@mail.example', { password })
  const spare = await until(
    'the spare account',
    async () => {
      const made = await service.ok('POST', accounts, userBody(server, 'spare@mail.example'))
      return made['success'] === true ? made : null
    },
    { withinMs },
  )
  await listed(service, id, parts)
  const found = await until('all folders read', () => service.list(`${accounts}/0/messages`))
  const message = found.find(({ subject }) => subject === parts)
  const hook = await createWebhook(service, id, receiver, { include_body: 1, receive_all_changes: 1 })
  await service.ok('POST', `/lite/users/${id}/webhooks/${hook}/test`)
  const app = String((await service.ok('POST', '/lite/webhooks', { callback_url: receiver }))['webhook_id'])
  const key = 'client/1'
  const secret = { provider_consumer_key: key, provider_consumer_secret: 'a-long-enough-secret' }
  await service.ok('POST', '/lite/oauth_providers', { type: 'GMAIL_OAUTH2', ...secret })
  const made = (path: string, name: string, body: Json): Promise<string[]> =>
    Promise.all([1, 2, 3].map(async () => String((await service.ok('POST', path, body))[name])))
  const token = { callback_url: 'http://localhost/done' }
  const hookBody = { callback_url: receiver }
  const [ofUser = ''] = await made(`${accounts}/0/connect_tokens`, 'token', token)
  const [ofApp = ''] = await made('/lite/connect_tokens', 'token', token)
  const hook20 = async (base: string): Promise<Json> => ({ webhook_id: (await made(base, 'webhook_id', hookBody))[0] })
  const deliveries = async (path: string): Promise<string> =>
    String((await service.list(`${path}/${hook}/deliveries`))[0]?.['delivery_id'])
  return {
    imap: { host: imap.host, port: imap.port, username: email, password },
    receiver,
    values: {
      id,
      label: '0',
      folder: 'INBOX',
      message_id: String(message?.['message_id']),
      attachment_id: '0',
      contactid: 'j@sender.example',
      email: 'j@sender.example',
      file_id: `${String(message?.['message_id'])}-0`,
      thread_id: String(await firstThread(service, id)),
      key,
      delivery_id: await deliveries(`/lite/users/${id}/webhooks`),
    },
    user: { webhook_id: hook, token: ofUser },
    application: { webhook_id: app, token: ofApp },
    v2: {
      user: await hook20(`/2.0/accounts/${id}/webhooks`),
      application: await hook20('/2.0/webhooks'),
    },
    spare: {
      users: await made('/lite/users', 'id', {}),
      label: String(spare['label']),
      user: {
        webhook_id: await made(`/lite/users/${id}/webhooks`, 'webhook_id', hookBody),
        token: await made(`/lite/users/${id}/connect_tokens`, 'token', token),
      },
      application: {
        webhook_id: await made('/lite/webhooks', 'webhook_id', hookBody),
        token: await made('/lite/connect_tokens', 'token', token),
      },
    },
  }
}

async function firstThread(service: Service, id: string): Promise<string | undefined> {
  const [address] = (await service.list(`/2.0/accounts/${id}/threads?limit=1`)) as unknown as string[]
  return address?.split('/').at(-1)
}

/** How much of the calls got through to real data. */
async function answersByStatus(url: string): Promise<string> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  const counts = new Map<string, number>()
  for (const line of metrics.split('\n')) {
    const [, status, count] = /^mailroom_api_calls_total\{.*status="(\d+)".*\} (\d+)$/.exec(line) ?? []
    if (status !== undefined) counts.set(status, (counts.get(status) ?? 0) + Number(count))
  }
  return [...counts]
    .sort()
    .map(([status, count]) => `${status}: ${count}`)
    .join(', ')
}

async function run(program: string, args: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'mailroom-fuzz-'))
  const receiver = await startReceiver()
  const imap = await createImapServer({ users: { [email]: { password } } })
  imap.createFolder(email, 'Reise/Österreich & mehr')
  imap.append(email, 'INBOX', mail({ to: email, subject: 'plain' }), ['\\Seen'])
  imap.append(email, 'INBOX', withAttachment, ['\\Flagged'])
  const store = chosenStore()
  const closed = `http://127.0.0.1:${await freePort()}/token`
  const service = await startService({
    env: {
      ...store.env,
      MAILROOM_CREATE_TIMEOUT: '2s',
      MAILROOM_REQUEST_TIMEOUT: '10s',
      MAILROOM_WEBHOOK_TIMEOUT: '2s',
      MAILROOM_OAUTH_TOKEN_URL_A: closed,
      MAILROOM_OAUTH_TOKEN_URL_B: closed,
    },
  })
  const started = service.log().length
  try {
    const world = join(folder, 'world.json')
    writeFileSync(world, JSON.stringify(await seed(service, imap, receiver.url)))
    const child = spawn(program, ['run', `${service.url}/openapi.json`, '--auth', `${apiKey}:${apiSecret}`, ...args], {
      cwd: folder,
      stdio: 'inherit',
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: folder,
        FUZZ_WORLD: world,
        SCHEMATHESIS_HOOKS: 'hooks',
        PYTHONPATH: import.meta.dirname,
        PYTHONDONTWRITEBYTECODE: '1',
      },
    })
    const disown = endsWithUs(() => child.kill())
    const [status] = (await once(child, 'exit')) as [number | null]
    disown()
    process.stdout.write(`answers by status: ${await answersByStatus(service.url)}\n`)
    // Not those of the start: it is asked for its readiness until it is ready.
    const failed = service
      .log()
      .slice(started)
      .split('\n')
      .filter((line) => line.includes('"api call failed"') || line.includes('uncaught'))
    for (const line of failed) process.stderr.write(`${line}\n`)
    return failed.length > 0 ? 1 : (status ?? 1)
  } finally {
    await service.remove()
    await store.remove()
    await imap.close()
    await receiver.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const [program, ...args] = process.argv.slice(2)
if (program === undefined) throw new Error('usage: world.ts <schemathesis> [arguments]')
process.exitCode = await run(program, args)
