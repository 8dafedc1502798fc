/** The store on MongoDB: the one with which several engine nodes may run. */
import type { Logger } from '../../observe/log.ts'
import { createAggregates } from '../aggregates.ts'
import type { Store } from '../port.ts'
import { createAccounts } from './accounts.ts'
import { createChanges } from './changes.ts'
import { connect, type Connection } from './connect.ts'
import { createContacts } from './contacts.ts'
import { openCollections, type MongoContext } from './documents.ts'
import { guarded } from './errors.ts'
import { createFolders } from './folders.ts'
import { createNonces, openKeyedCollections } from './keyed.ts'
import { createMessages } from './messages.ts'
import { createOutbox } from './outbox.ts'
import { removeWebhook, tidy } from './removal.ts'
import { probeWrite } from './schema.ts'
import { createSync } from './sync.ts'
import { createUsers } from './users.ts'

export interface MongoOptions {
  readonly uri: string
  readonly pool: number
  /** Deadline of one operation in milliseconds. */
  readonly timeoutMs: number
  readonly log: Logger
  /** Milliseconds since 1970. Default: the clock. */
  readonly now?: () => number
  /** Ends the wait for a database that is away, or that another process serves. */
  readonly signal?: AbortSignal
  /** For an engine: it waits until no other process serves the database; called when one has taken over. */
  readonly lost?: () => void
}

/** A ping has to be quick: load balancers wait for it. */
const pingMs = 5000

/** Waits for a database that is away. Errors as those of connect.ts. */
export async function createMongoStore(options: MongoOptions): Promise<Store> {
  const { lost, ...rest } = options
  return createStore(await connect(lost === undefined ? rest : { ...rest, alone: { lost } }), options)
}

function createStore({ db, close }: Connection, { timeoutMs, now = Date.now }: MongoOptions): Store {
  const context: MongoContext = { collections: openCollections(db), now, read: { maxTimeMS: timeoutMs } }
  const keyed = openKeyedCollections(context)
  const small = createAggregates(keyed, (id) => removeWebhook(context, id, false))
  return {
    kind: 'mongodb',
    developers: guarded(small.developers, timeoutMs),
    webhooks: guarded(small.webhooks, timeoutMs, ['remove']),
    tokens: guarded(small.tokens, timeoutMs),
    providers: guarded(small.providers, timeoutMs),
    sealed: guarded(small.sealed, timeoutMs),
    operators: guarded(small.operators, timeoutMs),
    calls: guarded(small.calls, timeoutMs, ['expire']),
    users: guarded(createUsers(context, keyed), timeoutMs, ['remove', 'undoCreate']),
    accounts: guarded(createAccounts(context, keyed), timeoutMs, ['remove']),
    folders: guarded(createFolders(context, keyed), timeoutMs, ['reconcile']),
    messages: guarded(createMessages(context), timeoutMs, ['knownUids']),
    sync: guarded(createSync(context), timeoutMs, ['apply', 'forgetPlacements', 'replaceMailbox']),
    changes: guarded(createChanges(context, keyed), timeoutMs, ['expire']),
    outbox: guarded(createOutbox(context, keyed), timeoutMs, ['skipPending', 'expire']),
    contacts: guarded(createContacts(context, keyed), timeoutMs, ['count']),
    nonces: guarded(createNonces(context), timeoutMs),
    ...guarded({ tidy: () => tidy(context) }, timeoutMs, ['tidy']),
    ...guarded<Pick<Store, 'ping'>>(
      { ping: (room = 0) => probeWrite(context.collections, room, now) },
      Math.min(pingMs, timeoutMs),
    ),
    close,
  }
}
