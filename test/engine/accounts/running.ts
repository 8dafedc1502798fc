/** Email accounts that run: the real registry, actors, sockets. Stopped when the test ends. */
import type { TestContext } from 'node:test'
import { createAccounts, type Accounts } from '../../../engine/accounts/index.ts'
import { createHttpClient } from '../../../engine/net/http.ts'
import { createOAuthServers } from '../../../engine/oauth/providers.ts'
import { createTokens } from '../../../engine/oauth/tokens.ts'
import { sealCredential } from '../../../engine/secrets/seal.ts'
import type { AccountRecord } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { accountId, openStage, sealer, type Stage, type StageOptions } from './stage.ts'

export interface Running extends Stage {
  readonly accounts: Accounts
  readonly record: () => Promise<AccountRecord>
  /** Waits until the actor has this tag. */
  readonly tagged: (tag: string) => Promise<void>
  /** Waits until the story is this, in any order. */
  readonly tells: (story: readonly string[]) => Promise<void>
  /** Waits until the initial sync is over and stored. */
  readonly settled: () => Promise<void>
}

export async function openAccounts(t: TestContext, options: StageOptions = {}): Promise<Running> {
  const stage = await openStage(t, options)
  const { config, deps, listener } = stage
  const { log, metrics, store, budget, now } = deps
  const http = createHttpClient({ allowPrivate: config.MAILROOM_ALLOW_PRIVATE })
  stage.parts.defer(() => http.close())
  const tokens = createTokens({ store, sealer, servers: createOAuthServers({ config, http }) })
  const accounts = createAccounts({ config, log, metrics, store, sealer, budget, tokens, listener, now })
  stage.parts.defer(() => accounts.stopAll())
  const record = async (): Promise<AccountRecord> => {
    const account = await stage.store.accounts.get(accountId)
    if (account === null) throw new Error('the account is gone')
    return account
  }
  return {
    ...stage,
    accounts,
    record,
    async tagged(tag) {
      await until(`tag ${tag}`, () => accounts.view(accountId)?.tags.includes(tag), {
        explain: () => JSON.stringify(accounts.view(accountId), null, 1),
      })
    },
    async tells(wanted) {
      let last: string[] = []
      const sorted = [...wanted].sort().join('\n')
      await until(
        'the story',
        async () => {
          last = await stage.story()
          return [...last].sort().join('\n') === sorted
        },
        { withinMs: 30_000, explain: () => `told: ${JSON.stringify(last)}\nwanted: ${JSON.stringify(wanted)}` },
      )
    },
    async settled() {
      await until('the initial sync', async () => (await record()).resume.initialSyncAt !== null)
    },
  }
}

/** Started, with the initial sync over. */
export async function watchingAccounts(
  t: TestContext,
  options: StageOptions = {},
  prepare: (stage: Running) => void = () => undefined,
): Promise<Running> {
  const running = await openAccounts(t, options)
  prepare(running)
  running.accounts.start(running.account)
  await running.settled()
  return running
}

export const bobId = 'e'.repeat(24)

/** An account on the same host, not started. */
export const createBob = (running: Running): Promise<AccountRecord> => createAnother(running, bobId, 'bob')

/** `id`: 24 hexadecimal digits. */
export async function createAnother(running: Running, id: string, username: string): Promise<AccountRecord> {
  running.server.addUser(username)
  const sealedCredential = sealCredential(sealer, id, { kind: 'password', password: 'secret' })
  const names = { id, label: `${username}::mail`, email: `${username}@mail.example`, username }
  const another = { ...running.account, ...names, sealedCredential }
  await running.store.accounts.create(another)
  return another
}
