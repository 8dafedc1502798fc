/**
 * Creates, edits and removes users and email accounts. A step checks its input, tries the login at the mail server, and
 * then stores and starts the account. A failed creation leaves no record.
 */
import type { Accounts } from './accounts/index.ts'
import type {
  AccountEdit,
  AccountInput,
  ConnectSteps,
  Created,
  Credential,
  UserEdit,
  UserInput,
} from './accounts/types.ts'
import type { Config } from './config.ts'
import type { Developers } from './developers.ts'
import { providerName } from './discovery/providers.ts'
import { AppError, badParameter, checkLimit, isAppError, notFound } from './errors.ts'
import { keepRotated, openCredential, sealCredential, type Sealer } from './secrets/seal.ts'
import { newId } from './store/ids.ts'
import { freshResume } from './store/rows.ts'
import { newUserId } from './store/slots.ts'
import type { AccountPatch, Store } from './store/port.ts'
import type { AccountRecord, DeveloperRecord, SourceOptions, UserRecord } from './store/records.ts'
import { checkUrl } from './net/address.ts'
import type { Undo } from './creation-undo.ts'
import { checkAddress, forgetAddress } from './user-addresses.ts'
import { createExclusiveByKey } from './scheduling.ts'
import type { Webhooks } from './webhooks/index.ts'

export type Mailboxes = ReturnType<typeof createMailboxes>

export const defaultSourceOptions: SourceOptions = {
  syncFlags: true,
  syncAllFolders: false,
  expungeOnDeletedFlag: false,
  rawFileList: false,
  callbackUrl: null,
}

interface Given {
  readonly config: Config
  readonly store: Store
  readonly sealer: Sealer
  readonly developers: Pick<Developers, 'setStatusCallbackUrl'>
  readonly accounts: Pick<Accounts, 'start' | 'stop' | 'view' | 'wake' | 'probe'>
  readonly webhooks: Pick<Webhooks, 'forget'>
  readonly undo: Undo
}

interface Deps extends Given {
  /** Writes of edits of one email account, one after the other. */
  readonly inOrder: ReturnType<typeof createExclusiveByKey>
}

export function createMailboxes(given: Given) {
  const deps: Deps = { ...given, inOrder: createExclusiveByKey() }
  const { store, accounts, webhooks } = deps
  return {
    /** Tries the login. `bad_request` for a bad parameter, `private_address` for a host that is not public. */
    createUser: (developer: DeveloperRecord, input: UserInput, steps: ConnectSteps = {}) =>
      createUser(deps, developer, input, steps),
    createAccount: (user: UserRecord, input: AccountInput, steps: ConnectSteps = {}) =>
      createAccount(deps, user, input, steps),
    /**
     * Tries new credentials or login settings; a soft failure leaves the account as it was. Another host or username is
     * another mailbox: mail of the former one is not served any more, and the new one is read from the start.
     * `conflict` when another edit has written other login settings during the trial.
     */
    async editAccount(
      account: AccountRecord,
      edit: AccountEdit,
      steps: ConnectSteps = {},
    ): Promise<Created<AccountRecord>> {
      if (edit.email !== undefined) {
        const user = await store.users.get(account.developerId, account.userId)
        checkAddress(deps.config, user?.emailAddresses ?? [], edit.email)
      }
      const edited = await editAccount(deps, account, edit, steps)
      if (edited.ok && edited.value.email !== account.email) {
        await store.users.addAddress(account.userId, edited.value.email)
        await forgetAddress(store, account)
      }
      return edited
    },

    /** A status callback URL applies to accounts that are added later. */
    async editUser(user: UserRecord, edit: UserEdit): Promise<UserRecord> {
      await checkStatusUrl(deps, edit)
      const edited = await store.users.edit(user.id, edit)
      if (edited === null) throw notFound('user', user.id)
      return edited
    },

    async removeUser(user: UserRecord): Promise<void> {
      const owned = await store.accounts.listByUser(user.id)
      await Promise.all(owned.map((account) => accounts.stop(account.id)))
      // Stops all again: an account may have been added, or its actor started, since the first stop.
      const taken = await store.users.remove(user.id)
      await Promise.all([...new Set([...owned.map(({ id }) => id), ...taken])].map((id) => accounts.stop(id)))
      webhooks.forget(user.id)
    },

    async removeAccount(account: AccountRecord): Promise<void> {
      await accounts.stop(account.id)
      await store.accounts.remove(account.id)
      // Again: the call that created the account may have started it after the first stop.
      await accounts.stop(account.id)
      webhooks.forget(account.userId)
      await forgetAddress(store, account)
    },

    async setStatusCallbackUrl(developer: DeveloperRecord, url: string | null): Promise<void> {
      await checkStatusUrl(deps, { statusCallbackUrl: url })
      await deps.developers.setStatusCallbackUrl(developer, url)
    },
  }
}

