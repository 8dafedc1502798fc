/**
 * Accounts and the batches their owners write, as the sync of ordinary mailboxes makes them: mail of a few
 * correspondents, two or three recipients, four Received headers, an attachment now and then. The same for both
 * contestants.
 */
import { changeId, contactId, folderId, messageId, newId, outboxId, threadId } from '../../../engine/store/ids.ts'
import type { AddedMessage, ChangeDraft, FlagUpdate, Store, SyncBatch } from '../../../engine/store/port.ts'
import type {
  AccountRecord,
  ContactDelta,
  FolderCursor,
  MessageFacts,
  OutboxRecord,
} from '../../../engine/store/records.ts'
import { freshCursor } from '../../../engine/store/rows.ts'
import { accountRecord, developerRecord, outboxRecord, userRecord } from '../../store/contract/records.ts'
import { listed } from '../../store/contract/mailbox.ts'

export interface Box {
  readonly number: number
  readonly account: AccountRecord
  readonly folderId: string
  /** Ids of what lies in the folder; UID n at n - 1. */
  readonly messages: string[]
  /** As both contestants have it after their last batch; null = never opened. */
  cursor: FolderCursor | null
}

export interface World {
  readonly boxes: readonly Box[]
  /** Channels that callbacks wait in. */
  readonly channels: readonly string[]
  /** Puts the people, accounts and folders into an empty store. */
  settle(store: Store): Promise<void>
}

const paths = ['INBOX', 'Archive', 'Sent', 'Trash']
const began = 1_700_000_000_000
const webhooks = 10

export function createWorld(accounts: number): World {
  const developer = developerRecord()
  const people = Array.from({ length: accounts }, () => {
    const user = userRecord(developer.id)
    return { user, account: accountRecord(user) }
  })
  return {
    boxes: people.map(({ account }, number) => ({
      number,
      account: { ...account, epoch: 1 },
      folderId: folderIdOf(account),
      messages: [],
      cursor: null,
    })),
    channels: Array.from({ length: webhooks }, () => newId()),
    async settle(store) {
      await store.developers.create(developer)
      for (const { user, account } of people) {
        await store.users.create(user)
        await store.accounts.create(account)
        await store.accounts.claim(account.id)
        await store.folders.reconcile(
          account.id,
          1,
          paths.map((path) => listed(path)),
          true,
        )
      }
    },
  }
}

function folderIdOf({ id }: AccountRecord): string {
  return folderId(id, 'INBOX')
}

function factsOf(box: Box, uid: number): MessageFacts {
  const { id, email } = box.account
  const number = box.number * 1_000_000 + uid
  const sender = `sender${number % 40}@company${number % 7}.example.com`
  const emailMessageId = `${number.toString(36)}.${began}@mail.example.com`
  const at = began + uid * 60_000 + (number % 59) * 1000
  const hop = (from: string): string =>
    `from ${from}.example.com (${from}.example.com [192.0.2.${number % 250}]) by mx${number % 3}.example.net with ESMTPS id ${number.toString(16)}; ${new Date(at).toUTCString()}`
  return {
    emailMessageId,
    hostedMessageId: null,
    hostedThreadId: null,
    threadId: threadId(id, String(Math.floor(number / 3))),
    sentAt: at,
    receivedAt: at + 2000,
    size: 4000 + (number % 5000),
    subject: `Re: Report number ${number} on the matters of last week`,
    addresses: {
      from: [{ name: `Sender ${number % 40}`, email: sender }],
      sender: [],
      replyTo: [],
      to: [{ name: 'The Reader', email }],
      cc: number % 3 === 0 ? [{ name: 'Colleague', email: `colleague${number % 5}@example.org` }] : [],
      bcc: [],
      returnPath: [{ name: '', email: sender }],
    },
    inReplyTo: number % 3 === 0 ? null : `${(number - 1).toString(36)}.${began}@mail.example.com`,
    references: number % 3 === 0 ? [] : [`${(number - 1).toString(36)}.${began}@mail.example.com`],
    listHeaders:
      number % 4 === 0 ? { 'list-id': '<news.example.com>', 'list-unsubscribe': '<mailto:off@example.com>' } : {},
    receivedHeaders: ['mx', 'relay', 'out', 'client'].map(hop),
    bodies: ['text/plain', 'text/html'].map((type, index) => ({
      section: `1.${index + 1}`,
      type,
      charset: 'utf-8',
      encoding: 'quoted-printable',
      size: 1500,
      flowed: false,
      delSp: false,
    })),
    attachments: number % 5 === 0 ? [attachment(number)] : [],
  }
}

function attachment(number: number): MessageFacts['attachments'][number] {
  return {
    index: 0,
    section: '2',
    type: 'application/pdf',
    encoding: 'base64',
    size: 80_000,
    fileName: `report-${number}.pdf`,
    disposition: 'attachment',
    contentId: null,
    embedded: false,
  }
}

