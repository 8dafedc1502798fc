/** Lists of users by what only their accounts know: right, and in few round trips, however many users there are. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { newId } from '../../engine/store/ids.ts'
import { openCollections, shapes } from '../../engine/store/mongo/documents.ts'
import type { Store } from '../../engine/store/port.ts'
import type { AccountRecord, UserRecord } from '../../engine/store/records.ts'
import { needs } from '../support/require.ts'
import { accountRecord, epochStart, userRecord } from './contract/records.ts'
import { createProxy, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

/** More than are few (users.ts). */
const count = 1500
const shared = 'Shared@Example.com'

suite('lists of many users', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  let store: Store
  const developerId = newId()
  /** In the order of lists, with one account each. */
  const users: UserRecord[] = []
  const accounts: AccountRecord[] = []

  before(async () => {
    database = testDatabase()
    proxy = await createProxy(database.uri)
    store = await database.open({ uri: proxy.uri })
    for (let index = 0; index < count; index += 1) {
      // pairs are of one age, and then of the order of their ids
      const user = userRecord(developerId, {
        createdAt: epochStart + Math.floor(index / 2),
        ...(index % 500 === 1 ? { emailAddresses: [shared.toLowerCase()] } : {}),
      })
      users.push(user)
      accounts.push(
        accountRecord(user, {
          status: index % 600 === 7 ? 'DISABLED' : 'OK',
          ...(index % 400 === 3 || index === 501 ? { email: shared } : {}),
        }),
      )
    }
    const client = await MongoClient.connect(database.uri)
    const collections = openCollections(client.db())
    await collections.users.insertMany(users.map(shapes.users.doc))
    await collections.accounts.insertMany(accounts.map(shapes.accounts.doc))
    await client.close()
    users.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  })
  after(async () => {
    await database.remove()
    await proxy.close()
  })

  const accountOf = (user: UserRecord): AccountRecord => {
    const account = accounts.find(({ userId }) => userId === user.id)
    assert(account)
    return account
  }
  const ids = (some: readonly UserRecord[]): string[] => some.map(({ id }) => id)
  const hasStatus = (status: string) => (user: UserRecord) => accountOf(user).status === status
  const hasAddress = (user: UserRecord): boolean =>
    [accountOf(user).email, ...user.emailAddresses].some((email) => email.toLowerCase() === shared.toLowerCase())

  test('by a rare status: a handful of requests, whatever the number of users', async () => {
    proxy.seen.length = 0
    const found = await store.users.list(developerId, { status: 'DISABLED' }, { limit: 25, offset: 0 })
    assert.deepEqual(ids(found), ids(users.filter(hasStatus('DISABLED'))))
    assert.equal(found.length, 3)
    assert(proxy.seen.length <= 3, `${proxy.seen.length} requests`)
    const none = await store.users.list(newId(), { status: 'DISABLED' }, { limit: 25, offset: 0 })
    assert.deepEqual(none, [])
  })

  test('by a status that most have: pages in order, without gaps or repeats', async () => {
    const all = ids(users.filter(hasStatus('OK')))
    const paged: string[] = []
    for (let offset = 0; offset < count; offset += 400) {
      paged.push(...ids(await store.users.list(developerId, { status: 'OK' }, { limit: 400, offset })))
    }
    assert.deepEqual(paged, all)
  })

  test('by an address of their own or of their accounts, each once and in order', async () => {
    const all = ids(users.filter(hasAddress))
    assert(all.length > 5)
    const page = { limit: 3, offset: 2 }
    assert.deepEqual(ids(await store.users.list(developerId, { email: shared }, page)), all.slice(2, 5))
    const whole = { limit: 100, offset: 0 }
    assert.deepEqual(ids(await store.users.list(developerId, { email: shared.toUpperCase() }, whole)), all)
    const both = await store.users.list(developerId, { email: shared, status: 'OK' }, whole)
    assert.deepEqual(ids(both), ids(users.filter((user) => hasAddress(user) && hasStatus('OK')(user))))
    assert.deepEqual(await store.users.list(newId(), { email: shared, status: 'OK' }, whole), [])
  })
})
