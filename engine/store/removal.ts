/**
 * Removes accounts, webhooks and users with all their records: in bounded steps, so that other work goes on, and the
 * record itself last, so that an interrupted removal can be repeated from the start.
 */
import { byAge, type KeyedCollections } from './aggregates.ts'
import { isBareUrl } from './ids.ts'

/** The steps that differ between the stores. */
interface RemovalSteps {
  /** Stores a note during `work`, so that an interrupted removal is found. */
  noted<T>(what: 'account' | 'user', id: string, work: () => Promise<T>): Promise<T>
  removeAccount(id: string): Promise<void>
  /** Removes the user's records other than accounts and webhooks. */
  drainUser(id: string): Promise<unknown>
  removeUserRow(id: string): Promise<unknown>
  /** Channels with pending rows. */
  channels(): Promise<string[]>
}

export function createRemoval({ accounts, webhooks, outbox, scans }: KeyedCollections, steps: RemovalSteps) {
  const drainWebhook = async (id: string, wholly: boolean): Promise<number> =>
    (await outbox.remove({ webhookId: id, state: wholly ? undefined : 'pending' })) +
    (await scans.remove({ webhookId: id }))

  const takeWebhook = async (id: string, wholly: boolean): Promise<void> => {
    await drainWebhook(id, wholly)
    await webhooks.remove({ id })
    // rows that were queued during the removal
    await drainWebhook(id, false)
  }

  const removeAccount = (id: string) => steps.noted('account', id, () => steps.removeAccount(id))

  const removeOwned = async (userId: string): Promise<string[]> => {
    const owned = await accounts.list({ userId }, byAge)
    for (const { id } of owned) await removeAccount(id)
    for (const { id } of await webhooks.list({ userId }, byAge)) await takeWebhook(id, true)
    await steps.drainUser(userId)
    return owned.map(({ id }) => id)
  }

  return {
    removeAccount,
    /** Also removes pending rows and scans. The log of deliveries stays. */
    removeWebhook: (id: string) => takeWebhook(id, false),
    /** Returns the ids of the removed accounts. */
    removeUser: (id: string): Promise<string[]> =>
      steps.noted('user', id, async () => {
        const taken = await removeOwned(id)
        await steps.removeUserRow(id)
        // records that were written meanwhile: later writers find no user
        return [...taken, ...(await removeOwned(id))]
      }),
    /** Removes rows of webhooks that are gone. Channels of bare URLs begin with u, and have no record. */
    tidyWebhooks: async (): Promise<number> => {
      let rows = 0
      for (const id of await steps.channels()) {
        if (!isBareUrl(id) && (await webhooks.find({ id })) === null) rows += await drainWebhook(id, false)
      }
      return rows
    },
  }
}

export type Removal = ReturnType<typeof createRemoval>