function addedAt(box: Box, uid: number): AddedMessage {
  const facts = factsOf(box, uid)
  const identity = `mid:${String(facts.emailMessageId)}`
  const placement = {
    folderId: box.folderId,
    path: 'INBOX',
    uidValidity: '1',
    uid,
    flags: uid % 2 === 0 ? ['\\Seen'] : [],
    modseq: String(uid),
    rev: 0,
    quiet: false,
  }
  return { id: messageId(box.account.id, identity), identity, facts, placement, firstChangeId: null }
}

/** The cursor moves with every batch, as it does in earnest. */
function advance(box: Box): Pick<SyncBatch, 'cursorBefore' | 'cursorAfter'> {
  const cursorBefore = box.cursor
  const uidNext = box.messages.length + 1
  const modseq = String(Number(cursorBefore?.highestModseq ?? 0) + 1)
  box.cursor = { ...freshCursor('1'), uidNext, highestModseq: modseq, exists: box.messages.length, comparedAt: began }
  return { cursorBefore, cursorAfter: box.cursor }
}

function batchOf(box: Box, parts: Partial<SyncBatch>): SyncBatch {
  return {
    accountId: box.account.id,
    epoch: 1,
    folderId: box.folderId,
    ...advance(box),
    added: [],
    flagUpdates: [],
    vanished: [],
    vanishedAt: began,
    reported: [],
    changes: [],
    outbox: [],
    contacts: [],
    ...parts,
  }
}

function arrive(box: Box, count: number): AddedMessage[] {
  return Array.from({ length: count }, () => {
    const added = addedAt(box, box.messages.length + 1)
    box.messages.push(added.id)
    return added
  })
}

function received(box: Box, added: readonly AddedMessage[]): ContactDelta[] {
  return added.flatMap(({ id, facts }) =>
    facts.addresses.from.map(({ name, email }) => ({
      userId: box.account.userId,
      email,
      name,
      key: `${id}:r`,
      total: 1,
      direct: 0,
      indirect: 1,
      receivedAt: facts.receivedAt,
    })),
  )
}

/** A page of the back-fill: rows, contacts, cursor. */
export function backfill(box: Box, count: number): SyncBatch {
  const added = arrive(box, count)
  return batchOf(box, { added, contacts: received(box, added) })
}

/** New mail: each message with its change and one callback, the channels in turn. */
export function arrivals({ channels }: World, box: Box, count: number): SyncBatch {
  const fresh = arrive(box, count).map((one) => {
    const { folderId: folder, uidValidity, uid } = one.placement
    return { ...one, firstChangeId: changeId(box.account.id, folder, uidValidity, uid, 'added', 0) }
  })
  const changes = fresh.map((one) => changeOf(box, one.id, one.placement.uid, one.firstChangeId, 'received'))
  return batchOf(box, {
    added: fresh,
    changes,
    outbox: callbacks(channels, box, changes),
    contacts: received(box, fresh),
  })
}

/** Flags that others have set, from the oldest message on; each told. */
export function flagging({ channels }: World, box: Box, from: number, count: number): SyncBatch {
  const ids = box.messages.slice(from, from + count)
  const flagUpdates = ids.map((id, index): FlagUpdate => {
    return { messageId: id, uid: from + index + 1, flags: ['\\Flagged', '\\Seen'], modseq: '9000000', rev: 1 }
  })
  const changes = flagUpdates.map(({ messageId: id, uid }) => {
    return changeOf(box, id, uid, changeId(box.account.id, box.folderId, '1', uid, 'flags', 1), 'flags_changed')
  })
  return batchOf(box, { flagUpdates, changes, outbox: callbacks(channels, box, changes) })
}

function changeOf(box: Box, message: string, uid: number, id: string, kind: ChangeDraft['kind']): ChangeDraft {
  return {
    id,
    accountId: box.account.id,
    userId: box.account.userId,
    kind,
    first: kind === 'received',
    messageId: message,
    folderId: box.folderId,
    path: 'INBOX',
    uid,
    uidValidity: '1',
    flags: [],
    folders: ['INBOX'],
    at: began + uid,
  }
}

function callbacks(channels: readonly string[], box: Box, changes: readonly ChangeDraft[]): OutboxRecord[] {
  return changes.map((change, index) => {
    const channelId = channels[(box.number + index) % channels.length] ?? ''
    const { account } = box
    const facts = { userId: account.userId, accountId: account.id, messageId: change.messageId, changeId: change.id }
    const more = { ...facts, id: outboxId(channelId, change.id), event: change.kind, seq: 0, data: {} }
    return outboxRecord({ id: channelId, developerId: account.developerId }, more)
  })
}

/** Deltas of each contact together: what a writer without our mapping would be handed. */
export function byContact(deltas: readonly ContactDelta[]): Map<string, ContactDelta[]> {
  return Map.groupBy(deltas, ({ userId, email }) => contactId(userId, email))
}
