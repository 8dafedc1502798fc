/**
 * The 2.0 endpoints of the interface, and those that clients use beyond it, row by row; and what each of them is
 * replaced by.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resourceRoutes } from '../../../api/app.ts'
import { coverage, document, type Row } from '../core/coverage.ts'

const account = '/2.0/accounts/{id}'
const source = `${account}/sources/{label}`

const mailbox = 'email server username use_ssl port type password provider_refresh_token provider_consumer_key'
const options = 'sync_all_folders expunge_on_deleted_flag raw_file_list callback_url status_callback_url'
const token =
  'callback_url email first_name last_name source_callback_url source_expunge_on_deleted_flag source_sync_all_folders source_sync_folders source_raw_file_list status_callback_url'
const contents = 'include_body include_headers include_flags body_type include_source'
const people = 'email to from cc bcc date_before date_after indexed_before indexed_after'
const lists = `subject ${people} ${contents} include_thread_size file_name file_size_min file_size_max sort_order limit offset`

const messageRows = (one: string): Row[] => [
  ['GET', one, contents],
  ['GET', `${one}/body`, 'type'],
  ['GET', `${one}/flags`, ''],
  ['GET', `${one}/headers`, 'raw'],
  ['GET', `${one}/source`, ''],
  ['GET', `${one}/folders`, ''],
  ['GET', `${one}/thread`, 'include_body limit offset'],
  ['GET', `${one}/files`, ''],
  ['POST', one, 'dst_folder dst_source move flag_seen flag_answered flag_flagged flag_deleted flag_draft'],
  ['DELETE', one, ''],
  ['POST', `${one}/flags`, 'seen answered flagged deleted draft'],
  ['POST', `${one}/folders`, 'add remove'],
  ['PUT', `${one}/folders`, 'folders'],
]

const filters =
  'filter_to filter_from filter_cc filter_subject filter_thread filter_file_name filter_folder_added filter_folder_removed filter_to_domain filter_from_domain'
const hook = `callback_url failure_notif_url active ${filters} include_body body_type include_header receive_all_changes receive_drafts`

const webhookRows = (base: string): Row[] => [
  ['GET', base, ''],
  ['POST', base, hook],
  ['GET', `${base}/{webhook_id}`, ''],
  ['POST', `${base}/{webhook_id}`, hook],
  ['DELETE', `${base}/{webhook_id}`, ''],
]

const tokenRows = (base: string): Row[] => [
  ['GET', base, ''],
  ['POST', base, token],
  ['GET', `${base}/{token}`, ''],
  ['DELETE', `${base}/{token}`, ''],
]

const providerRows = (base: string): Row[] => [
  ['GET', base, ''],
  ['POST', base, 'type provider_consumer_key provider_consumer_secret'],
  ['GET', `${base}/{key}`, ''],
  ['DELETE', `${base}/{key}`, ''],
]

const tables: Readonly<Record<string, readonly Row[]>> = {
  'accounts and sources': [
    ['POST', '/2.0/accounts', `${mailbox} ${options} first_name last_name`],
    ['POST', `${account}/sources`, `${mailbox} ${options} origin_ip`],
    ['DELETE', account, ''],
    ['DELETE', source, ''],
    ['GET', account, ''],
    ['GET', `${account}/sources`, 'status status_ok'],
    ['GET', source, ''],
  ],
  'connect tokens': [
    ...tokenRows('/2.0/connect_tokens'),
    ['GET', '/2.0/accounts/connect_tokens/{token}', ''],
    ...tokenRows(`${account}/connect_tokens`),
    ...tokenRows(`${source}/connect_tokens`),
  ],
  'messages and folders': [
    ['GET', `${account}/messages`, `${lists} folder source`],
    ['GET', `${source}/folders/{folder}/messages`, `delimiter ${lists} flag_seen body_search_string`],
    ...messageRows(`${account}/message/{message_id}`),
    ...messageRows(`${account}/messages/{message_id}`),
    ['GET', `${source}/folders`, 'include_extended_counts'],
    ['GET', `${source}/folders/{folder}`, 'delim include_extended_counts'],
    ['PUT', `${source}/folders/{folder}`, 'delim'],
    ['POST', `${source}/folders/{folder}`, 'delim'],
    ['DELETE', `${source}/folders/{folder}`, 'delim'],
    ['POST', `${source}/folders/{folder}/expunge`, 'delim'],
    ['POST', `${account}/messages`, 'dst_folder dst_source message flag_seen'],
  ],
  webhooks: [...webhookRows(`${account}/webhooks`), ...webhookRows('/2.0/webhooks')],
  'what clients use beyond the interface': [
    ['GET', '/2.0/accounts', 'email status status_ok limit offset'],
    ['POST', account, 'first_name last_name'],
    ['POST', source, `${options} password provider_refresh_token status force_status_check`],
    ['GET', `${account}/email_addresses`, ''],
    ['POST', `${account}/email_addresses`, 'email_address'],
    ['GET', `${account}/email_addresses/{email}`, ''],
    ['POST', `${account}/email_addresses/{email}`, 'primary'],
    ['DELETE', `${account}/email_addresses/{email}`, ''],
    ...[account, source].flatMap((base): Row[] => [
      ['GET', `${base}/sync`, ''],
      ['POST', `${base}/sync`, ''],
    ]),
    ['GET', `${account}/files`, `file_name file_size_min file_size_max ${people} source sort_order limit offset`],
    ['GET', `${account}/files/{file_id}`, ''],
    ['GET', `${account}/files/{file_id}/related`, 'limit offset'],
    ['GET', `${account}/files/{file_id}/revisions`, 'limit offset'],
    ['GET', `${account}/files/{file_id}/content`, 'as_link'],
    [
      'GET',
      `${account}/threads`,
      `subject ${people} activity_before activity_after started_before started_after folder source limit offset`,
    ],
    ['GET', `${account}/threads/{thread_id}`, 'include_body include_headers include_flags body_type limit offset'],
    ['DELETE', `${account}/threads/{thread_id}`, ''],
    ['GET', `${account}/threads/{thread_id}/folders`, ''],
    ['POST', `${account}/threads/{thread_id}/folders`, 'add remove'],
    ['PUT', `${account}/threads/{thread_id}/folders`, 'folders'],
    ['GET', `${account}/contacts`, 'search sort_by sort_order limit offset'],
    ['GET', `${account}/contacts/{email}`, ''],
    ['GET', `${account}/contacts/{email}/files`, 'limit offset'],
    ['GET', `${account}/contacts/{email}/messages`, 'limit offset'],
    ['GET', `${account}/contacts/{email}/threads`, 'limit offset'],
    ['GET', '/2.0/discovery', 'email list'],
    ...providerRows('/2.0/oauth_providers'),
    ...providerRows('/2.0/oauth_provider'),
  ],
}

const fields: Readonly<Record<string, string>> = {
  Account:
    'id created email_addresses first_name last_name nb_messages nb_files sources username suspended password_expired',
  Source:
    'server label username port use_ssl type authentication_type status status_message status_callback_url resource_url sync_flags callback_url sync_all_folders expunge_on_deleted_flag raw_file_list',
  ConnectToken20:
    'token created used callback_url expires resource_url account email serverLabel source_sync_all_folders source_expunge_on_deleted_flag source_raw_file_list browser_redirect_url',
  SourceFolder: 'name nb_messages nb_unseen_messages delimiter symbolic_name xlist_name resource_url delim attributes',
  Message20:
    'date date_received date_indexed addresses subject email_message_id message_id list_headers in_reply_to references files body received_headers folders sources resource_url flags headers thread_size person_info gmail_message_id gmail_thread_id',
  MessageFile:
    'size type body_section file_name content_disposition content_id attachment_id x_attachment_id encoding file_id file_name_structure main_file_name is_embedded resource_url',
}

coverage('the 2.0 interface', tables, fields)

test('every operation of 2.0 is deprecated, and names what is served instead', () => {
  const served = new Set(resourceRoutes.map(({ method, path }) => `${method} ${path.replaceAll('+}', '}')}`))
  const routes = resourceRoutes.filter(({ path }) => path.startsWith('/2.0/'))
  assert(routes.length > 70)
  for (const { method, path, instead, tag } of routes) {
    const at = `${method} ${path}`
    assert(instead !== undefined, at)
    if (instead !== '') assert(served.has(instead) && instead.includes(' /lite/'), `${at}: ${instead}`)
    assert.match(tag, /^2\.0 /, at)
    const operation = document.paths[path.replaceAll('+}', '}')]?.[method.toLowerCase()]
    assert.equal(operation?.deprecated, true, at)
    assert(operation.description.endsWith(instead === '' ? 'does the same.' : `\`${instead}\` instead.`), at)
  }
  const others = Object.entries(document.paths).filter(([path]) => !path.startsWith('/2.0/'))
  for (const [path, operations] of others)
    for (const operation of Object.values(operations)) assert.equal(operation.deprecated, undefined, path)
})
