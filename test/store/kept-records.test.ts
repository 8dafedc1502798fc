/** What is kept of the store is what is stored, after any write and beside any write that is under way. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { after, before, suite, test } from 'node:test'
import { keepRecords, type KeptStore } from '../../engine/store/kept-records.ts'
import { newId } from '../../engine/store/ids.ts'
import type { Store } from '../../engine/store/port.ts'
import type { AccountRecord, UserRecord } from '../../engine/store/records.ts'
import { openTestStore, type TestStore } from '../support/test-store.ts'
import { createMailbox, listed, type Mailbox } from './contract/mailbox.ts'
import { accountRecord, messageFacts, userRecord } from './contract/records.ts'

/** Counts the reads that reach the store. */
function countingReads(store: Store) {
  const reads: string[] = []
  const counted = <T extends object>(part: T, name: string, ...methods: (keyof T & string)[]): T => ({
    ...part,
    ...Object.fromEntries(
      methods.map((method) => [
        method,
        (...args: unknown[]): unknown => {
          reads.push(`${name}.${method}`)
          return (part[method] as (...of: unknown[]) => unknown)(...args)
        },
      ]),
    ),
  })
  const users = counted(store.users, 'users', 'get')
  const accounts = counted(store.accounts, 'accounts', 'listByUser')
  const folders = counted(store.folders, 'folders', 'list')
  const messages = counted(store.messages, 'messages', 'totals')
  return { reads, store: { ...store, users, accounts, folders, messages } }
}

