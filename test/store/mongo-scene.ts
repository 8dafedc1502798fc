/**
 * A database with two ways to it, directly and through a proxy, for the suite that asks for it: one in each test file.
 */
import { after, before, beforeEach } from 'node:test'
import { MongoClient } from 'mongodb'
import type { Store } from '../../engine/store/port.ts'
import { createProxy, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

export let database: TestDatabase
export let proxy: Proxy
/** On the database itself. */
export let direct: Store
/** Through the proxy, which passes everything at the start of each test. */
export let store: Store
export let raw: MongoClient

/** Within a suite. `timeoutMs` is that of the store behind the proxy. */
export function useProxiedDatabase(options: { readonly now?: () => number; readonly timeoutMs?: number } = {}): void {
  const { timeoutMs, ...both } = options
  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    direct = await database.open(both)
    store = await database.open({ ...both, uri: proxy.uri, ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    raw = await MongoClient.connect(database.uri)
  })
  beforeEach(() => {
    proxy.decide = () => 'pass'
    proxy.revive()
  })
  after(async () => {
    await raw.close()
    await database.remove()
    await proxy.close()
  })
}
