/**
 * Tries of a connect token: each makes a user with an email account, a further account, or new credentials of an
 * account.
 *
 * The order of writes is claim, make, use. The claim has the ids of the records to make. After a crash in between, the
 * next `find` or `settle` checks whether the account exists, and marks the token used or releases it. A token of an
 * existing account is released: the user may give the credentials again.
 *
 * A token has one try at a time, in its own actor; between processes the claim decides. Typed credentials are held in
 * memory by the try alone, and are sent only to the server that the end user was shown.
 */
import { LRUCache } from 'lru-cache'
import { createActor, fromPromise } from 'xstate'
import {
  type ConnectTokenInput,
  connectTokenMachine,
  tokenLife,
  triesOfToken,
  type TokenLife,
  type TryOutput,
} from '../../machines/connect-token.machine.ts'
import type {
  AccountInput,
  ConnectSteps,
  Created,
  MailboxSettings,
  ProbeFailure,
  ProbeStep,
} from '../accounts/types.ts'
import type { Config } from '../config.ts'
import type { Developers } from '../developers.ts'
import { AppError, type ErrorCode, notFound, toAppError } from '../errors.ts'
import type { Mailboxes } from '../mailboxes.ts'
import type { Logger } from '../observe/log.ts'
import type { Store } from '../store/port.ts'
import type { ConnectTokenRecord, TokenClaim } from '../store/records.ts'

/** `taken`: another try was faster. `error`: the mailbox could not be tried, or not stored. */
export type ConnectOutcome =
  | { readonly kind: 'made' }
  | { readonly kind: 'taken' }
  | { readonly kind: 'failed'; readonly failure: ProbeFailure; readonly message: string }
  | { readonly kind: 'error'; readonly code: ErrorCode }

/** A try with a mailbox, as callers see it. */
export type ConnectTry = Readonly<Pick<Try, 'browser' | 'step' | 'outcome' | 'changed'>>

/** Key of the login that a credential is sent to. */
export function destinationOf({ server, port, useSsl, username }: MailboxSettings): string {
  return JSON.stringify([server, port, useSsl, username])
}

interface Deps {
  readonly config: Config
  readonly log: Logger
  readonly store: Store
  readonly developers: Pick<Developers, 'get'>
  readonly mailboxes: Pick<Mailboxes, 'createUser' | 'createAccount' | 'editAccount'>
}

type State = Deps & {
  readonly tries: LRUCache<string, Try>
  /** Tokens whose claim this process is working on. */
  readonly claimed: Set<string>
}

/** How long, and how many, tries are remembered. */
const rememberedMs = 900_000
const remembered = 10_000

class Try {
  /** The browser that has begun the try. */
  readonly browser: string
  step: ProbeStep | 'saving' = 'finding'
  /** null = the try is under way. */
  outcome: ConnectOutcome | null = null
  /** The claim that the try has won. */
  claim: TokenClaim | null = null
  #next = Promise.withResolvers<undefined>()

  constructor(browser: string) {
    this.browser = browser
  }

  /** Resolves at the next change of step or outcome. */
  get changed(): Promise<void> {
    return this.#next.promise
  }

  note(news: Partial<Pick<Try, 'step' | 'outcome'>>): void {
    Object.assign(this, news)
    this.#next.resolve(undefined)
    this.#next = Promise.withResolvers<undefined>()
  }
}

export function createConnect(deps: Deps) {
  const state: State = {
    ...deps,
    tries: new LRUCache<string, Try>({
      maxSize: remembered,
      sizeCalculation: () => 1,
      ttl: rememberedMs,
      ttlAutopurge: true,
    }),
    claimed: new Set<string>(),
  }
  return {
    /** null = the token is unknown, or its developer's key is revoked. */
    async find(token: string): Promise<ConnectTokenRecord | null> {
      const record = await deps.store.tokens.find(token)
      if (record === null || (await deps.developers.get(record.developerId)) === null) return null
      return settle(state, record)
    },
    /** The token's record, after the claim of a crashed process was resolved. */
    settle: (record: ConnectTokenRecord) => settle(state, record),
    life: (record: ConnectTokenRecord): TokenLife => tokenLife(inputOf(state, record)),
    /** The token's last try, while it is remembered. */
    tryOf: (token: string): ConnectTry | null => state.tries.get(token) ?? null,
    /** Begins a try, for `browser`. false = a try is under way, or the token is no longer valid. */
    begin: (record: ConnectTokenRecord, browser: string, input: AccountInput) => begin(state, record, browser, input),
  }
}

function inputOf({ config }: State, record: ConnectTokenRecord): ConnectTokenInput {
  const { token, usedAt, expiresAt, tries = 0 } = record
  const deadlineMs = config.MAILROOM_CREATE_TIMEOUT + 5 * config.MAILROOM_STORE_TIMEOUT
  return { token, usedAt, expiresAt, tries, now: Date.now(), deadlineMs }
}

