/** One email account in the store, with folders, and the batches that its owner would write. */
import assert from 'node:assert/strict'
import { isAppError, type ErrorCode } from '../../../engine/errors.ts'
import { changeId, folderId, messageId, outboxId, newId } from '../../../engine/store/ids.ts'
import type { AddedMessage, Applied, ListedFolder, Store, SyncBatch } from '../../../engine/store/port.ts'
import type {
  AccountRecord,
  ChangeKind,
  DeveloperRecord,
  FolderCursor,
  FolderRecord,
  MessageFacts,
  MessageRecord,
  Placement,
  UserRecord,
} from '../../../engine/store/records.ts'
import { freshCursor } from '../../../engine/store/rows.ts'
import {
  accountRecord,
  changeDraft,
  developerRecord,
  epochStart,
  messageFacts,
  outboxRecord,
  userRecord,
} from './records.ts'

/** What the suite is run on. One store for all tests: each makes its own developer, user and account. */
export interface Subject {
  readonly store: Store
  /** The store's own time. */
  readonly clock: { now: number }
}

export function listed(path: string, patch: Partial<ListedFolder> = {}): ListedFolder {
  return {
    path,
    delimiter: '/',
    attributes: ['\\HasNoChildren'],
    specialUse: path === 'INBOX' ? '\\Inbox' : null,
    selectable: true,
    messages: 0,
    unseen: 0,
    ...patch,
  }
}

export interface Mailbox {
  readonly developer: DeveloperRecord
  readonly user: UserRecord
  readonly account: AccountRecord
  folder(path: string): Promise<FolderRecord>
  /** A batch that changes nothing, on the cursor as it is now, with the patch over it. */
  batch(path: string, patch?: Partial<SyncBatch>): Promise<SyncBatch>
  apply(path: string, patch?: Partial<SyncBatch>): Promise<Applied>
  added(path: string, uid: number, patch?: Partial<MessageFacts>, placed?: Partial<Placement>): AddedMessage
  /** Back-fills messages into a folder, UIDs 1, 2 … ; answers their ids. */
  fill(path: string, facts: readonly MessageFacts[]): Promise<string[]>
  message(id: string): Promise<MessageRecord>
  /** The change and the outbox row of an arrival. */
  event(added: AddedMessage, kind?: ChangeKind, webhookId?: string): Pick<SyncBatch, 'changes' | 'outbox'>
}

export async function createMailbox(
  store: Store,
  patch: { readonly folders?: readonly string[]; readonly user?: UserRecord } = {},
): Promise<Mailbox> {
  const developer = developerRecord()
  await store.developers.create(developer)
  const user = patch.user ?? userRecord(developer.id)
  if (!patch.user) await store.users.create(user)
  const created = accountRecord(user)
  await store.accounts.create(created)
  const account = await store.accounts.claim(created.id)
  assert(account)
  const paths = patch.folders ?? ['INBOX', 'Archive', 'Trash']
  await store.folders.reconcile(
    account.id,
    account.epoch,
    paths.map((path) => listed(path)),
    true,
  )
  return mailboxOf(store, developer, user, account)
}

/** Stored. */
export async function createUser(store: Store, developerId = newId()): Promise<UserRecord> {
  const user = userRecord(developerId)
  await store.users.create(user)
  return user
}

function mailboxOf(store: Store, developer: DeveloperRecord, user: UserRecord, account: AccountRecord): Mailbox {
  let uid = 0
  const folder = async (path: string): Promise<FolderRecord> => {
    const found = await store.folders.byPath(account.id, path)
    assert(found, `folder ${path}`)
    return found
  }
  const batch: Mailbox['batch'] = async (path, patch = {}) => {
    const { id, cursor } = await folder(path)
    return { ...emptyBatch(account, id, cursor), ...patch }
  }
  const added: Mailbox['added'] = (path, at, patch = {}, placed = {}) =>
    addedMessage(account.id, path, at, messageFacts(patch), placed)
  return {
    developer,
    user,
    account,
    folder,
    batch,
    apply: async (path, patch) => store.sync.apply(await batch(path, patch)),
    added,
    fill: async (path, facts) => {
      const rows = facts.map((one) => addedMessage(account.id, path, (uid += 1), one, {}))
      await store.sync.apply(await batch(path, { added: rows }))
      return rows.map((row) => row.id)
    },
    message: async (id) => {
      const found = await store.messages.get(account.id, id)
      assert(found, `message ${id}`)
      return found
    },
    event: (one, kind = 'received', webhookId = 'f'.repeat(24)) => eventOf(user, account, one, kind, webhookId),
  }
}

function addedMessage(
  accountId: string,
  path: string,
  uid: number,
  facts: MessageFacts,
  placed: Partial<Placement>,
): AddedMessage {
  const identity = `mid:${facts.emailMessageId ?? String(facts.sentAt)}`
  const place = {
    folderId: folderId(accountId, path),
    path,
    uidValidity: '1',
    uid,
    flags: [],
    modseq: '0',
    rev: 0,
    quiet: false,
    ...placed,
  }
  return { id: messageId(accountId, identity), identity, facts, placement: place, firstChangeId: null }
}

function eventOf(
  user: UserRecord,
  account: AccountRecord,
  added: AddedMessage,
  kind: ChangeKind,
  webhookId: string,
): Pick<SyncBatch, 'changes' | 'outbox'> {
  const { folderId: id, path, uid, uidValidity, flags } = added.placement
  const what = kind === 'deleted' || kind === 'folder_removed' ? 'removed' : 'added'
  const change = changeDraft(
    { accountId: account.id, userId: user.id, folderId: id, messageId: added.id },
    { id: changeId(account.id, id, uidValidity, uid, what, 0), kind, path, uid, uidValidity, flags, folders: [path] },
  )
  const row = outboxRecord(
    { id: webhookId, developerId: account.developerId },
    {
      id: outboxId(webhookId, change.id),
      accountId: account.id,
      userId: user.id,
      messageId: added.id,
      changeId: change.id,
      seq: 0,
    },
  )
  return { changes: [change], outbox: [row] }
}

/** A batch that changes nothing. */
export function emptyBatch(account: AccountRecord, id: string, cursor: FolderCursor | null): SyncBatch {
  return {
    accountId: account.id,
    epoch: account.epoch,
    folderId: id,
    cursorBefore: cursor,
    cursorAfter: cursor ?? freshCursor('1'),
    added: [],
    flagUpdates: [],
    vanished: [],
    vanishedAt: epochStart,
    reported: [],
    changes: [],
    outbox: [],
    contacts: [],
  }
}

/** The promise must reject with an AppError of this code. */
export async function rejectsWith(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  await assert.rejects(work, (error) => {
    assert(isAppError(error, code), `expected ${code}, got ${String(error)}`)
    return true
  })
}

/** Numbers that a test puts into a cursor. */
export function moved(cursor: FolderCursor | null, patch: Partial<FolderCursor>): FolderCursor {
  return { ...(cursor ?? freshCursor('1')), ...patch }
}
