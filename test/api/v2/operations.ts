/** Every operation of 2.0 once, with its good answer: for the test of the OpenAPI document. */
import { userBody } from '../../support/users.ts'
import type { Json, LiteRig, TestMailbox } from '../lite/rig.ts'

interface Call {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly body?: Json
}

/** One operation with its good answer, which is checked against the document. */
export type Drive = (method: string, template: string, call?: Call) => Promise<Json>

const account = '/2.0/accounts/{id}'
const source = `${account}/sources/{label}`

/** `message` = our id of a message of the mailbox with one attachment, a PDF; `from` its sender. */
export async function driveV2(
  rig: LiteRig,
  { box, message, from }: { readonly box: TestMailbox; readonly message: string; readonly from: string },
  drive: Drive,
): Promise<void> {
  await drivePeople(rig, box, drive)
  await driveMail(message, from, drive)
  for (const base of ['/2.0/connect_tokens', `${account}/connect_tokens`, `${source}/connect_tokens`]) {
    const body = { callback_url: 'http://localhost/done', email: 'new@mail.example', source_sync_all_folders: 1 }
    const path = { token: String((await drive('POST', base, { body }))['token']) }
    await drive('GET', base)
    await drive('GET', `${base}/{token}`, { path })
    if (base === '/2.0/connect_tokens') await drive('GET', '/2.0/accounts/connect_tokens/{token}', { path })
    await drive('DELETE', `${base}/{token}`, { path })
  }
  const callback_url = 'http://localhost/done'
  const token = String((await drive('POST', '/2.0/connect_tokens', { body: { callback_url } }))['token'])
  await drive('DELETE', '/2.0/accounts/connect_tokens/{token}', { path: { token } })
  await drive('GET', '/2.0/discovery', { query: { email: 'x@gmail.com', list: 1 } })
  for (const base of ['/2.0/oauth_providers', '/2.0/oauth_provider']) {
    const key = 'client/2'
    const body = { type: 'GMAIL_OAUTH2', provider_consumer_key: key, provider_consumer_secret: 'a-long-enough-secret' }
    await drive('POST', base, { body })
    await drive('GET', base)
    await drive('GET', `${base}/{key}`, { path: { key } })
    await drive('DELETE', `${base}/{key}`, { path: { key } })
  }
}

async function drivePeople(rig: LiteRig, box: TestMailbox, drive: Drive): Promise<void> {
  const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
  const [first, second] = ['made20@mail.example', 'more20@mail.example']
  for (const name of [first, second]) rig.imap.addUser(name)
  const made = await drive('POST', '/2.0/accounts', { body: userBody(server, first, { sync_all_folders: 1 }) })
  const path = { id: String(made['id']) }
  await drive('GET', '/2.0/accounts', { query: { email: first, status_ok: 1, limit: 5, offset: 0 } })
  await drive('GET', account, { path })
  await drive('POST', account, { path, body: { first_name: 'N' } })
  await drive('PUT', account, { path, body: { last_name: 'O' } })
  await drive('GET', `${account}/email_addresses`, { path })
  await drive('POST', `${account}/email_addresses`, { path, body: { email_address: second } })
  const address = { ...path, email: second }
  await drive('GET', `${account}/email_addresses/{email}`, { path: address })
  await drive('POST', `${account}/email_addresses/{email}`, { path: address, body: { primary: 1 } })
  await drive('DELETE', `${account}/email_addresses/{email}`, { path: address })
  const more = await drive('POST', `${account}/sources`, { path, body: userBody(server, second, { raw_file_list: 1 }) })
  await drive('GET', `${account}/sources`, { path, query: { status: 'OK' } })
  const own = { ...path, label: String(more['label']) }
  await drive('GET', source, { path: own })
  await drive('POST', source, { path: own, body: { expunge_on_deleted_flag: 1, status: 1, force_status_check: 1 } })
  await drive('DELETE', source, { path: own })
  await drive('DELETE', account, { path })
  for (const base of [account, source]) {
    await drive('GET', `${base}/sync`, { path: { label: box.label } })
    await drive('POST', `${base}/sync`, { path: { label: box.label } })
  }
}

async function driveMail(message: string, from: string, drive: Drive): Promise<void> {
  const contents = { include_body: 1, include_headers: 'raw', include_flags: 1, body_type: 'text/plain' }
  const beside = { include_source: 1, include_thread_size: 1 }
  const list = { ...contents, ...beside, subject: 'parts', from, date_after: '01/01/2001', sort_order: 'asc', limit: 1 }
  await drive('GET', `${account}/messages`, { query: { ...list, folder: '\\Inbox', source: '0' } })
  await drive('GET', `${source}/folders/{folder}/messages`, { query: { ...list, include_headers: '1' } })
  for (const one of [`${account}/message/{message_id}`, `${account}/messages/{message_id}`]) {
    await drive('GET', one, { query: { ...contents, ...beside } })
    await drive('GET', `${one}/body`, { query: { type: 'text/plain' } })
    await drive('GET', `${one}/headers`)
    await drive('GET', `${one}/headers`, { query: { raw: 1 } })
    await drive('GET', `${one}/source`)
    await drive('GET', `${one}/flags`)
    await drive('GET', `${one}/folders`)
    await drive('GET', `${one}/files`)
    await drive('GET', `${one}/thread`, { query: { include_body: 1, limit: 5, sort_order: 'desc' } })
  }
  await drive('GET', `${source}/folders`, { query: { include_extended_counts: 1 } })
  await drive('GET', `${source}/folders/{folder}`, { query: { delim: '/', include_extended_counts: 1 } })
  const named = { file_name: '*.pdf', file_size_min: 1, email: from, sort_order: 'asc', limit: 5 }
  await drive('GET', `${account}/files`, { query: named })
  const path = { file_id: `${message}-0`, email: from }
  await drive('GET', `${account}/files/{file_id}`, { path })
  for (const part of ['content', 'related', 'revisions'])
    await drive('GET', `${account}/files/{file_id}/${part}`, { path })
  await drive('GET', `${account}/files/{file_id}/content`, { path, query: { as_link: 1 } })
  const threads = (await drive('GET', `${account}/threads`, { query: { subject: 'parts' } })) as unknown as string[]
  const thread = { thread_id: threads[0]?.split('/').at(-1) ?? '' }
  await drive('GET', `${account}/threads/{thread_id}`, { path: thread, query: { include_headers: '1', limit: 1 } })
  await drive('GET', `${account}/contacts`, { query: { search: from, sort_by: 'received_count', limit: 5 } })
  await drive('GET', `${account}/contacts/{email}`, { path })
  for (const part of ['files', 'messages', 'threads'])
    await drive('GET', `${account}/contacts/{email}/${part}`, { path, query: { limit: 5 } })
}
