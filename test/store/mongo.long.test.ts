/** The store contract on MongoDB, or on whatever speaks its protocol at MONGODB_URI. */
import { suite } from 'node:test'
import { needs } from '../support/require.ts'
import { storeContract } from './contract/index.ts'
import { testDatabase } from './mongo-server.ts'

suite('MongoDB keeps the store contract', needs('mongodb'), () => {
  storeContract('mongodb', async (now) => {
    const database = testDatabase()
    return { store: await database.open({ now }), dispose: () => database.remove() }
  })
})
