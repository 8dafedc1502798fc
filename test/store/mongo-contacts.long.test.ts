/**
 * Contacts that lose an account's part while others write them, and when the removal dies between any two of its
 * writes.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { contactId } from '../../engine/store/ids.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { createMailbox, type Mailbox } from './contract/mailbox.ts'
import { epochStart } from './contract/records.ts'
import { diesIn, holdFirst } from './mongo-proxy.ts'
import { database, direct, proxy, raw, store, useProxiedDatabase } from './mongo-scene.ts'

const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }

suite('contacts of several accounts', needs('mongodb'), () => {
  let now = Date.now()
  useProxiedDatabase({ now: () => now })

  async function batchOf(mailbox: Mailbox, emails: readonly string[], message = 'm') {
    const contacts = emails.map((email) => {
      return { userId: mailbox.user.id, email, name: '', key: `${message} ${email}:r`, ...counts }
    })
    return mailbox.batch('INBOX', { contacts })
  }

  async function totals({ user }: Mailbox): Promise<Record<string, number>> {
    const found = await direct.contacts.list(user.id, 'total_count', 'desc', { limit: 100, offset: 0 })
    return Object.fromEntries(found.map(({ email, totalCount }) => [email, totalCount]))
  }

  /** Two accounts, whose contacts are a and b, and b and c. */
  async function scene() {
    const going = await createMailbox(direct)
    const staying = await createMailbox(direct, { user: going.user })
    for (const message of ['m', 'n']) await direct.sync.apply(await batchOf(going, ['a@x.com', 'b@x.com'], message))
    await direct.sync.apply(await batchOf(staying, ['b@x.com', 'c@x.com']))
    return { going, staying }
  }

  const left = { 'b@x.com': 1, 'c@x.com': 1 }

  test('a removal that dies anywhere goes on by itself, and takes its part once', async () => {
    let crashes = 0
    for (const lost of [false, true]) {
      for (let writes = lost ? 1 : 0; ; writes += 1) {
        proxy.revive()
        const { going, staying } = await scene()
        const victim = await database.open({ uri: proxy.uri, timeoutMs: 2500, now: () => now })
        const died = await diesIn(proxy, writes, lost, () => victim.accounts.remove(going.account.id))
        const note = `died ${lost ? 'after' : 'before'} write ${lost ? writes : writes + 1}`
        // what the other counts meanwhile stays
        await direct.sync.apply(await batchOf(staying, ['a@x.com', 'b@x.com'], 'later'))
        now += 61_000
        await direct.tidy()
        // before its first write it is a removal that nobody knows of
        await direct.accounts.remove(going.account.id)
        assert.equal(await direct.accounts.get(going.account.id), null, note)
        assert.deepEqual(await totals(going), { ...left, 'a@x.com': 1, 'b@x.com': 2 }, note)
        const known = { applied: new RegExp(`^${going.account.id} `) }
        assert.equal(await raw.db().collection('contacts').countDocuments(known), 0, `${note}: no key is left`)
        await victim.close()
        if (!died) break
        crashes += 1
      }
    }
    // epoch, note, folders, contacts, account, note: each before and after
    assert(crashes >= 10, `${crashes} crashes`)
  })

  test('the other account is held between its look and its write while the part goes', async () => {
    const { going, staying } = await scene()
    const batch = await batchOf(staying, ['a@x.com', 'b@x.com'], 'later')
    const held = holdFirst(proxy, (command) => command['update'] === 'contacts')
    const writing = store.sync.apply(batch)
    await until('the batch is held', () => held.held)
    await direct.accounts.remove(going.account.id)
    assert.deepEqual(await totals(going), left)
    held.release()
    await writing
    assert.deepEqual(await totals(going), { ...left, 'a@x.com': 1, 'b@x.com': 2 })
  })

  test('the removal is held between its look and its write while the other account counts', async () => {
    const { going, staying } = await scene()
    const held = holdFirst(proxy, (command) => command['update'] === 'contacts')
    const removing = store.accounts.remove(going.account.id)
    await until('the removal is held', () => held.held)
    await direct.sync.apply(await batchOf(staying, ['a@x.com', 'b@x.com'], 'later'))
    held.release()
    await removing
    assert.deepEqual(await totals(going), { ...left, 'a@x.com': 1, 'b@x.com': 2 })
  })

  test('a contact that went and came again is not taken for the one it was', async () => {
    const going = await createMailbox(direct)
    const [late, early] = [await createMailbox(direct, going), await createMailbox(direct, going)]
    await direct.sync.apply(await batchOf(going, ['a@x.com']))
    const held = holdFirst(proxy, (command) => command['update'] === 'contacts')
    const writing = store.sync.apply(await batchOf(late, ['a@x.com']))
    await until('the batch is held', () => held.held)
    await direct.accounts.remove(going.account.id)
    assert.equal(await direct.contacts.get(going.user.id, contactId(going.user.id, 'a@x.com')), null)
    // as often written as the one that was read, by two messages
    await direct.sync.apply(await batchOf(early, ['a@x.com', 'A@x.com']))
    held.release()
    await writing
    assert.deepEqual(await totals(going), { 'a@x.com': 3 })
  })

  test('what was counted before accounts were told apart stays', async () => {
    const { going, staying } = await scene()
    const contacts = raw.db().collection<{ readonly _id: string }>('contacts')
    await contacts.updateMany({ userId: going.user.id }, { $unset: { byAccount: '' } })
    const before = await totals(going)
    for (const mailbox of [going, staying]) await direct.sync.apply(await batchOf(mailbox, ['a@x.com'], 'later'))
    await direct.accounts.remove(going.account.id)
    assert.deepEqual(await totals(going), { ...before, 'a@x.com': (before['a@x.com'] ?? 0) + 1 })
  })
})
