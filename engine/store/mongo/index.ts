/** The store on MongoDB: wires its aggregates, and names the methods without a deadline. */
import { createAggregates } from '../aggregates.ts'
import { changeLog } from '../change-log.ts'
import type { Store } from '../port.ts'
import { Lease, soleNode } from '../slots.ts'
import { createAccounts, createUsers, createMongoRemoval } from './accounts.ts'
import { createSync, lastSeq } from './sync.ts'
import { connect, type Connection, type ConnectOptions } from './connect.ts'
import { createContacts } from './contacts.ts'
import { openCollections, type MongoContext } from './documents.ts'
import { guarded, storeError, type Methods } from './errors.ts'
import { createFolders } from './folders.ts'
import { createNonces, openKeyedCollections } from './keyed.ts'
import { createMessages } from './messages.ts'
import { createNodes } from './nodes.ts'
import { createOutbox } from './outbox.ts'
import { probeWrite } from './schema.ts'

export interface MongoOptions extends Omit<ConnectOptions, 'member'> {
  /** Milliseconds since 1970. Default: the clock. */
  readonly now?: () => number
  /** Makes this process a node. Called when other nodes have taken it for dead. */
  readonly lost?: () => void
  /** The node takes slots. Default true. */
  readonly works?: boolean
  /** For tests. */
  readonly beatMs?: number
  readonly silentMs?: number
}

/** Deadline of a ping: load balancers wait for it. */
const pingMs = 5000

/** Waits for a database that is away. Errors as in connect.ts. */
export async function createMongoStore(options: MongoOptions): Promise<Store> {
  const { lost, works, beatMs, silentMs } = options
  const connection = await connect({ ...options, member: lost && { lost, works, beatMs, silentMs } })
  try {
    return await createStore(connection, options)
  } catch (error) {
    await connection.close()
    throw storeError(error)
  }
}

/** Methods without a deadline: their time depends on the number of rows. */
const unbounded: { readonly [A in keyof Store]?: readonly string[] } = {
  webhooks: ['remove'],
  calls: ['expire'],
  audit: ['expire'],
  users: ['remove', 'undoCreate'],
  accounts: ['remove'],
  folders: ['reconcile'],
  messages: ['knownUids', 'knownAmong'],
  sync: ['apply', 'forgetPlacements', 'replaceMailbox'],
  changes: ['expire'],
  outbox: ['skipPending', 'expire'],
  contacts: ['count'],
}

async function createStore(
  { db, member, close }: Connection,
  { timeoutMs, log, now = Date.now }: MongoOptions,
): Promise<Store> {
  const lease = member === null ? null : new Lease()
  const context: MongoContext = {
    collections: openCollections(db),
    now,
    lease,
    read: { maxTimeMS: timeoutMs, batchSize: 200 },
  }
  const nodes = member === null || lease === null ? null : await createNodes({ context, member, lease, log })
  const keyed = openKeyedCollections(context)
  const outbox = createOutbox(context, keyed)
  const removal = createMongoRemoval(context, keyed)
  const aggregates = {
    ...createAggregates(keyed, removal.removeWebhook),
    users: createUsers(context, keyed, removal),
    accounts: createAccounts(context, keyed, removal),
    folders: createFolders(context, keyed),
    messages: createMessages(context),
    sync: createSync(context, keyed),
    changes: changeLog(keyed, (accountId) => lastSeq(context, accountId)),
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
    nodes: nodes ?? soleNode(),
    async close() {
      await nodes?.stop()
      await close()
    },
  }
}

function guardedAll<T extends Partial<Store>>(aggregates: T, timeoutMs: number): T {
  const all = Object.entries(aggregates) as [keyof Store, Methods][]
  return Object.fromEntries(all.map(([name, one]) => [name, guarded(one, timeoutMs, unbounded[name])])) as unknown as T
}
