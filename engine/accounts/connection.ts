/** What one attempt of an account holds: the watching session, the command connection, and the state that both share. */
import { AppError } from '../errors.ts'
import type { AccountRecord } from '../store/records.ts'
import type { CommandLogins } from './command-logins.ts'
import { createLane } from './lanes.ts'
import { createLink, type Link } from './link.ts'
import { login, type LoginDeps, type LoginStage } from './login.ts'
import type { Session } from './session-types.ts'
import { createAccountState, type AccountState } from './state.ts'

export interface ConnectionDeps extends LoginDeps {
  readonly commandLogins: CommandLogins
}

export interface Connection {
  readonly session: Session
  readonly state: AccountState
  readonly link: Link
  readonly tokenExpiresAt: number | null
}

/** Every earlier owner's writes are refused from here on. */
export async function claimAccount({ store }: LoginDeps['sync'], accountId: string): Promise<AccountRecord> {
  const account = await store.accounts.claim(accountId)
  if (account === null) throw new AppError('not_found', 'the account was removed')
  return account
}

/** Logs in to the account, as it was claimed. */
export async function openConnection(
  deps: ConnectionDeps,
  account: AccountRecord,
  signal: AbortSignal,
  stage: LoginStage,
): Promise<Connection> {
  const folders = await deps.sync.store.folders.list(account.id)
  const { session, expiresAt } = await login(deps, account, 'live', signal, stage)
  const state = createAccountState(deps.sync, account, folders)
  return { session, state, link: commandLink(deps, account), tokenExpiresAt: expiresAt }
}

export async function closeConnection(connection: Connection): Promise<void> {
  await Promise.allSettled([connection.session.close(), connection.link.close()])
}

/** Opened later, if ever: by then the credential may be another one. */
function commandLink(deps: ConnectionDeps, account: AccountRecord): Link {
  const { config, store } = deps.sync
  const { commandLogins } = deps
  return createLink({
    lane: createLane(),
    open: async (priority, signal) => {
      commandLogins.enter()
      const newest = (await store.accounts.get(account.id)) ?? account
      const { session } = await login(deps, newest, priority, signal).catch(async (error: unknown) => {
        // Of a link that has been closed: the chart has gone on to something else.
        throw signal.aborted ? error : await commandLogins.failed(error)
      })
      commandLogins.connected()
      return session
    },
    idleCloseMs: config.MAILROOM_COMMAND_IDLE_CLOSE,
    waitMs: config.MAILROOM_COMMAND_TIMEOUT,
  })
}
