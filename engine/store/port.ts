/**
 * The store port: one small asynchronous interface per aggregate. Each method is one whole business step; no driver type and
 * no transaction handle leaks out. SQLite runs a step in one transaction; MongoDB as ordered, idempotent writes with
 * deterministic ids and the cursor last, so that a crash at any point is mended by repeating the step.
 *
 * Errors: every method rejects with AppError `store_unavailable` when the database cannot be reached or is too slow;
 * others are named at the method. "null" answers mean "no such record".
 */
import type { ChangeStore, WebhookStore, OutboxStore } from './port/callbacks.ts'
import type { FolderStore, MessageStore, SyncStore } from './port/mail.ts'
import type {
  DeveloperStore,
  UserStore,
  AccountStore,
  ContactStore,
  TokenStore,
  ProviderStore,
  NonceStore,
  CallLogStore,
} from './port/owners.ts'

export type * from './port/callbacks.ts'
export type * from './port/mail.ts'
export type * from './port/owners.ts'

export interface Store {
  readonly kind: 'sqlite' | 'mongodb'
  readonly developers: DeveloperStore
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly folders: FolderStore
  readonly messages: MessageStore
  readonly sync: SyncStore
  readonly changes: ChangeStore
  readonly webhooks: WebhookStore
  readonly outbox: OutboxStore
  readonly contacts: ContactStore
  readonly tokens: TokenStore
  readonly providers: ProviderStore
  readonly nonces: NonceStore
  readonly calls: CallLogStore
  /**
   * Goes on with removals that were cut short, and takes away what is left of accounts, users and webhooks that are gone. Answers
   * how many rows went.
   */
  tidy(): Promise<number>
  /**
   * Resolves when the database takes a write, of a few bytes or of `room` bytes that are taken away again; else
   * `store_unavailable` within 5 s.
   */
  ping(room?: number): Promise<void>
  close(): Promise<void>
}