async function checkStatusUrl(
  { config }: Pick<Deps, 'config'>,
  { statusCallbackUrl: url }: { readonly statusCallbackUrl?: string | null },
): Promise<void> {
  if (url) await checkUrl('status_callback_url', url, config.MAILROOM_ALLOW_PRIVATE)
}

async function createUser(
  deps: Deps,
  developer: DeveloperRecord,
  input: UserInput,
  steps: ConnectSteps,
): Promise<Created<{ readonly user: UserRecord; readonly account: AccountRecord | null }>> {
  const { users } = deps.store
  const there = await users.count(developer.id)
  checkLimit(deps.config, 'MAILROOM_USERS_PER_DEVELOPER', 'users of one developer', there)
  await checkStatusUrl(deps, input)
  const user = newUser(developer, input, newUserId(deps.store.nodes))
  if (input.account === undefined) {
    await deps.undo.creation({ userId: user.id }, users.create(user), () => users.remove(user.id))
    return { ok: true, value: { user, account: null } }
  }
  const tried = await tryMailbox(deps, user, input.account, steps)
  if (!tried.ok) return tried
  const account = newAccount(deps, user, tried.value, { id: newId(), label: labelOf(input.account) })
  const facts = { userId: user.id, accountId: account.id }
  await steps.claim?.(facts)
  await deps.undo.creation(facts, users.createWithAccount(user, account), async () => {
    await users.undoCreate(user.id, account.id)
    await steps.takenBack?.()
  })
  await startAccount(deps, account)
  return { ok: true, value: { user, account } }
}

