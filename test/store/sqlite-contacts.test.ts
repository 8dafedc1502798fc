/** Removals from the embedded store that die between two of their transactions. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../engine/store/port.ts'
import { openDatabase, type Database } from '../../engine/store/sqlite/database.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { removeAccount } from '../../engine/store/sqlite/accounts.ts'
import { createMailbox, type Mailbox } from './contract/mailbox.ts'
import { accountRecord, epochStart, tokenRecord } from './contract/records.ts'

const page = { limit: 5000, offset: 0 }
/** Three steps of the walk over them. */
const people = Array.from({ length: 1100 }, (_, number) => `p${number}@x.com`)

describe('a removal that dies', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mailroom-contacts-'))
  const path = join(directory, 'mailroom.sqlite')
  let store: Store
  let database: Database

  before(async () => {
    store = await createSqliteStore({ path, sync: 'off' })
    database = openDatabase(path, 'off', 2000)
  })
  after(async () => {
    await database.close()
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  })

  async function count(mailbox: Mailbox, emails: readonly string[], message: string): Promise<void> {
    const counts = { total: 1, direct: 0, indirect: 1, receivedAt: epochStart }
    const contacts = emails.map((email) => {
      return { userId: mailbox.user.id, email, name: '', key: `${message} ${email}:r`, ...counts }
    })
    await mailbox.apply('INBOX', { contacts })
  }

  async function totals({ user }: Mailbox): Promise<Map<string, number>> {
    const found = await store.contacts.list(user.id, 'total_count', 'desc', page)
    return new Map(found.map(({ email, totalCount }) => [email, totalCount]))
  }

  /** The database whose process dies before its n-th transaction. */
  function dyingAfter(writes: number): Database {
    let left = writes
    return {
      ...database,
      write: (work) => ((left -= 1) < 0 ? Promise.reject(new Error('died')) : database.write(work)),
    }
  }

  test('is repeated from the start, and takes its part of the contacts once', async () => {
    let deaths = 0
    for (let died = true; died; deaths += 1) {
      const going = await createMailbox(store, { folders: ['INBOX'] })
      const staying = await createMailbox(store, { folders: ['INBOX'], user: going.user })
      const shared = people.slice(0, 400)
      await count(going, people, 'm')
      await count(going, people.slice(200), 'n')
      await count(staying, shared, 'o')
      died = await removeAccount(dyingAfter(deaths), going.account.id).then(
        () => false,
        (error: unknown) => error instanceof Error && error.message === 'died',
      )
      // what the other counts meanwhile stays
      await count(staying, shared, 'p')
      await store.accounts.remove(going.account.id)
      assert.deepEqual([...(await totals(going))].sort(), shared.map((email) => [email, 2]).sort(), `${deaths} writes`)
    }
    assert(deaths > 10, `${deaths} deaths`)
  })

  for (const what of ['account', 'user'] as const) {
    for (const by of ['the next tidying', 'the next start']) {
      test(`of ${what === 'user' ? 'a' : 'an'} ${what} is finished by ${by}`, async () => {
        const { user, account } = await createMailbox(store)
        const second = accountRecord(user)
        await store.accounts.create(second)
        await store.tokens.create(tokenRecord(user.developerId, { userId: user.id, accountId: account.id }))
        database.script(`CREATE TRIGGER cut BEFORE DELETE ON tokens BEGIN SELECT RAISE(ABORT, 'cut short'); END`)
        const removing = what === 'user' ? store.users.remove(user.id) : store.accounts.remove(account.id)
        await assert.rejects(removing, { code: 'internal' })
        database.script('DROP TRIGGER cut')
        assert.notEqual(await store.accounts.get(account.id), null)
        if (by === 'the next start') {
          await store.close()
          store = await createSqliteStore({ path, sync: 'off' })
        } else assert((await store.tidy()) > 0)
        const left = what === 'user' ? [] : [second]
        assert.deepEqual(await store.accounts.listByUser(user.id), left)
        assert.equal((await store.users.get(user.developerId, user.id)) === null, what === 'user')
        assert.deepEqual(await store.folders.list(account.id), [])
        assert.equal(await store.tidy(), 0)
      })
    }
  }
})
