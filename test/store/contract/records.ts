/** Records that only the tests of the store make, and those of test/support. */
import { changeId, newId, newToken, outboxId } from '../../../engine/store/ids.ts'
import type {
  Address,
  AttachmentRecord,
  ConnectTokenRecord,
  DeliveryAttempt,
  MessageFacts,
  OutboxRecord,
  WebhookRecord,
} from '../../../engine/store/records.ts'
import type { ChangeDraft, OutboxResult } from '../../../engine/store/port.ts'
import { freshHealth } from '../../../engine/store/rows.ts'
import { address, epochStart, messageFacts, tick } from '../../support/records.ts'

export { accountRecord, developerRecord, userRecord } from '../../support/records.ts'
export { epochStart, messageFacts }

export function attachmentRecord(index: number, fileName = `file-${index}.pdf`): AttachmentRecord {
  return {
    index,
    section: String(index + 2),
    type: 'application/pdf',
    encoding: 'base64',
    size: 1000 + index,
    fileName,
    disposition: 'attachment',
    contentId: null,
    embedded: false,
  }
}

/** Facts with only these address lists filled. */
export function addressed(
  lists: Partial<Record<keyof MessageFacts['addresses'], readonly string[]>>,
  patch: Partial<MessageFacts> = {},
): MessageFacts {
  const list = (emails: readonly string[] = []): Address[] => emails.map((email) => address(email))
  return messageFacts({
    addresses: {
      from: list(lists.from),
      sender: list(lists.sender),
      replyTo: list(lists.replyTo),
      to: list(lists.to),
      cc: list(lists.cc),
      bcc: list(lists.bcc),
      returnPath: list(lists.returnPath),
    },
    ...patch,
  })
}

export function changeDraft(
  at: { readonly accountId: string; readonly userId: string; readonly folderId: string; readonly messageId: string },
  patch: Partial<ChangeDraft> = {},
): ChangeDraft {
  const uid = patch.uid ?? tick()
  return {
    id: changeId(at.accountId, at.folderId, '1', uid, 'added', 0),
    kind: 'received',
    first: true,
    path: 'INBOX',
    uid,
    uidValidity: '1',
    flags: [],
    folders: ['INBOX'],
    at: epochStart + tick(),
    ...at,
    ...patch,
  }
}

export function webhookRecord(developerId: string, patch: Partial<WebhookRecord> = {}): WebhookRecord {
  return {
    id: newId(),
    developerId,
    userId: null,
    version: 'lite',
    callbackUrl: 'https://receiver.example.com/hook',
    failureNotifUrl: null,
    active: true,
    filters: { subject: 'invoice' },
    includeBody: false,
    bodyType: null,
    includeHeader: null,
    receiveAllChanges: false,
    receiveDrafts: false,
    receiveHistorical: false,
    sealedSecrets: 'sealed',
    health: freshHealth,
    createdAt: epochStart + tick(),
    ...patch,
  }
}

export function outboxRecord(
  webhook: Pick<WebhookRecord, 'id' | 'developerId'>,
  patch: Partial<OutboxRecord> = {},
): OutboxRecord {
  const number = tick()
  const createdAt = patch.createdAt ?? epochStart + number
  return {
    id: outboxId(webhook.id, `event-${number}`),
    channelId: webhook.id,
    webhookId: webhook.id,
    developerId: webhook.developerId,
    userId: null,
    accountId: null,
    kind: 'message',
    lane: 0,
    seq: number,
    changeId: null,
    messageId: null,
    event: 'received',
    data: { folder: 'INBOX' },
    url: null,
    state: 'pending',
    createdAt,
    dueAt: createdAt,
    attemptCount: 0,
    attempts: [],
    finishedAt: null,
    reason: null,
    ...patch,
  }
}

export function tokenRecord(developerId: string, patch: Partial<ConnectTokenRecord> = {}): ConnectTokenRecord {
  const createdAt = epochStart + tick()
  return {
    token: newToken(),
    developerId,
    version: 'lite',
    userId: null,
    accountId: null,
    callbackUrl: 'https://app.example.com/done',
    email: null,
    firstName: null,
    lastName: null,
    statusCallbackUrl: null,
    options: null,
    createdAt,
    // in earnest: stores let old ones go by their own clock
    expiresAt: Date.now() + 86_400_000,
    usedAt: null,
    ...patch,
  }
}

export function attempt(patch: Partial<DeliveryAttempt> = {}): DeliveryAttempt {
  return { at: epochStart, durationMs: 12, status: 500, error: 'status', response: 'no', ...patch }
}

/** Of a first attempt that failed. */
export function result(row: OutboxRecord, patch: Partial<OutboxResult> = {}): OutboxResult {
  return {
    id: row.id,
    attempt: attempt(),
    state: 'pending',
    dueAt: row.dueAt,
    finishedAt: null,
    reason: null,
    ...patch,
  }
}
