/** Records as the tests make them: whole, valid, and different from each other. */
import { newId } from '../../engine/store/ids.ts'
import type { AccountRecord, Address, DeveloperRecord, MessageFacts, UserRecord } from '../../engine/store/records.ts'
import { freshResume } from '../../engine/store/rows.ts'

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

export const noAddresses: MessageFacts['addresses'] = {
  from: [],
  sender: [],
  replyTo: [],
  to: [],
  cc: [],
  bcc: [],
  returnPath: [],
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
      ...noAddresses,
      from: [address('sender@example.com', 'Sender')],
      to: [address('reader@example.org')],
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
