/**
 * Which store a test of the whole service runs on: MAILROOM_TEST_STORE=mongodb takes MONGODB_URI's server, with a database of
 * its own for each test file; anything else is the embedded store.
 */
import { randomBytes } from 'node:crypto'
import { MongoClient } from 'mongodb'

export interface StoreChoice {
  readonly kind: 'sqlite' | 'mongodb'
  /** For startService. */
  readonly options: { readonly mongoUri?: string }
  /** Drops the database. */
  remove(): Promise<void>
}

export function chosenStore(): StoreChoice {
  if (process.env['MAILROOM_TEST_STORE'] !== 'mongodb') {
    return { kind: 'sqlite', options: {}, remove: () => Promise.resolve() }
  }
  const server = process.env['MONGODB_URI']
  if (!server) throw new Error('MAILROOM_TEST_STORE=mongodb needs MONGODB_URI')
  const mongoUri = databaseOn(server, `mailroom_e2e_${randomBytes(4).toString('hex')}`)
  return { kind: 'mongodb', options: { mongoUri }, remove: () => dropDatabase(mongoUri) }
}

/** The same server, another database. */
export function databaseOn(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

export async function dropDatabase(uri: string): Promise<void> {
  const client = await MongoClient.connect(uri)
  await client.db().dropDatabase()
  await client.close()
}
