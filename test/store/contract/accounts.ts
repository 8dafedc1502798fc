/** Email accounts: lookups, the lease, and status transitions. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../engine/store/ids.ts'
import type { StatusTransition } from '../../../engine/store/port.ts'
import type { AccountRecord, OutboxRecord } from '../../../engine/store/records.ts'
import { freshResume } from '../../../engine/store/rows.ts'
import { createMailbox, createUser, rejectsWith, type Subject } from './mailbox.ts'
import { accountRecord, epochStart, outboxRecord, userRecord } from './records.ts'

export function accountsContract({ store }: Subject): void {
  describe('accounts', () => {
    test('are found by id and label, and listed oldest first', async () => {
      const user = await createUser(store)
      const [second, first] = [2, 1].map((age) =>
        accountRecord(user, { createdAt: epochStart + age, status: age === 1 ? 'DISABLED' : 'OK' }),
      )
      assert(first && second)
      await store.accounts.create(second)
      await store.accounts.create(first)
      assert.deepEqual(await store.accounts.get(first.id), first)
      assert.equal(await store.accounts.get(newId()), null)
      assert.deepEqual(await store.accounts.listByUser(user.id), [first, second])
      assert.deepEqual(await store.accounts.listByUser(user.id, { status: 'DISABLED' }), [first])
      assert.deepEqual(await store.accounts.listByUser(user.id, { status: 'OK' }), [second])
    })

    test('are found by host, developer, user, part of the address, id and label; or all of them', async () => {
      const user = await createUser(store)
      const { developerId } = user
      const other = await createUser(store, developerId)
      const host = `${user.id}.example.com`
      const one = accountRecord(user, { server: host, email: `Ann.${user.id}@Example.com` })
      const two = accountRecord(other, { server: host, email: `bob_${user.id}%@example.org`, label: `${user.id}::x` })
      const three = accountRecord(other, { email: `Jürgen.${user.id}@example.org` })
      for (const account of [one, two, three]) await store.accounts.create(account)
      const ids = async (filter: Parameters<typeof store.accounts.places>[0]) =>
        (await store.accounts.places(filter)).map(({ id }) => id).toSorted()
      const all = [one, two, three].map(({ id }) => id).toSorted()
      assert.deepEqual(await ids({ developerId }), all)
      assert.deepEqual(await ids({ server: host }), [one.id, two.id].toSorted())
      assert.deepEqual(await ids({ server: host, userId: other.id }), [two.id])
      assert.deepEqual(await ids({ userId: user.id, developerId: undefined }), [one.id])
      assert.deepEqual(await ids({ text: user.id.slice(0, 23).toUpperCase(), developerId }), all)
      assert.deepEqual(await ids({ text: `ANN.${user.id}` }), [one.id])
      assert.deepEqual(await ids({ text: `JÜRGEN.${user.id}` }), [three.id])
      assert.deepEqual(await ids({ text: `b_b_${user.id}` }), [])
      assert.deepEqual(await ids({ text: `_${user.id}%@` }), [two.id])
      assert.deepEqual(await ids({ text: one.id, developerId }), [one.id])
      assert.deepEqual(await ids({ text: one.id.slice(1), developerId }), [])
      assert.deepEqual(await ids({ text: two.label }), [two.id])
      const condition = { is: 'down', since: one.createdAt }
      assert.deepEqual(await store.accounts.places({ userId: user.id }), [
        { id: one.id, server: host, developerId, condition },
      ])
      const every = await ids({})
      for (const id of all) assert(every.includes(id))
      await store.accounts.edit(one.id, { email: `new.${user.id}@x.org`, server: 'elsewhere' })
      assert.deepEqual(await ids({ text: `ann.${user.id}` }), [])
      assert.deepEqual(await ids({ text: `new.${user.id}`, server: 'elsewhere' }), [one.id])
      const several = await store.accounts.several([two.id, newId(), three.id])
      assert.deepEqual(
        several,
        [two, three].toSorted((left, right) => (left.id < right.id ? -1 : 1)),
      )
    })

    test('are found by how they are and since when, longest first, after an edit and a transition too', async () => {
      const user = await createUser(store)
      const { developerId } = user
      const made = ([is, since]: readonly ['up' | 'down' | 'disabled' | 'paused', number]) =>
        accountRecord(user, { resume: { ...freshResume, condition: { is, since, before: { is: 'down', since: 1 } } } })
      const all = (
        [
          ['up', 40],
          ['down', 20],
          ['paused', 30],
        ] as const
      ).map(made)
      const [up, down, paused] = all
      assert(up && down && paused)
      for (const account of all) await store.accounts.create(account)
      const ids = async (filter: Parameters<typeof store.accounts.places>[0]) =>
        (await store.accounts.places({ developerId, ...filter })).map(({ id }) => id)
      assert.deepEqual(await ids({}), [down.id, paused.id, up.id])
      assert.deepEqual(await ids({ sinceUntil: 30 }), [down.id, paused.id])
      assert.deepEqual(await ids({ sinceUntil: 19 }), [])
      assert.deepEqual(await ids({ condition: 'paused', sinceUntil: 30 }), [paused.id])
      assert.deepEqual(await ids({ condition: 'disabled' }), [])
      await store.accounts.edit(up.id, { resume: { ...freshResume, condition: { is: 'down', since: 50 } } }, up.epoch)
      assert.deepEqual(await ids({ condition: 'down' }), [down.id, up.id])
      const step = { accountId: down.id, epoch: down.epoch, fromVersion: down.statusVersion, statusMessage: null }
      const resume = { ...freshResume, condition: { is: 'disabled', since: 60 } } as const
      await store.accounts.transition({ ...step, status: 'DISABLED', resume, outbox: [] })
      assert.deepEqual(await ids({ condition: 'disabled' }), [down.id])
      const [last] = (await store.accounts.places({ developerId })).toReversed()
      assert.deepEqual(last?.condition, { is: 'disabled', since: 60 })
    })

    test('of several users are listed at once', async () => {
      const developerId = newId()
      const users = await Promise.all([1, 2, 3].map(() => createUser(store, developerId)))
      const accounts = users.map((user, index) => accountRecord(user, { createdAt: epochStart - index }))
      for (const account of accounts) await store.accounts.create(account)
      const asked = users.slice(0, 2).map((user) => user.id)
      assert.deepEqual(await store.accounts.listByUsers(asked), [accounts[1], accounts[0]])
      assert.deepEqual(await store.accounts.listByUsers([]), [])
    })

    test('a label is had once per user', async () => {
      const [user, other] = [await createUser(store), await createUser(store)]
      await store.accounts.create(accountRecord(user, { label: 'ann::x' }))
      await rejectsWith(store.accounts.create(accountRecord(user, { label: 'ann::x' })), 'conflict')
      await store.accounts.create(accountRecord(other, { label: 'ann::x' }))
      assert.equal((await store.accounts.listByUser(user.id)).length, 1)
    })

    test('are not there without their user', async () => {
      const account = accountRecord(userRecord(newId()))
      await rejectsWith(store.accounts.create(account), 'not_found')
      assert.equal(await store.accounts.get(account.id), null)
      const users = await Promise.all([1, 2].map(() => createUser(store)))
      const asked = [...users.map(({ id }) => id), account.userId]
      const inOrder = users.toSorted((one, other) => (one.id < other.id ? -1 : 1))
      assert.deepEqual(await store.users.several(asked), inOrder)
      assert.deepEqual(await store.users.several([]), [])
    })

    test('pages go over all of them by id, once each', async () => {
      const user = await createUser(store)
      const made = Array.from({ length: 5 }, () => accountRecord(user))
      for (const account of made) await store.accounts.create(account)
      const seen: string[] = []
      for (let after: string | null = null; ;) {
        const page: AccountRecord[] = await store.accounts.page(after, 2)
        seen.push(...page.map((account) => account.id))
        if (page.length < 2) break
        after = page.at(-1)?.id ?? null
      }
      assert.deepEqual(seen, [...new Set(seen)].sort())
      for (const account of made) assert(seen.includes(account.id))
    })

    test('an edit changes what it names', async () => {
      const account = accountRecord(await createUser(store))
      await store.accounts.create(account)
      const resume = { ...freshResume, attempt: 3, retryAt: epochStart }
      const edited = await store.accounts.edit(account.id, { paused: true, resume, statusMessage: 'slow' })
      assert.deepEqual(edited, { ...account, paused: true, resume, statusMessage: 'slow' })
      assert.deepEqual(await store.accounts.get(account.id), edited)
      assert.equal(await store.accounts.edit(newId(), { paused: true }), null)
      // by its owner alone, when that is asked for
      assert.equal((await store.accounts.edit(account.id, { paused: false }, account.epoch))?.paused, false)
      await rejectsWith(store.accounts.edit(account.id, { paused: true }, account.epoch + 1), 'lease_lost')
      assert.equal((await store.accounts.get(account.id))?.paused, false)
      assert.equal(await store.accounts.edit(newId(), { paused: true }, 1), null)
    })

    test('a claim raises the epoch of the account and of its folders', async () => {
      const mailbox = await createMailbox(store)
      assert.equal(mailbox.account.epoch, 1)
      const again = await store.accounts.claim(mailbox.account.id)
      assert.deepEqual(again, { ...mailbox.account, epoch: 2 })
      const folders = await store.folders.list(mailbox.account.id)
      assert.deepEqual(
        folders.map((folder) => folder.epoch),
        [2, 2, 2],
      )
      assert.equal(await store.accounts.claim(newId()), null)
    })
  })
}

function step(account: AccountRecord, outbox: readonly OutboxRecord[], patch: Partial<StatusTransition> = {}) {
  return {
    accountId: account.id,
    epoch: account.epoch,
    fromVersion: account.statusVersion,
    status: 'DISABLED',
    statusMessage: 'the password was rejected',
    resume: { ...freshResume, strikes: 3 },
    outbox,
    ...patch,
  } as const
}

export function transitionsContract({ store }: Subject): void {
  const callback = (account: AccountRecord) =>
    outboxRecord({ id: newId(), developerId: account.developerId }, { kind: 'status', accountId: account.id })

  describe('status transitions', () => {
    test('write the callback and the account, once', async () => {
      const { account } = await createMailbox(store)
      const row = callback(account)
      const taken = step(account, [row])
      const after = await store.accounts.transition(taken)
      const expected: AccountRecord = {
        ...account,
        status: 'DISABLED',
        statusMessage: 'the password was rejected',
        statusVersion: 1,
        resume: taken.resume,
      }
      assert.deepEqual(after, expected)
      assert.deepEqual(await store.accounts.get(account.id), expected)
      assert.deepEqual(await store.accounts.listByUser(account.userId, { status: 'DISABLED' }), [expected])
      assert.deepEqual(await store.outbox.get(row.id), row)
    })

    test('a repeat answers null and tells nothing', async () => {
      const { account } = await createMailbox(store)
      const row = callback(account)
      await store.accounts.transition(step(account, [row]))
      const other = callback(account)
      assert.equal(await store.accounts.transition(step(account, [row])), null)
      assert.equal(await store.accounts.transition(step(account, [other], { status: 'OK' })), null)
      assert.equal((await store.accounts.get(account.id))?.statusVersion, 1)
      assert.equal((await store.accounts.get(account.id))?.status, 'DISABLED')
      assert.deepEqual(await store.outbox.pending(row.channelId, [], 10), [row])
      assert.deepEqual(await store.outbox.pending(other.channelId, [], 10), [])
    })

    test('there and back counts two', async () => {
      const { account } = await createMailbox(store)
      await store.accounts.transition(step(account, []))
      const back = step(account, [callback(account)], { fromVersion: 1, status: 'OK', statusMessage: null })
      const after = await store.accounts.transition(back)
      assert.equal(after?.statusVersion, 2)
      assert.equal(after.status, 'OK')
    })

    test('of a stale owner are refused and leave nothing', async () => {
      const { account } = await createMailbox(store)
      await store.accounts.claim(account.id)
      const row = callback(account)
      await rejectsWith(store.accounts.transition(step(account, [row])), 'lease_lost')
      assert.equal((await store.accounts.get(account.id))?.status, 'OK')
      assert.deepEqual(await store.outbox.pending(row.channelId, [], 10), [])
    })

    test('of an account that is gone answer null', async () => {
      const account = accountRecord(userRecord(newId()))
      assert.equal(await store.accounts.transition(step(account, [])), null)
    })

    test('two at once: one happens', async () => {
      const { account } = await createMailbox(store)
      const rows = [callback(account), callback(account)]
      const answers = await Promise.all(rows.map((row) => store.accounts.transition(step(account, [row]))))
      assert.equal(answers.filter((answer) => answer !== null).length, 1)
      assert.equal((await store.accounts.get(account.id))?.statusVersion, 1)
    })
  })
}
