/**
 * The lite endpoints of the interface, and those that clients of the original use beyond it, row by row: each is
 * served, and is in the OpenAPI document with every parameter; each resource has every field. Prints the list.
 */
import { coverage, type Row } from '../core/coverage.ts'

const user = '/lite/users/{id}'
const EA = `${user}/email_accounts/{label}`
const inFolder = `${EA}/folders/{folder}/messages/{message_id}`
const inAccount = `${EA}/messages/{message_id}`

const mailbox =
  'email server username use_ssl port type password provider_refresh_token provider_consumer_key status_callback_url'
const filters =
  'filter_to filter_from filter_cc filter_subject filter_thread filter_file_name filter_folder_added filter_folder_removed filter_to_domain filter_from_domain'
const webhook = `callback_url failure_notif_url active ${filters} include_body body_search body_type include_header receive_all_changes receive_drafts receive_historical`
const token = 'callback_url email first_name last_name status_callback_url'
const contents = 'include_body include_headers include_flags body_search_string body_type'
const lists = `delimiter subject email to from cc bcc date_before date_after ${contents} sort_order limit offset`
const times = 'account_id timestamp_before timestamp_after status_code_from status_code_to limit offset'

const messageRows = (path: string): Row[] => [
  ['GET', path, `delimiter ${contents}`],
  ['GET', `${path}/attachments`, 'delimiter'],
  ['GET', `${path}/attachments/{attachment_id}`, 'delimiter as_link'],
  ['GET', `${path}/body`, 'delimiter type'],
  ['GET', `${path}/flags`, 'delimiter'],
  ['POST', `${path}/flags`, 'delimiter seen answered flagged deleted draft'],
  ['GET', `${path}/headers`, 'delimiter raw'],
  ['GET', `${path}/raw`, 'delimiter'],
  ['POST', `${path}/read`, 'delimiter'],
  ['DELETE', `${path}/read`, 'delimiter'],
]

const hookRows = (path: string): Row[] => [
  ['GET', path, ''],
  ['POST', path, webhook],
  ['GET', `${path}/{webhook_id}`, ''],
  ['POST', `${path}/{webhook_id}`, webhook],
  ['DELETE', `${path}/{webhook_id}`, ''],
]

const tables: Readonly<Record<string, readonly Row[]>> = {
  'users and email accounts': [
    ['GET', '/lite/users', 'email status status_ok limit offset'],
    ['POST', '/lite/users', `${mailbox} migrate_account_id first_name last_name`],
    ['DELETE', user, ''],
    ['DELETE', EA, ''],
    ['GET', user, ''],
    ['GET', `${user}/email_accounts`, 'status status_ok'],
    ['GET', EA, ''],
    ['POST', EA, 'status_callback_url'],
    ['POST', '/app/status_callback_url', 'status_callback_url'],
  ],
  'connect tokens': [
    ['POST', '/lite/connect_tokens', token],
    ['GET', '/lite/connect_tokens/{token}', ''],
    ['GET', '/lite/connect_tokens', ''],
    ['GET', `${user}/connect_tokens`, ''],
    ['GET', `${EA}/connect_tokens`, ''],
  ],
  folders: [
    ['GET', `${EA}/folders`, ''],
    ['POST', `${EA}/folders/{folder}`, 'delimiter'],
    ['GET', `${EA}/folders/{folder}`, 'delimiter'],
  ],
  messages: [
    ['GET', `${EA}/messages`, `${lists} folder`],
    ['GET', `${EA}/folders/{folder}/messages`, lists],
    ...messageRows(inAccount),
    ...messageRows(inFolder),
    ['PUT', inFolder, 'new_folder_id delimiter'],
  ],
  contacts: [
    ['GET', `${user}/contacts`, 'limit offset sort_order sort_by'],
    ['GET', `${user}/contacts/{contactid}`, ''],
  ],
  discovery: [['GET', '/lite/discovery', 'email list']],
  'OAuth providers': [
    ['GET', '/lite/oauth_providers', ''],
    ['POST', '/lite/oauth_providers', 'type provider_consumer_key provider_consumer_secret'],
    ['GET', '/lite/oauth_providers/{key}', ''],
    ['DELETE', '/lite/oauth_providers/{key}', ''],
  ],
  'webhooks, user level': hookRows(`${user}/webhooks`),
  'webhooks, application level': hookRows('/lite/webhooks'),
  'what clients use beyond the interface': [
    ['POST', user, 'first_name last_name status_callback_url'],
    ['PUT', user, 'first_name last_name status_callback_url'],
    ['POST', `${user}/email_accounts`, mailbox],
    ['POST', EA, `password provider_refresh_token provider_consumer_key status force_status_check`],
    ['GET', '/app/status_callback_url', ''],
    ['DELETE', '/app/status_callback_url', ''],
    ['DELETE', '/lite/connect_tokens/{token}', ''],
    ['DELETE', `${user}/connect_tokens/{token}`, ''],
    ['DELETE', `${EA}/connect_tokens/{token}`, ''],
    ['POST', `${user}/connect_tokens`, token],
    ['POST', `${EA}/connect_tokens`, token],
    ['GET', `${EA}/folders`, 'include_names_only'],
    ['GET', '/app/logs/webhooks', `webhook_id label kind state ${times}`],
    ['GET', '/app/logs/calls', `${times} request_method request_path`],
  ],
  'beyond the original': [
    ...[`${user}/webhooks/{webhook_id}`, '/lite/webhooks/{webhook_id}'].flatMap((path): Row[] => [
      ['GET', `${path}/deliveries`, 'state'],
      ['POST', `${path}/deliveries/{delivery_id}/redeliver`, ''],
      ['POST', `${path}/redeliver`, 'from to failed_only'],
      ['GET', `${path}/redeliver`, ''],
      ['POST', `${path}/test`, ''],
      ['GET', `${path}/dry_run`, 'limit user_id label'],
    ]),
    ['POST', '/app/logs/webhooks/{delivery_id}/redeliver', ''],
    ['GET', `${inAccount}/explain`, 'webhook_id'],
    ['GET', `${inFolder}/explain`, 'webhook_id'],
    ['GET', `${user}/changes`, 'since'],
  ],
}

const fields: Readonly<Record<string, string>> = {
  User: 'id email_accounts email_addresses created first_name last_name resource_url suspended password_expired username',
  EmailAccount:
    'server label username port use_ssl type authentication_type status status_message status_callback_url resource_url',
  ConnectToken:
    'token account_lite created used callback_url expires resource_url user email_account_id browser_redirect_url email first_name last_name serverLabel',
  Folder: 'name nb_messages nb_unseen_messages delimiter symbolic_name xlist_name resource_url',
  Message:
    'sent_at addresses subject message_id list_headers in_reply_to references attachments bodies received_headers folders resource_url email_message_id person_info flags headers mailhost_message_id mailhost_thread_id gmail_message_id gmail_thread_id',
  Attachment: 'size type body_section file_name content_disposition content_id attachment_id x_attachment_id encoding',
  BodyPart: 'body_section type encoding size content charset',
  Contact: 'email name total_count indirect_count direct_count last_received service_user_id contact_id',
  Discovery: 'email resource_url type imap documentation found',
  OAuthProvider: 'provider_consumer_key provider_consumer_secret type resource_url',
  Webhook: `webhook_id callback_url failure_notif_url active failure ${filters} resource_url developerId version`,
}

coverage('the lite interface', tables, fields)
