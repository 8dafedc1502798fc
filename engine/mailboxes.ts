/**
 * Users and email accounts as whole business steps: checked first, tried against the mail server, then stored and
 * started. Nothing is half-created: what fails leaves no record.
 */
import type { Accounts } from './accounts/index.ts'
import type { Credential, ProbeFailure } from './accounts/types.ts'
import type { Config } from './config.ts'
import type { Developers } from './developers.ts'
import { providerName } from './discovery/providers.ts'
import { AppError, badParameter, isAppError, notFound } from './errors.ts'
import { openCredential, sealCredential } from './secrets/credentials.ts'
import type { Sealer } from './secrets/seal.ts'
import { newId } from './store/ids.ts'
import type { AccountPatch, Store } from './store/port.ts'
import type { AccountRecord, DeveloperRecord, SourceOptions, UserRecord } from './store/records.ts'
import { checkUrl } from './net/address.ts'
import type { Logger } from './observe/log.ts'
import { createUndo, type Undo } from './undo.ts'
import type { Webhooks } from './webhooks/types.ts'

export interface AccountInput {
  readonly email: string
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly username: string
  readonly credential: Credential
  /** null = none; absent = the user's. */
  readonly statusCallbackUrl?: string | null
  readonly options?: Partial<SourceOptions>
  /** Of a further account; made of the address and the provider when absent. `conflict` when it is taken. */
  readonly label?: string
}

export interface UserInput {
  readonly email?: string
  readonly firstName?: string
  readonly lastName?: string
  /** Of accounts that are added later. */
  readonly statusCallbackUrl?: string | null
  readonly account?: AccountInput
}

export type UserEdit = Pick<UserInput, 'firstName' | 'lastName' | 'statusCallbackUrl'>

/** The mail server said no: the soft failure of decisions.md. `log` has protocol lines, secrets masked. */
export interface ConnectFailure {
  readonly failure: ProbeFailure
  readonly message: string
  readonly log: string
}

export type Created<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & ConnectFailure)

/** null = remove; absent = leave. */
export interface AccountEdit {
  /** The user is found by it; the label stays. */
  readonly email?: string
  readonly statusCallbackUrl?: string | null
  readonly credential?: Credential
  readonly server?: string
  readonly port?: number
  readonly useSsl?: boolean
  readonly username?: string
  readonly options?: Partial<SourceOptions>
  /** status=1: forget the back-off and the DISABLED state, connect now. */
  readonly reset?: boolean
}

export type Mailboxes = ReturnType<typeof createMailboxes>

const defaultSourceOptions: SourceOptions = {
  syncFlags: true,
  syncAllFolders: false,
  expungeOnDeletedFlag: false,
  rawFileList: false,
  callbackUrl: null,
}

interface MailboxDeps {
  readonly config: Config
  readonly log: Logger
  readonly store: Store
  readonly sealer: Sealer
  readonly developers: Pick<Developers, 'setStatusCallbackUrl'>
  readonly accounts: Pick<Accounts, 'start' | 'stop' | 'view' | 'wake' | 'probe'>
  readonly webhooks: Pick<Webhooks, 'forget'>
}

interface Deps extends MailboxDeps {
  readonly undo: Undo
}

