/**
 * Which store a test runs on: MAILROOM_TEST_STORE=mongodb takes MONGODB_URI's server, with a new database each time;
 * anything else is the embedded store.
 */
import { randomBytes } from 'node:crypto'
import { MongoClient, type Db } from 'mongodb'

export interface StoreChoice {
  readonly kind: 'sqlite' | 'mongodb'
  /** The settings that choose it. */
  readonly env: { readonly MONGODB_URI?: string }
  /** Drops the database. */
  remove(): Promise<void>
}

export function chosenStore(): StoreChoice {
  if (process.env['MAILROOM_TEST_STORE'] !== 'mongodb') {
    return { kind: 'sqlite', env: {}, remove: () => Promise.resolve() }
  }
  const server = process.env['MONGODB_URI']
  if (!server) throw new Error('MAILROOM_TEST_STORE=mongodb needs MONGODB_URI')
  const uri = databaseOn(server, `mailroom_e2e_${randomBytes(4).toString('hex')}`)
  return { kind: 'mongodb', env: { MONGODB_URI: uri }, remove: () => dropDatabase(uri) }
}

/** The same server, another database. */
export function databaseOn(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

export async function dropDatabase(uri: string): Promise<void> {
  await onDatabase(uri, (db) => db.dropDatabase())
}

const kept = new Set(['meta', 'nodes', 'slots'])

/** Removes all rows; collections and indexes stay. */
export async function emptyDatabase(uri: string): Promise<void> {
  await onDatabase(uri, async (db) => {
    const withRows = (await db.collections()).filter(({ collectionName }) => !kept.has(collectionName))
    await Promise.all(withRows.map((collection) => collection.deleteMany({})))
  })
}

async function onDatabase(uri: string, task: (db: Db) => Promise<unknown>): Promise<void> {
  const client = await MongoClient.connect(uri)
  try {
    await task(client.db())
  } finally {
    await client.close()
  }
}
