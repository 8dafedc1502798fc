/** Contacts of an account whose removal dies between any two of its writes, while another account counts them. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { needs } from '../support/require.ts'
import { createMailbox, type Mailbox } from './contract/mailbox.ts'
import { epochStart } from './contract/records.ts'
import { diesIn } from './mongo-proxy.ts'
import { database, direct, proxy, raw, useProxiedDatabase } from './mongo-scene.ts'

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
        const own = { accountId: going.account.id }
        assert.equal(await raw.db().collection('contacts').countDocuments(own), 0, `${note}: nothing is left`)
        await victim.close()
        if (!died) break
        crashes += 1
      }
    }
    // epoch, note, folders, contacts, account, note: each before and after
    assert(crashes >= 10, `${crashes} crashes`)
  })
})