export function createMailboxes(given: MailboxDeps) {
  const { store, accounts, webhooks, log, config } = given
  // a step that the store has given up ends when its last request does
  const undo = createUndo(log, 2 * config.MAILROOM_STORE_TIMEOUT)
  const deps: Deps = { ...given, undo }
  return {
    /** Tries the login first. `bad_request` for a bad parameter, `private_address` for a host that is not public. */
    createUser: (developer: DeveloperRecord, input: UserInput) => createUser(deps, developer, input),
    createAccount: (developer: DeveloperRecord, user: UserRecord, input: AccountInput) =>
      createAccount(deps, developer, user, input),
    /**
     * New credentials or settings are tried first: a soft failure leaves the account as it was. Another host or
     * username is another mailbox: nothing that was read of the former one is served any more, all is read anew.
     */
    editAccount: async (developer: DeveloperRecord, account: AccountRecord, edit: AccountEdit) =>
      withAddress(store, account, await editAccount(deps, developer, account, edit)),

    /** A status callback URL is for accounts that are added from then on. */
    async editUser(user: UserRecord, edit: UserEdit): Promise<UserRecord> {
      await checkStatusUrl(deps, edit)
      const edited = await store.users.edit(user.id, edit)
      if (edited === null) throw notFound('user', user.id)
      return edited
    },

    async removeUser(user: UserRecord): Promise<void> {
      const owned = await store.accounts.listByUser(user.id)
      await Promise.all(owned.map((account) => accounts.stop(account.id)))
      // Again afterwards: an account may have come, or its actor may have started, while the others were stopped.
      const taken = await store.users.remove(user.id)
      await Promise.all([...new Set([...owned.map(({ id }) => id), ...taken])].map((id) => accounts.stop(id)))
      webhooks.forget(user.id)
    },

    async removeAccount(account: AccountRecord): Promise<void> {
      await accounts.stop(account.id)
      await store.accounts.remove(account.id)
      // Again: whoever created it may have started it after the first.
      await accounts.stop(account.id)
      webhooks.forget(account.userId)
      await forgetAddress(store, account)
    },

    async setStatusCallbackUrl(developer: DeveloperRecord, url: string | null): Promise<void> {
      await checkStatusUrl(deps, { statusCallbackUrl: url })
      await deps.developers.setStatusCallbackUrl(developer, url)
    },

    /** Takes nothing back any more. */
    close: () => undo.close(),
  }
}

async function checkStatusUrl(
  { config }: Pick<Deps, 'config'>,
  { statusCallbackUrl: url }: { readonly statusCallbackUrl?: string | null },
): Promise<void> {
  if (url) await checkUrl('status_callback_url', url, config.MAILROOM_ALLOW_PRIVATE)
}

/** The address of an account that is gone, or has another one: it stays when the user or another account has it. */
async function forgetAddress(store: Store, { developerId, userId, email }: AccountRecord): Promise<void> {
  const user = await store.users.get(developerId, userId)
  const [own, ...added] = user?.emailAddresses ?? []
  if (own === undefined || !added.includes(email)) return
  const others = await store.accounts.listByUser(userId)
  if (others.some((other) => other.email === email)) return
  await store.users.edit(userId, { emailAddresses: [own, ...added.filter((address) => address !== email)] })
  // Those of accounts that were made meanwhile.
  for (const other of await store.accounts.listByUser(userId)) await store.users.addAddress(userId, other.email)
}

/** The user's addresses follow that of the edited account. */
async function withAddress(
  store: Store,
  before: AccountRecord,
  edited: Created<AccountRecord>,
): Promise<Created<AccountRecord>> {
  if (!edited.ok || edited.value.email === before.email) return edited
  await store.users.addAddress(before.userId, edited.value.email)
  await forgetAddress(store, before)
  return edited
}

async function createUser(
  deps: Deps,
  developer: DeveloperRecord,
  input: UserInput,
): Promise<Created<{ readonly user: UserRecord; readonly account: AccountRecord | null }>> {
  const { users } = deps.store
  await checkStatusUrl(deps, input)
  const user = newUser(developer, input)
  if (input.account === undefined) {
    await deps.undo.creation({ userId: user.id }, users.create(user), () => users.remove(user.id))
    return { ok: true, value: { user, account: null } }
  }
  const tried = await tryMailbox(deps, developer, input.account)
  if (!tried.ok) return tried
  const account = newAccount(deps, user, input.account, labelOf(input.account))
  const facts = { userId: user.id, accountId: account.id }
  await deps.undo.creation(facts, users.createWithAccount(user, account), () => users.undoCreate(user.id, account.id))
  await startAccount(deps, account)
  return { ok: true, value: { user, account } }
}

