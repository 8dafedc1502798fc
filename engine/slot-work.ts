/** Starts and ends the engine's work in slots, and follows the news of other nodes. */
import type { Accounts } from './accounts/index.ts'
import type { Developers, Revocations } from './developers.ts'
import type { EveryNode } from './every-node.ts'
import type { Settings } from './settings.ts'
import type { KeptStore } from './store/kept-records.ts'
import type { News, SlotWork } from './store/slots.ts'
import type { Webhooks } from './webhooks/index.ts'

interface Deps {
  readonly store: KeptStore
  readonly accounts: Pick<Accounts, 'gained' | 'shed' | 'reread' | 'countIn'>
  readonly webhooks: Pick<Webhooks, 'gained' | 'scan' | 'rest' | 'shed' | 'rereadWebhook' | 'rereadChannel'>
  readonly developers: Pick<Developers, 'reread'>
  readonly revocations: Pick<Revocations, 'end'>
  readonly settings: Pick<Settings, 'load'>
  readonly everyNode: Pick<EveryNode, 'tell'>
}

/** Weight of an account. An empty slot weighs 1, so that empty slots are spread too. */
const accountWeight = 256

export function createSlotWork(deps: Deps): SlotWork {
  const { store, accounts, webhooks, developers, revocations, settings, everyNode } = deps
  const followers: Record<News['what'], (id: string) => Promise<void> | void> = {
    async account(id) {
      store.forgetKept()
      await accounts.reread(id)
    },
    async user(id) {
      store.forgetKept()
      if (!store.nodes.owns(id)) return
      const owned = await store.accounts.listByUser(id)
      await Promise.all(owned.map((account) => accounts.reread(account.id)))
    },
    webhook: (id) => webhooks.rereadWebhook(id),
    developer: (id) => developers.reread(id),
    channel: (id) => webhooks.rereadChannel(id),
    settings: () => settings.load(),
    operator: (id) => revocations.end(id),
  }
  return {
    async gained(slots) {
      store.forgetKept()
      await webhooks.gained(slots)
      await accounts.gained(slots)
      void webhooks.scan(slots)
    },
    rest: webhooks.rest,
    async shed(slots) {
      // Webhooks last: callbacks that accounts have just stored are sent by the next owner.
      await accounts.shed(slots)
      await webhooks.shed(slots)
      store.forgetKept()
    },
    heard: async ({ what, id }) => followers[what](id),
    weightOf: (slot) => 1 + accountWeight * accounts.countIn(slot),
    announce: () => void everyNode.tell('look'),
    announceNews: (news) => everyNode.tell('follow', news),
  }
}
