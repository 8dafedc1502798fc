/** The whole accounts wing on a stage: the real registry, actors, sockets. Stopped when the test ends. */
import type { TestContext } from 'node:test'
import { createAccounts, type Accounts } from '../../../engine/accounts/index.ts'
import { createHttpClient } from '../../../engine/net/http.ts'
import { createTokens } from '../../../engine/oauth/tokens.ts'
import type { AccountRecord } from '../../../engine/store/records.ts'
import { until } from '../../support/until.ts'
import { accountId, openStage, sealer, type Stage, type StageOptions } from './stage.ts'

export interface Wing extends Stage {
  readonly accounts: Accounts
  readonly record: () => Promise<AccountRecord>
  /** Waits until the actor has this tag. */
  readonly tagged: (tag: string) => Promise<void>
  /** Waits until the story is this, in any order. */
  readonly tells: (story: readonly string[]) => Promise<void>
  /** Waits until the initial sync is over and stored. */
  readonly settled: () => Promise<void>
}

export async function openWing(t: TestContext, options: StageOptions = {}): Promise<Wing> {
  const stage = await openStage(t, options)
  const { config, deps, listener } = stage
  const { log, metrics, store, budget } = deps
  const http = createHttpClient()
  stage.parts.defer(() => http.close())
  const tokens = createTokens({ config, store, sealer, http })
  const accounts = createAccounts({ config, log, metrics, store, sealer, budget, tokens, listener })
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
        { withinMs: 8000, explain: () => `told: ${JSON.stringify(last)}\nwanted: ${JSON.stringify(wanted)}` },
      )
    },
    async settled() {
      await until('the initial sync', async () => (await record()).resume.initialSyncAt !== null)
    },
  }
}

/** A started wing whose initial sync is over. */
export async function watchingWing(
  t: TestContext,
  options: StageOptions = {},
  prepare: (stage: Wing) => void = () => undefined,
): Promise<Wing> {
  const wing = await openWing(t, options)
  prepare(wing)
  wing.accounts.start(wing.account)
  await wing.settled()
  return wing
}