function newUser(developer: DeveloperRecord, input: UserInput): UserRecord {
  const email = input.email ?? input.account?.email
  return {
    id: newId(),
    developerId: developer.id,
    firstName: input.firstName ?? '',
    lastName: input.lastName ?? '',
    emailAddresses: email === undefined ? [] : [email.toLowerCase()],
    ...(input.statusCallbackUrl ? { statusCallbackUrl: input.statusCallbackUrl } : {}),
    createdAt: Date.now(),
  }
}

async function createAccount(
  deps: Deps,
  developer: DeveloperRecord,
  user: UserRecord,
  input: AccountInput,
): Promise<Created<AccountRecord>> {
  const tried = await tryMailbox(deps, developer, input)
  if (!tried.ok) return tried
  const account = await storeAccount(deps, user, input)
  const added = deps.store.users.addAddress(user.id, account.email)
  await deps.undo.creation({ accountId: account.id }, added, async () => {
    await deps.accounts.stop(account.id)
    await deps.store.accounts.remove(account.id)
  })
  return { ok: true, value: account }
}

async function tryMailbox(deps: Deps, developer: DeveloperRecord, input: AccountInput): Promise<Created<null>> {
  await checkStatusUrl(deps, input)
  if (input.options?.callbackUrl)
    await checkUrl('callback_url', input.options.callbackUrl, deps.config.MAILROOM_ALLOW_PRIVATE)
  await checkProvider(deps, developer, input.credential)
  const probe = await deps.accounts.probe(developer.id, input, input.credential)
  if (probe.ok) return { ok: true, value: null }
  if (probe.failure === 'private_address')
    throw new AppError('private_address', `server: ${probe.message}`, { details: { parameter: 'server' } })
  return { ok: false, failure: probe.failure, message: probe.message, log: probe.log }
}

async function checkProvider(deps: Deps, developer: DeveloperRecord, credential: Credential): Promise<void> {
  if (credential.kind !== 'oauth2') return
  const provider = await deps.store.providers.get(developer.id, credential.providerKey)
  if (provider === null)
    throw badParameter('provider_consumer_key', 'is not registered; add it with POST /lite/oauth_providers first')
}

async function storeAccount(deps: Deps, user: UserRecord, input: AccountInput): Promise<AccountRecord> {
  const base = input.label ?? labelOf(input)
  const most = input.label === undefined ? 1000 : 1
  for (let copy = 1; copy <= most; copy += 1) {
    const account = newAccount(deps, user, input, copy === 1 ? base : `${base}::${copy}`)
    try {
      const creation = deps.store.accounts.create(account)
      await deps.undo.creation({ accountId: account.id }, creation, () => deps.store.accounts.remove(account.id))
    } catch (error) {
      if (isAppError(error, 'conflict')) continue
      throw error
    }
    await startAccount(deps, account)
    return account
  }
  throw new AppError('conflict', `label: ${base} is taken`)
}

function labelOf({ email, server }: AccountInput): string {
  const local = email.slice(0, email.lastIndexOf('@')).toLowerCase()
  return `${local || 'account'}::${providerName(server, email)}`
}

/**
 * A removal stops the actor once the account is gone. One that was through with that before the actor started is seen
 * here: the account is not there any more, and `not_found` is the answer.
 */
async function startAccount({ accounts, store, webhooks }: Deps, account: AccountRecord): Promise<void> {
  accounts.start(account)
  webhooks.forget(account.userId)
  // A database that does not answer now says nothing: the account was written.
  const gone = await store.accounts.get(account.id).then(
    (found) => found === null,
    () => false,
  )
  if (!gone) return
  await accounts.stop(account.id)
  throw notFound('user', account.userId)
}