function begin(state: State, record: ConnectTokenRecord, browser: string, input: AccountInput): boolean {
  const { tries, log } = state
  const { token } = record
  if (tries.get(token)?.outcome === null) return false
  const running = new Try(browser)
  // The outcome when the store does not count the try, or takes too long.
  let outcome: ConnectOutcome = { kind: 'error', code: 'store_unavailable' }
  const attempt = fromPromise<TryOutput, { readonly token: string }>(async () => {
    const counted = await state.store.tokens.tried(token, triesOfToken)
    outcome = counted === null ? { kind: 'error', code: 'gone' } : await outcomeOf(state, counted, input, running)
    const tries = counted?.tries ?? triesOfToken
    return { usedAt: outcome.kind === 'made' ? Date.now() : null, tries, at: Date.now() }
  })
  const machine = connectTokenMachine.provide({ actors: { attempt } })
  const actor = createActor(machine, { input: inputOf(state, record) })
  actor.subscribe({ error: (error) => log.error({ err: error }, 'the actor of a connect token failed') })
  actor.start()
  if (!actor.getSnapshot().hasTag('open')) return false
  tries.set(token, running)
  actor.send({ type: 'TRY', at: Date.now() })
  actor.subscribe((snapshot) => {
    if (snapshot.hasTag('trying')) return
    running.note({ outcome })
    actor.stop()
  })
  return true
}

/** The claim of the token went to another try. */
class ClaimLost extends Error {}

/** Never rejects. */
async function outcomeOf(
  state: State,
  record: ConnectTokenRecord,
  input: AccountInput,
  running: Try,
): Promise<ConnectOutcome> {
  const { store, claimed, log } = state
  const { token } = record
  const steps = stepsOf(state, token, running)
  try {
    const made = await make(state, record, input, steps)
    if (!made.ok) return { kind: 'failed', failure: made.failure, message: made.message }
  } catch (thrown) {
    if (thrown instanceof ClaimLost) return { kind: 'taken' }
    const error = toAppError(thrown)
    // After a create with an unknown result, the undo releases the token; there is no undo for an edit.
    const undone = error.code === 'store_unavailable' && record.accountId === null
    if (running.claim !== null && !undone) await steps.takenBack().catch(() => undefined)
    // The end user can correct a private server address, but not a private callback URL.
    if (error.code === 'private_address' && error.details['parameter'] === 'server')
      return { kind: 'failed', failure: 'private_address', message: error.message }
    log.warn({ code: error.code, ...(error.fault === 'us' ? { err: error.cause ?? error } : {}) }, 'connect failed')
    return { kind: 'error', code: error.code }
  }
  const { claim } = running
  // After a failure, the next `find` or `settle` marks the token used.
  if (claim !== null) await store.tokens.use(token, claim.at, claim.userId, claim.accountId).catch(() => undefined)
  claimed.delete(token)
  return { kind: 'made' }
}

function stepsOf({ store, claimed }: State, token: string, running: Try) {
  return {
    onStep: (step: ProbeStep) => running.note({ step }),
    async claim(ids: Omit<TokenClaim, 'at'>): Promise<void> {
      const claim = { ...ids, at: Date.now() }
      // Before the write: `settle` must not take the claim for a crashed process' claim.
      claimed.add(token)
      const won = await store.tokens.claim(token, claim).catch((error: unknown) => {
        claimed.delete(token)
        throw error
      })
      if (won === null) throw new ClaimLost()
      running.claim = claim
      running.note({ step: 'saving' })
    },
    async takenBack(): Promise<void> {
      claimed.delete(token)
      await store.tokens.release(token)
    },
  } satisfies ConnectSteps
}

async function make(
  { store, developers, mailboxes }: State,
  record: ConnectTokenRecord,
  input: AccountInput,
  steps: ConnectSteps,
): Promise<Created<unknown>> {
  const { developerId, userId, accountId, firstName, lastName, statusCallbackUrl, options } = record
  const developer = (await developers.get(developerId))?.developer
  if (developer === undefined) throw notFound('developer', developerId)
  const more = {
    ...(statusCallbackUrl === null ? {} : { statusCallbackUrl: statusCallbackUrl || null }),
    ...(options === null ? {} : { options }),
  }
  if (userId === null) {
    const names = { firstName: firstName ?? '', lastName: lastName ?? '' }
    return mailboxes.createUser(developer, { ...names, account: { ...input, ...more } }, steps)
  }
  const user = await store.users.get(developerId, userId)
  if (user === null) throw notFound('user', userId)
  if (accountId === null) return mailboxes.createAccount(user, { ...input, ...more }, steps)
  const account = await store.accounts.get(accountId)
  if (account === null) throw notFound('email account', accountId)
  if (destinationOf(account) !== destinationOf(input))
    throw new AppError('conflict', 'the email account has another server, port, use_ssl or username meanwhile')
  return mailboxes.editAccount(account, { credential: input.credential, ...more }, steps)
}

async function settle({ store, claimed }: State, record: ConnectTokenRecord): Promise<ConnectTokenRecord> {
  const { token, developerId, accountId, usedAt, claim = null } = record
  if (usedAt !== null || claim === null || claimed.has(token)) return record
  const isMade =
    accountId === null &&
    (await store.users.get(developerId, claim.userId)) !== null &&
    (await store.accounts.get(claim.accountId)) !== null
  if (isMade) await store.tokens.use(token, claim.at, claim.userId, claim.accountId)
  else await store.tokens.release(token)
  return (await store.tokens.find(token)) ?? record
}
