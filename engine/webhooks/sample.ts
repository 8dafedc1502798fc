/** The callback of POST …/webhooks/{id}/test: a made-up message in the webhook's own dialect and with its own options. */
import type { MessageRecord, WebhookRecord } from '../store/records.ts'
import type { Body } from './envelope.ts'
import type { Contents } from './message-data.ts'
import { messageData } from './message-data.ts'
import type { PayloadDeps } from './payload.ts'

const text = 'This is a test of your webhook. Nothing was received.'
const ada = { name: 'Ada Example', email: 'ada@example.com' }
const ben = { name: 'Ben Example', email: 'ben@example.org' }
const folderId = '0'.repeat(24)

function sampleMessage(now: number): MessageRecord {
  return {
    id: '0'.repeat(24),
    accountId: '0'.repeat(24),
    identity: 'mid:test@example.com',
    emailMessageId: 'test@example.com',
    hostedMessageId: null,
    hostedThreadId: null,
    threadId: '0'.repeat(16),
    sentAt: now,
    receivedAt: now,
    size: 1024,
    subject: 'A test of your webhook',
    addresses: { from: [ada], sender: [], replyTo: [], to: [ben], cc: [], bcc: [], returnPath: [{ ...ada, name: '' }] },
    inReplyTo: null,
    references: [],
    listHeaders: {},
    receivedHeaders: [],
    bodies: [],
    attachments: [],
    firstChangeId: null,
    indexedAt: now,
    placements: [{ folderId, path: 'INBOX', uidValidity: '1', uid: 1, flags: [], modseq: '0', rev: 0, quiet: false }],
    gone: [],
  }
}

function sampleContents(webhook: WebhookRecord): Contents {
  const named = { type: 'text/plain', charset: 'utf-8', body_section: '1' }
  const headers =
    webhook.includeHeader === 'raw'
      ? { headers: 'Subject: A test of your webhook\r\n\r\n' }
      : webhook.includeHeader === '1'
        ? { headers: { Subject: ['A test of your webhook'] } }
        : {}
  return { bodies: [webhook.includeBody ? { ...named, content: text } : named], ...headers, truncated: false }
}

export function sampleBody(webhook: WebhookRecord, deps: Pick<PayloadDeps, 'baseUrl' | 'now'>): Body {
  const userId = webhook.userId ?? '0'.repeat(24)
  const facts = { first: true, path: 'INBOX', folderId, uid: 1, flags: [], folders: ['INBOX'] }
  return {
    account_id: userId,
    user_id: userId,
    webhook_id: webhook.id,
    test: true,
    message_data: messageData({
      dialect: webhook.version,
      baseUrl: deps.baseUrl(),
      account: { userId, label: 'ben::example' },
      folderName: (path) => path,
      message: sampleMessage(deps.now()),
      facts,
      contents: sampleContents(webhook),
      messageType: webhook.receiveAllChanges ? 'created' : null,
    }),
  }
}
