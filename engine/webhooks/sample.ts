/** The callback of POST …/webhooks/{id}/test: a made-up message in the webhook's own dialect and with its own options. */
import type { MessageRecord, WebhookRecord } from '../store/records.ts'
import type { Unsigned } from './envelope.ts'
import { type Contents, bodyUrl, messageData } from './message-data.ts'
import type { PayloadDeps } from './payload.ts'

const text = 'This is a test of your webhook. Nothing was received.'
const part = {
  section: '1',
  type: 'text/plain',
  charset: 'utf-8',
  encoding: '7bit',
  size: text.length,
  flowed: false,
  delSp: false,
}
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
  const bodies = [{ type: part.type, charset: part.charset, body_section: part.section }]
  const headers =
    webhook.includeHeader === 'raw'
      ? { headers: 'Subject: A test of your webhook\r\n\r\n' }
      : webhook.includeHeader === '1'
        ? { headers: { Subject: ['A test of your webhook'] } }
        : {}
  const texts = webhook.includeBody ? [{ part, text, bytes: text.length, whole: true }] : null
  return { bodies, texts, ...headers, truncated: false }
}

export function sampleCallback(webhook: WebhookRecord, deps: Pick<PayloadDeps, 'baseUrl' | 'now'>): Unsigned {
  const userId = webhook.userId ?? '0'.repeat(24)
  const facts = { first: true, path: 'INBOX', folderId, uid: 1, flags: [], folders: ['INBOX'] }
  const contents = sampleContents(webhook)
  const place = {
    dialect: webhook.version,
    baseUrl: deps.baseUrl(),
    account: { userId, label: 'ben::example' },
    message: sampleMessage(deps.now()),
  }
  const body = {
    account_id: userId,
    user_id: userId,
    webhook_id: webhook.id,
    test: true,
    message_data: messageData({
      ...place,
      folderName: (path) => path,
      facts,
      contents,
      messageType: webhook.receiveAllChanges ? 'created' : null,
    }),
  }
  return { body, texts: contents.texts?.map((one) => ({ ...one, link: bodyUrl(place, one.part) })) ?? null }
}