function newUser(developer: DeveloperRecord, input: UserInput, id: string): UserRecord {
  const email = input.email ?? input.account?.email
  return {
    id,
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
  user: UserRecord,
  input: AccountInput,
  steps: ConnectSteps,
): Promise<Created<AccountRecord>> {
  checkAddress(deps.config, user.emailAddresses, input.email)
  const tried = await tryMailbox(deps, user, input, steps)
  if (!tried.ok) return tried
  const id = newId()
  await steps.claim?.({ userId: user.id, accountId: id })
  const account = await storeAccount(deps, user, tried.value, id, steps)
  const added = deps.store.users.addAddress(user.id, account.email)
  await deps.undo.creation({ accountId: id }, added, async () => {
    await deps.accounts.stop(id)
    await deps.store.accounts.remove(id)
    await steps.takenBack?.()
  })
  return { ok: true, value: account }
}

async function checkUrls(deps: Deps, edit: Pick<AccountEdit, 'statusCallbackUrl' | 'options'>): Promise<void> {
  await checkStatusUrl(deps, edit)
  const url = edit.options?.callbackUrl
  if (url) await checkUrl('callback_url', url, deps.config.MAILROOM_ALLOW_PRIVATE)
}

/**
 * Tries the login, and returns the input with the credential after it, which the provider may have rotated. `owner`:
 * the account whose stored credential is tried; it stores a rotated credential even when the login fails. The session
 * stays open when the account is one of this node.
 */
async function tryMailbox(
  deps: Deps,
  { id, developerId }: Pick<UserRecord, 'id' | 'developerId'>,
  input: AccountInput,
  { onStep }: ConnectSteps,
  owner: AccountRecord | null = null,
): Promise<Created<AccountInput>> {
  await checkUrls(deps, input)
  if (input.credential.kind === 'oauth2') {
    const provider = await deps.store.providers.get(developerId, input.credential.providerKey)
    if (provider === null)
      throw badParameter('provider_consumer_key', 'is not registered; add it with POST /lite/oauth_providers first')
  }
  const onRotated = owner === null ? undefined : (newest: Credential) => keepRotated(deps, owner, newest)
  const staysOpen = deps.store.nodes.owns(id)
  const probe = await deps.accounts.probe(developerId, input, input.credential, { onStep, onRotated, staysOpen })
  const { rotated: credential = input.credential } = probe
  if (probe.ok) return { ok: true, value: { ...input, credential } }
  if (probe.failure === 'private_address')
    throw new AppError('private_address', `server: ${probe.message}`, { details: { parameter: 'server' } })
  return { ok: false, failure: probe.failure, message: probe.message, log: probe.log }
}

async function storeAccount(
  deps: Deps,
  user: UserRecord,
  input: AccountInput,
  id: string,
  steps: ConnectSteps,
): Promise<AccountRecord> {
  const base = input.label ?? labelOf(input)
  const most = input.label === undefined ? 1000 : 1
  for (let copy = 1; copy <= most; copy += 1) {
    const account = newAccount(deps, user, input, { id, label: copy === 1 ? base : `${base}::${copy}` })
    try {
      await deps.undo.creation({ accountId: id }, deps.store.accounts.create(account), async () => {
        await deps.store.accounts.remove(id)
        await steps.takenBack?.()
      })
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

/** Starts the actor. `not_found` when the account was removed meanwhile, because then no removal stops the actor. */
async function startAccount({ accounts, store, webhooks }: Deps, account: AccountRecord): Promise<void> {
  accounts.start(account)
  webhooks.forget(account.userId)
  // Without an answer of the store the account counts as there, since it was written.
  const gone = await store.accounts.get(account.id).then(
    (found) => found === null,
    () => false,
  )
  if (!gone) return
  await accounts.stop(account.id)
  throw notFound('user', account.userId)
}

function newAccount(
  deps: Deps,
  user: UserRecord,
  input: AccountInput,
  { id, label }: Pick<AccountRecord, 'id' | 'label'>,
): AccountRecord {
  const createdAt = Date.now()
  const { server, port, useSsl, username, statusCallbackUrl = user.statusCallbackUrl ?? null } = input
  return {
    id,
    developerId: user.developerId,
    userId: user.id,
    label,
    server,
    port,
    useSsl,
    username,
    statusCallbackUrl,
    email: input.email.toLowerCase(),
    ...credentialPatch(deps.sealer, id, input.credential),
    options: { ...defaultSourceOptions, ...input.options },
    status: 'OK',
    statusMessage: null,
    statusVersion: 0,
    paused: false,
    resume: { ...freshResume, condition: { is: 'down', since: createdAt } },
    epoch: 0,
    createdAt,
  }
}

const loginSettings = ['server', 'port', 'useSsl', 'username'] as const

/** A stored credential is never sent to another server: a caller with the API key may not know the credential. */
const credentialWords =
  'is required with another server, port, use_ssl or username: give the credential in the same call'

/** A trial may take long and blocks no other edit, so the account is read again before the write. */
async function editAccount(
  deps: Deps,
  account: AccountRecord,
  edit: AccountEdit,
  steps: ConnectSteps,
): Promise<Created<AccountRecord>> {
  const { server = account.server, port = account.port } = edit
  const { useSsl = account.useSsl, username = account.username } = edit
  const settings = { server, port, useSsl, username }
  if (edit.credential === undefined && loginSettings.some((name) => settings[name] !== account[name]))
    throw badParameter(account.authType === 'oauth2' ? 'provider_refresh_token' : 'password', credentialWords)
  const login = [edit.credential, edit.server, edit.port, edit.useSsl, edit.username]
  const reconnects = login.some((value) => value !== undefined)
  let given = edit.credential
  const credential = given ?? openCredential(deps.sealer, account)
  const callbacks = { statusCallbackUrl: edit.statusCallbackUrl ?? null, options: edit.options ?? {} }
  if (reconnects) {
    const input = { ...settings, email: account.email, credential, ...callbacks }
    const user = { id: account.userId, developerId: account.developerId }
    const tried = await tryMailbox(deps, user, input, steps, given === undefined ? account : null)
    if (!tried.ok) return tried
    if (edit.credential !== undefined) given = tried.value.credential
  } else await checkUrls(deps, edit)
  return deps.inOrder(account.id, async () => {
    const now = await deps.store.accounts.get(account.id)
    if (now === null) throw notFound('email account', account.label)
    if (reconnects) {
      if (loginSettings.some((name) => now[name] !== account[name] && now[name] !== settings[name]))
        throw new AppError('conflict', 'the email account was changed by another call meanwhile; ask again')
      await steps.claim?.({ userId: account.userId, accountId: account.id })
    }
    const patch: AccountPatch = {
      ...(edit.email === undefined ? {} : { email: edit.email.toLowerCase() }),
      // The tried settings; those outside the edit have not changed meanwhile.
      ...(reconnects ? settings : {}),
      ...(given === undefined ? {} : credentialPatch(deps.sealer, account.id, given)),
      ...(edit.statusCallbackUrl === undefined ? {} : { statusCallbackUrl: edit.statusCallbackUrl }),
      ...(edit.options === undefined ? {} : { options: { ...now.options, ...edit.options } }),
    }
    return { ok: true, value: await writeEdit(deps, now, patch, reconnects || edit.reset === true) }
  })
}

async function writeEdit(deps: Deps, account: AccountRecord, patch: AccountPatch, wakes: boolean) {
  const { server = account.server, username = account.username } = patch
  if (server !== account.server || username !== account.username) return replaceMailbox(deps, account, patch)
  const edited = await deps.store.accounts.edit(account.id, patch)
  if (edited === null) throw notFound('email account', account.label)
  if (wakes) deps.accounts.wake(account.id)
  return edited
}

/** Stops the actor, replaces the mailbox, and starts the actor also after a failure. */
async function replaceMailbox(deps: Deps, account: AccountRecord, patch: AccountPatch): Promise<AccountRecord> {
  const { accounts, store } = deps
  const since = await readUntil(deps, account)
  await accounts.stop(account.id)
  try {
    const edited = await store.sync.replaceMailbox(account.id, patch, since)
    if (edited === null) throw notFound('email account', account.label)
    await startAccount(deps, edited)
    // Accounts that are not DISABLED connect by themselves.
    if (edited.status === 'DISABLED') accounts.wake(account.id)
    return edited
  } catch (error) {
    const anew = { ...account, resume: { ...account.resume, initialSyncAt: null } }
    const stored = await store.accounts.get(account.id).catch(() => anew)
    if (stored !== null) accounts.start(stored)
    throw error
  }
}

/** Time until which all arrived mail has been read, in ms. */
async function readUntil({ accounts, store }: Deps, account: AccountRecord): Promise<number> {
  const now = Date.now()
  if (accounts.view(account.id)?.tags.includes('watching') === true) return now
  const inbox = await store.folders.byPath(account.id, 'INBOX')
  const cursor = inbox?.cursor ?? null
  return cursor === null ? now : Math.max(account.resume.lastConnectedAt ?? 0, cursor.syncedAt ?? cursor.comparedAt)
}

function credentialPatch(sealer: Sealer, accountId: string, credential: Credential) {
  return {
    sealedCredential: sealCredential(sealer, accountId, credential),
    authType: credential.kind,
    providerKey: credential.kind === 'oauth2' ? credential.providerKey : null,
  }
}
