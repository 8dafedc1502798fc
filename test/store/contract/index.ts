/** The one suite that every store must pass. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../../engine/store/port.ts'
import { accountsContract, transitionsContract } from './accounts.ts'
import { changesContract } from './changes.ts'
import { contactRemovalContract } from './contact-removal.ts'
import { contactsContract } from './contacts.ts'
import { foldersContract } from './folders.ts'
import { filtersContract, pagingContract } from './lists.ts'
import { lookupsContract } from './lookups.ts'
import type { Subject } from './mailbox.ts'
import { deliveriesContract } from './deliveries.ts'
import { attemptsContract, queueContract } from './outbox.ts'
import { developersContract, usersContract } from './people.ts'
import { flagsContract, forgetContract, goneContract, movesContract } from './placements.ts'
import { epochStart } from './records.ts'
import { removalContract } from './removal.ts'
import { replacementContract } from './replacement.ts'
import { shownContract } from './shown.ts'
import {
  auditContract,
  callsContract,
  noncesContract,
  providersContract,
  settingsContract,
  tokensContract,
} from './sundries.ts'
import { leaseContract, syncContract } from './sync.ts'
import { webhooksContract } from './webhooks.ts'

export interface OpenedStore {
  readonly store: Store
  /** Closes the store and removes what it left behind. */
  dispose(): Promise<void>
}

/** Opens a new, empty store whose time is `now`. */
export type OpenStore = (now: () => number) => Promise<OpenedStore>

const parts: readonly ((subject: Subject) => void)[] = [
  developersContract,
  usersContract,
  accountsContract,
  transitionsContract,
  foldersContract,
  syncContract,
  leaseContract,
  flagsContract,
  goneContract,
  forgetContract,
  movesContract,
  replacementContract,
  lookupsContract,
  filtersContract,
  pagingContract,
  changesContract,
  webhooksContract,
  shownContract,
  queueContract,
  attemptsContract,
  deliveriesContract,
  contactsContract,
  contactRemovalContract,
  settingsContract,
  tokensContract,
  providersContract,
  noncesContract,
  callsContract,
  auditContract,
  removalContract,
]

/** Registers the whole suite under this name. All tests share one store and do not see each other's records. */
export function storeContract(name: string, open: OpenStore): void {
  describe(`store contract: ${name}`, () => {
    const clock = { now: epochStart + 1_000_000_000 }
    let opened: OpenedStore | null = null
    const current = (): Store => {
      assert(opened, 'the store is open while tests run')
      return opened.store
    }
    before(async () => {
      opened = await open(() => clock.now)
    })
    after(() => opened?.dispose())

    test('takes a write on trial, small and large, any number of times', async () => {
      for (const room of [undefined, 0, 1_048_576, 1, undefined]) await current().ping(room)
    })
    for (const part of parts) part({ store: lateStore(current), clock })
  })
}

/** Tests are registered before the store is open: each member is looked up when it is used. */
function lateStore(current: () => Store): Store {
  const late = <K extends keyof Store>(name: K): Store[K] => current()[name]
  return {
    get kind() {
      return late('kind')
    },
    get nodes() {
      return late('nodes')
    },
    get developers() {
      return late('developers')
    },
    get users() {
      return late('users')
    },
    get accounts() {
      return late('accounts')
    },
    get folders() {
      return late('folders')
    },
    get messages() {
      return late('messages')
    },
    get sync() {
      return late('sync')
    },
    get changes() {
      return late('changes')
    },
    get webhooks() {
      return late('webhooks')
    },
    get outbox() {
      return late('outbox')
    },
    get contacts() {
      return late('contacts')
    },
    get tokens() {
      return late('tokens')
    },
    get providers() {
      return late('providers')
    },
    get sealed() {
      return late('sealed')
    },
    get operators() {
      return late('operators')
    },
    get settings() {
      return late('settings')
    },
    get nonces() {
      return late('nonces')
    },
    get audit() {
      return late('audit')
    },
    get calls() {
      return late('calls')
    },
    tidy: () => current().tidy(),
    ping: (room) => current().ping(room),
    close: () => current().close(),
  }
}
