/**
 * Removal of webhooks and users with all that hangs on them: in bounded steps, so that nothing large holds up the
 * others, and with the row itself last, so that a removal that was cut short is repeated from the start.
 */
import type { KeyedCollections } from './aggregates.ts'

/** What each store does in its own way. */
interface RemovalSteps {
  /** Notes in the store that this removal is under way, until `work` is done: one that was cut short is found by it. */
  noted<T>(what: 'account' | 'user', id: string, work: () => Promise<T>): Promise<T>
  removeAccount(id: string): Promise<void>
  /** What hangs on a user beside accounts and webhooks. */
  drainUser(id: string): Promise<unknown>
  /** false = an account or a webhook has come meanwhile. */
  removeUserRow(id: string): Promise<boolean>
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
    // what was queued while the others went
    await drainWebhook(id, false)
  }

  const removeAccount = (id: string) => steps.noted('account', id, () => steps.removeAccount(id))

  const removeOwned = async (userId: string): Promise<string[]> => {
    const owned = await accounts.list({ userId }, { by: ['createdAt', 'id'] })
    for (const { id } of owned) await removeAccount(id)
    for (const { id } of await webhooks.list({ userId }, { by: ['createdAt', 'id'] })) await takeWebhook(id, true)
    await steps.drainUser(userId)
    return owned.map(({ id }) => id)
  }

  return {
    removeAccount,
    /** With its pending rows and scans; the record of its deliveries stays. */
    removeWebhook: (id: string) => takeWebhook(id, false),
    /** Answers the ids of the accounts it took. */
    removeUser: (id: string): Promise<string[]> =>
      steps.noted('user', id, async () => {
        const taken: string[] = []
        do taken.push(...(await removeOwned(id)))
        while (!(await steps.removeUserRow(id)))
        // what came while the row went: it looks for its user afterwards as well
        taken.push(...(await removeOwned(id)))
        return [...new Set(taken)]
      }),
    /** Callbacks that wait for a webhook that is gone. Channels of bare URLs begin with u, and have no record. */
    tidyWebhooks: async (): Promise<number> => {
      let rows = 0
      for (const id of await steps.channels()) {
        if (!id.startsWith('u') && (await webhooks.find({ id })) === null) rows += await drainWebhook(id, false)
      }
      return rows
    },
  }
}

export type Removal = ReturnType<typeof createRemoval>