function newAccount(deps: Deps, user: UserRecord, input: AccountInput, label: string): AccountRecord {
  const id = newId()
  return {
    id,
    developerId: user.developerId,
    userId: user.id,
    label,
    email: input.email.toLowerCase(),
    server: input.server,
    port: input.port,
    useSsl: input.useSsl,
    username: input.username,
    authType: input.credential.kind,
    sealedCredential: sealCredential(deps.sealer, id, input.credential),
    providerKey: input.credential.kind === 'oauth2' ? input.credential.providerKey : null,
    statusCallbackUrl:
      (input.statusCallbackUrl === undefined ? user.statusCallbackUrl : input.statusCallbackUrl) ?? null,
    options: { ...defaultSourceOptions, ...input.options },
    status: 'OK',
    statusMessage: null,
    statusVersion: 0,
    paused: false,
    resume: { attempt: 0, strikes: 0, retryAt: null, lastError: null, lastConnectedAt: null, initialSyncAt: null },
    everybodyCounted: true,
    epoch: 0,
    createdAt: Date.now(),
  }
}

async function editAccount(
  deps: Deps,
  developer: DeveloperRecord,
  account: AccountRecord,
  edit: AccountEdit,
): Promise<Created<AccountRecord>> {
  const settings = {
    server: edit.server ?? account.server,
    port: edit.port ?? account.port,
    useSsl: edit.useSsl ?? account.useSsl,
    username: edit.username ?? account.username,
  }
  const reconnects =
    edit.credential !== undefined ||
    [edit.server, edit.port, edit.useSsl, edit.username].some((value) => value !== undefined)
  const credential = edit.credential ?? openCredential(deps.sealer, account)
  const callbacks = { statusCallbackUrl: edit.statusCallbackUrl ?? null, options: edit.options ?? {} }
  if (reconnects) {
    const tried = await tryMailbox(deps, developer, { ...settings, email: account.email, credential, ...callbacks })
    if (!tried.ok) return tried
  } else await checkStatusUrl(deps, edit)
  const patch: AccountPatch = {
    ...(edit.email === undefined ? {} : { email: edit.email.toLowerCase() }),
    ...(reconnects ? settings : {}),
    ...(edit.credential === undefined ? {} : credentialPatch(deps.sealer, account.id, edit.credential)),
    ...(edit.statusCallbackUrl === undefined ? {} : { statusCallbackUrl: edit.statusCallbackUrl }),
    ...(edit.options === undefined ? {} : { options: { ...account.options, ...edit.options } }),
  }
  if (settings.server !== account.server || settings.username !== account.username) {
    return { ok: true, value: await replaceMailbox(deps, account, patch) }
  }
  const edited = await deps.store.accounts.edit(account.id, patch)
  if (edited === null) throw notFound('email account', account.label)
  if (reconnects || edit.reset === true) deps.accounts.wake(account.id)
  return { ok: true, value: edited }
}

/** No actor is at work meanwhile; afterwards one is, whatever came of it. */
async function replaceMailbox(deps: Deps, account: AccountRecord, patch: AccountPatch): Promise<AccountRecord> {
  const { accounts, store } = deps
  const since = await readUntil(deps, account)
  await accounts.stop(account.id)
  try {
    const edited = await store.sync.replaceMailbox(account.id, patch, since)
    if (edited === null) throw notFound('email account', account.label)
    await startAccount(deps, edited)
    // The others connect by themselves.
    if (edited.status === 'DISABLED') accounts.wake(account.id)
    return edited
  } catch (error) {
    const anew = { ...account, resume: { ...account.resume, initialSyncAt: null } }
    const stored = await store.accounts.get(account.id).catch(() => anew)
    if (stored !== null) accounts.start(stored)
    throw error
  }
}

/** All that had arrived by then has been read. */
async function readUntil({ accounts, store }: Deps, account: AccountRecord): Promise<number> {
  const now = Date.now()
  if (accounts.view(account.id)?.tags.includes('watching') === true) return now
  const inbox = await store.folders.byPath(account.id, 'INBOX')
  const cursor = inbox?.cursor ?? null
  return cursor === null ? now : Math.max(account.resume.lastConnectedAt ?? 0, cursor.syncedAt ?? cursor.comparedAt)
}

function credentialPatch(sealer: Sealer, accountId: string, credential: Credential): AccountPatch {
  return {
    sealedCredential: sealCredential(sealer, accountId, credential),
    authType: credential.kind,
    providerKey: credential.kind === 'oauth2' ? credential.providerKey : null,
  }
}
