/** The store on MongoDB. */
import { createAggregates } from '../aggregates.ts'
import type { Store } from '../port.ts'
import { createAccounts, createUsers, createMongoRemoval } from './accounts.ts'
import { createChanges, createSync } from './sync.ts'
import { connect, type Connection, type ConnectOptions } from './connect.ts'
import { createContacts } from './contacts.ts'
import { openCollections, type MongoContext } from './documents.ts'
import { guarded, type Methods } from './errors.ts'
import { createFolders } from './folders.ts'
import { createNonces, openKeyedCollections } from './keyed.ts'
import { createMessages } from './messages.ts'
import { createOutbox } from './outbox.ts'
import { probeWrite } from './schema.ts'

export interface MongoOptions extends Omit<ConnectOptions, 'alone'> {
  /** Milliseconds since 1970. Default: the clock. */
  readonly now?: () => number
  /** For an engine: it waits until no other process serves the database; called when one has taken over. */
  readonly lost?: () => void
}

/** A ping has to be quick: load balancers wait for it. */
const pingMs = 5000

/** Waits for a database that is away. Errors as those of connect.ts. */
export async function createMongoStore(options: MongoOptions): Promise<Store> {
  const { lost } = options
  return createStore(await connect({ ...options, alone: lost && { lost } }), options)
}

/** Methods that take as long as there are rows. */
const unbounded: { readonly [A in keyof Store]?: readonly string[] } = {
  webhooks: ['remove'],
  calls: ['expire'],
  audit: ['expire'],
  users: ['remove', 'undoCreate'],
  accounts: ['remove'],
  folders: ['reconcile'],
  messages: ['knownUids'],
  sync: ['apply', 'forgetPlacements', 'replaceMailbox'],
  changes: ['expire'],
  outbox: ['skipPending', 'expire'],
  contacts: ['count'],
}

function createStore({ db, close }: Connection, { timeoutMs, now = Date.now }: MongoOptions): Store {
  const context: MongoContext = { collections: openCollections(db), now, read: { maxTimeMS: timeoutMs } }
  const keyed = openKeyedCollections(context)
  const outbox = createOutbox(context, keyed)
  const removal = createMongoRemoval(context, keyed, outbox.channels)
  const aggregates = {
    ...createAggregates(keyed, removal.removeWebhook),
    users: createUsers(context, keyed, removal),
    accounts: createAccounts(context, keyed, removal),
    folders: createFolders(context, keyed),
    messages: createMessages(context),
    sync: createSync(context, keyed),
    changes: createChanges(context, keyed),
    outbox,
    contacts: createContacts(context, keyed),
    nonces: createNonces(context),
  }
  const ping = (room = 0): Promise<void> => probeWrite(context.collections, room, now)
  return {
    kind: 'mongodb',
    ...guardedAll(aggregates, timeoutMs),
    ...guarded({ tidy: removal.tidy }, timeoutMs, ['tidy']),
    ...guarded({ ping }, Math.min(pingMs, timeoutMs)),
    close,
  }
}

function guardedAll<T extends Partial<Store>>(aggregates: T, timeoutMs: number): T {
  const all = Object.entries(aggregates) as [keyof Store, Methods][]
  return Object.fromEntries(all.map(([name, one]) => [name, guarded(one, timeoutMs, unbounded[name])])) as unknown as T
}
