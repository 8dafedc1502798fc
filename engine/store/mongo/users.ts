/** Users, found by age, by their own addresses and by those of their accounts. */
import type { UserStore } from '../port.ts'
import type { UserRecord } from '../records.ts'
import { foldCase } from '../rows.ts'
import { accountDoc } from './accounts.ts'
import { orNull, recordIn, toDoc, type MongoContext, type UserDoc } from './documents.ts'
import { isDuplicate } from './errors.ts'
import { deadlineOf, insertOnce } from './insist.ts'
import { removeAccount, removeUser } from './removal.ts'
import { findUsers } from './user-query.ts'

export function userDoc(user: UserRecord): UserDoc {
  return { ...toDoc(user), addressKeys: [...new Set(user.emailAddresses.map(foldCase))] }
}

const beside = new Set(['addressKeys'])

export function userRecord(doc: UserDoc): UserRecord {
  return recordIn(doc, beside) as UserRecord
}

export function createUsers(context: MongoContext): UserStore {
  const { users, accounts } = context.collections
  return {
    create: async (user) => {
      await insertOnce(users, userDoc(user), deadlineOf(context))
    },
    createWithAccount: async (user, account) => {
      const deadline = deadlineOf(context)
      // The account first: cut short here, nobody finds it, while a user without its account would be in every list.
      await insertOnce(accounts, accountDoc(account), deadline)
      try {
        await insertOnce(users, userDoc(user), deadline)
      } catch (error) {
        // Why the user could not be stored is the answer, whatever comes of the removal. Perhaps it is: then with its account.
        if (isDuplicate(error)) await Promise.allSettled([accounts.deleteOne({ _id: account.id })])
        throw error
      }
    },
    undoCreate: async (id, accountId) => {
      await users.deleteOne({ _id: id })
      await removeAccount(context, accountId)
    },
    get: async (developerId, id) => orNull(await users.findOne({ _id: id, developerId }, context.read), userRecord),
    list: async (developerId, filter, page) => (await findUsers(context, developerId, filter, page)).map(userRecord),
    edit: async (id, patch) => {
      const { emailAddresses } = patch
      const keys = emailAddresses ? { addressKeys: [...new Set(emailAddresses.map(foldCase))] } : {}
      const set = { ...patch, ...keys }
      if (Object.keys(set).length === 0) return orNull(await users.findOne({ _id: id }, context.read), userRecord)
      return orNull(await users.findOneAndUpdate({ _id: id }, { $set: set }, { returnDocument: 'after' }), userRecord)
    },
    addAddress: async (id, email) => {
      const add = { $addToSet: { emailAddresses: email, addressKeys: foldCase(email) } }
      return orNull(await users.findOneAndUpdate({ _id: id }, add, { returnDocument: 'after' }), userRecord)
    },
    existing: async (ids) => {
      const found = users.find({ _id: { $in: [...ids] } }, { ...context.read, projection: { _id: 1 } })
      return (await found.toArray()).map(({ _id }) => _id)
    },
    remove: (id) => removeUser(context, id),
  }
}
