/** Records as the tests make them: whole, valid, and different from each other. */
import { changeId, newId, newToken, outboxId } from '../../../engine/store/ids.ts'
import type {
  AccountRecord,
  Address,
  AttachmentRecord,
  ConnectTokenRecord,
  DeveloperRecord,
  MessageFacts,
  OutboxRecord,
  UserRecord,
  WebhookRecord,
} from '../../../engine/store/records.ts'
import type { ChangeDraft } from '../../../engine/store/port.ts'
import { freshHealth, freshResume } from '../../../engine/store/rows.ts'

/** A moment that all tests count from. */
export const epochStart = 1_700_000_000_000

let counter = 0
/** 1, 2, 3 … over the whole run: ages of records that must be told apart. */
export function tick(): number {
  counter += 1
  return counter
}

export function developerRecord(patch: Partial<DeveloperRecord> = {}): DeveloperRecord {
  const id = newId()
  return {
    id,
    apiKey: `key-${id}`,
    sealedSecret: 'sealed',
    statusCallbackUrl: null,
    createdAt: epochStart + tick(),
    ...patch,
  }
}

export function userRecord(developerId: string, patch: Partial<UserRecord> = {}): UserRecord {
  const id = newId()
  return {
    id,
    developerId,
    firstName: 'Ada',
    lastName: 'Byron',
    emailAddresses: [`${id}@example.com`],
    createdAt: epochStart + tick(),
    ...patch,
  }
}

export function accountRecord(
  user: Pick<UserRecord, 'id' | 'developerId'>,
  patch: Partial<AccountRecord> = {},
): AccountRecord {
  const id = newId()
  return {
    id,
    developerId: user.developerId,
    userId: user.id,
    label: `${id}::example`,
    email: `${id}@mail.example.com`,
    server: 'imap.example.com',
    port: 993,
    useSsl: true,
    username: id,
    authType: 'password',
    sealedCredential: 'sealed',
    providerKey: null,
    statusCallbackUrl: null,
    options: {
      syncFlags: true,
      syncAllFolders: false,
      expungeOnDeletedFlag: false,
      rawFileList: false,
      callbackUrl: null,
    },
    status: 'OK',
    statusMessage: null,
    statusVersion: 0,
    paused: false,
    resume: freshResume,
    epoch: 0,
    createdAt: epochStart + tick(),
    ...patch,
  }
}

export function address(email: string, name = ''): Address {
  return { name, email }
}

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

export function messageFacts(patch: Partial<MessageFacts> = {}): MessageFacts {
  const number = tick()
  return {
    emailMessageId: `m${number}@example.com`,
    hostedMessageId: null,
    hostedThreadId: null,
    threadId: number.toString(16).padStart(16, '0'),
    sentAt: epochStart + number * 1000,
    receivedAt: epochStart + number * 1000,
    size: 2000,
    subject: `Message ${number}`,
    addresses: {
      from: [address('sender@example.com', 'Sender')],
      sender: [],
      replyTo: [],
      to: [address('reader@example.org')],
      cc: [],
      bcc: [],
      returnPath: [],
    },
    inReplyTo: null,
    references: [],
    listHeaders: {},
    receivedHeaders: ['from a by b'],
    bodies: [
      { section: '1', type: 'text/plain', charset: 'utf-8', encoding: '7bit', size: 10, flowed: false, delSp: false },
    ],
    attachments: [],
    ...patch,
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
    expiresAt: createdAt + 86_400_000,
    usedAt: null,
    ...patch,
  }
}