suite('records that are kept in memory', () => {
  let opened: TestStore
  let plain: Store
  let kept: KeptStore
  let reads: string[]
  let mailbox: Mailbox
  before(async () => {
    opened = await openTestStore()
    plain = opened.store
    const counting = countingReads(plain)
    reads = counting.reads
    kept = keepRecords(counting.store)
    mailbox = await createMailbox(kept)
    await mailbox.fill('INBOX', [messageFacts()])
  })
  after(() => opened.remove())

  /** All that the API begins a call with. */
  async function look(store: Store, { developerId, userId, id }: AccountRecord) {
    return {
      user: await store.users.get(developerId, userId),
      accounts: await store.accounts.listByUser(userId),
      disabled: await store.accounts.listByUser(userId, { status: 'DISABLED' }),
      folders: await store.folders.list(id),
      totals: await store.messages.totals(id),
    }
  }

  test('the second look at an account asks the store nothing', async () => {
    const first = await look(kept, mailbox.account)
    reads.length = 0
    assert.deepEqual(await look(kept, mailbox.account), first)
    assert.deepEqual(reads, [])
    assert.deepEqual(first, await look(plain, mailbox.account))
  })

  test('a user is answered to its own developer alone, kept or not', async () => {
    const { userId, developerId } = mailbox.account
    const other = newId()
    for (let n = 0; n < 2; n += 1) {
      assert.equal(await kept.users.get(other, userId), null)
      assert.equal((await kept.users.get(developerId, userId))?.id, userId)
    }
  })

  test('after any write the next look sees it, and mail that was written has another version', async () => {
    const { account } = mailbox
    const steps: Record<string, () => Promise<unknown>> = {
      name: () => kept.users.edit(account.userId, { firstName: newId() }),
      address: () => kept.users.addAddress(account.userId, `${newId()}@mail.example`),
      password: () => kept.accounts.edit(account.id, { sealedCredential: newId() }),
      counts: async () => {
        const [inbox] = await kept.folders.list(account.id)
        await kept.folders.setReported(inbox?.id ?? '', { messages: Math.floor(Math.random() * 1e6), unseen: 1 })
      },
      parked: async () => {
        const [inbox] = await kept.folders.list(account.id)
        await kept.folders.setParked(inbox?.id ?? '', 1, Math.floor(Math.random() * 1e6))
      },
      mail: () => mailbox.fill('INBOX', [messageFacts({ subject: newId() })]),
      another: () => kept.accounts.create(accountRecord({ id: account.userId, developerId: account.developerId }, {})),
    }
    const names = fc.constantFrom(...Object.keys(steps))
    const versions = new Set([kept.messages.version(account.id)])
    await fc.assert(
      fc.asyncProperty(fc.array(names, { maxLength: 12 }), async (chosen) => {
        for (const name of chosen) {
          await look(kept, account)
          await steps[name]?.()
          if (name === 'mail') {
            assert.ok(!versions.has(kept.messages.version(account.id)))
            versions.add(kept.messages.version(account.id))
          }
          assert.deepEqual(await look(kept, account), await look(plain, account), name)
        }
      }),
      { numRuns: 12 },
    )
  })

  test('while mail is being written, no answer is good for the next look', async () => {
    const begun = Promise.withResolvers<undefined>()
    const gate = Promise.withResolvers<undefined>()
    const slow = keepRecords({
      ...plain,
      sync: {
        ...plain.sync,
        async apply(batch) {
          const applied = await plain.sync.apply(batch)
          begun.resolve(undefined)
          await gate.promise
          return applied
        },
      },
    })
    const { account, fill } = await createMailbox(slow)
    const { version } = slow.messages
    const before = version(account.id)
    assert.equal(version(account.id), before)
    const writing = fill('INBOX', [messageFacts()])
    await begun.promise
    assert.ok(Number.isNaN(version(account.id)))
    gate.resolve(undefined)
    await writing
    assert.notEqual(version(account.id), before)
    assert.equal(version(account.id), version(account.id))
  })

  test('a list of folders that is asked for in the middle of a write is not the one of before it', async () => {
    const [begins, ends] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    const written = Promise.withResolvers<undefined>()
    const slow = keepRecords({
      ...plain,
      folders: {
        ...plain.folders,
        async reconcile(...args) {
          await begins.promise
          const now = await plain.folders.reconcile(...args)
          written.resolve(undefined)
          await ends.promise
          return now
        },
      },
    })
    const { account } = await createMailbox(plain)
    const paths = async (): Promise<string[]> => (await slow.folders.list(account.id)).map(({ path }) => path)
    const before = await paths()
    const writing = slow.folders.reconcile(account.id, account.epoch, [listed('INBOX'), listed('New')], false)
    assert.deepEqual(await paths(), before)
    begins.resolve(undefined)
    await written.promise
    assert((await paths()).includes('New'))
    ends.resolve(undefined)
    await writing
  })

  test('a read that began before the end of a write keeps nothing of before', async () => {
    const user: UserRecord = userRecord(mailbox.account.developerId)
    await plain.users.create(user)
    const gate = Promise.withResolvers<undefined>()
    const slow = keepRecords({
      ...plain,
      users: {
        ...plain.users,
        async get(developerId, id) {
          const found = await plain.users.get(developerId, id)
          await gate.promise
          return found
        },
      },
    })
    const old = slow.users.get(user.developerId, user.id)
    await new Promise(setImmediate)
    const edited = slow.users.edit(user.id, { firstName: 'Later' })
    await edited
    gate.resolve(undefined)
    assert.notEqual((await old)?.firstName, 'Later')
    assert.equal((await slow.users.get(user.developerId, user.id))?.firstName, 'Later')
  })

  test('a read that fails is not kept', async () => {
    let fails = true
    const shaky = keepRecords({
      ...plain,
      folders: {
        ...plain.folders,
        list: (id) => (fails ? Promise.reject(new Error('away')) : plain.folders.list(id)),
      },
    })
    await assert.rejects(shaky.folders.list(mailbox.account.id), /away/)
    fails = false
    assert.ok((await shaky.folders.list(mailbox.account.id)).length > 0)
  })

  test('of what is removed nothing is answered any more', async () => {
    const gone = await createMailbox(kept)
    await gone.fill('INBOX', [messageFacts()])
    await look(kept, gone.account)
    await kept.accounts.remove(gone.account.id)
    assert.deepEqual(await kept.accounts.listByUser(gone.account.userId), [])
    await kept.users.remove(gone.account.userId)
    assert.equal(await kept.users.get(gone.account.developerId, gone.account.userId), null)
  })
})
