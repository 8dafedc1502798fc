/** Creating a user with its email account: both are there, or neither. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { readConfig } from '../../engine/config.ts'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createMailboxes } from '../../engine/mailboxes.ts'
import { createSealer } from '../../engine/secrets/seal.ts'
import type { Store } from '../../engine/store/port.ts'
import { openTestStore } from '../support/test-store.ts'

const developer = { id: 'd'.repeat(24), apiKey: 'key', sealedSecret: '', statusCallbackUrl: null, createdAt: 1 }
const account = {
  email: 'Ann@mail.example',
  server: 'imap.mail.example',
  port: 993,
  useSsl: true,
  username: 'ann',
  credential: { kind: 'password', password: 'secret' },
} as const

/** A store; `wrap` puts something before some of its steps. */
async function openRig(t: TestContext, wrap: (store: Store) => Store = (store) => store) {
  const { store, remove } = await openTestStore()
  t.after(remove)
  await store.developers.create(developer)
  const started: string[] = []
  const running = new Set<string>()
  const mailboxes = createMailboxes({
    config: readConfig({}),
    store: wrap(store),
    sealer: createSealer(Buffer.alloc(32, 7)),
    developers: { setStatusCallbackUrl: (of, url) => store.developers.setStatusCallbackUrl(of.id, url) },
    accounts: {
      probe: () => Promise.resolve({ ok: true, log: '', capabilities: [] }),
      start: ({ id }) => {
        started.push(id)
        running.add(id)
      },
      stop: (id) => Promise.resolve(void running.delete(id)),
      view: () => null,
      wake: () => undefined,
    },
    webhooks: { forget: () => undefined },
  })
  return { store, mailboxes, started, running }
}

suite('a user with an email account', () => {
  test('is stored with it, and the account is started', async (t) => {
    const { store, mailboxes, started } = await openRig(t)
    const created = await mailboxes.createUser(developer, { account })
    assert(created.ok)
    const { user, account: stored } = created.value
    assert.deepEqual(await store.users.get(developer.id, user.id), user)
    assert.deepEqual(await store.accounts.listByUser(user.id), [stored])
    assert.deepEqual(started, [stored?.id])
  })

  test('is not there when its account could not be stored, and the caller hears why', async (t) => {
    const away = new AppError('store_unavailable', 'the database does not answer')
    const { store, mailboxes, started } = await openRig(t, (real) => ({
      ...real,
      users: { ...real.users, createWithAccount: () => Promise.reject(away) },
    }))
    await assert.rejects(mailboxes.createUser(developer, { account }), (error) => error === away)
    assert.deepEqual(await store.users.list(developer.id, {}, { limit: 10, offset: 0 }), [])
    assert.deepEqual(started, [])
  })

  test('takes the next label when another account has the first', async (t) => {
    const { store, mailboxes } = await openRig(t)
    const created = await mailboxes.createUser(developer, { account })
    assert(created.ok)
    const { user } = created.value
    const second = await mailboxes.createAccount(developer, user, account)
    assert(second.ok)
    const labels = (await store.accounts.listByUser(user.id)).map(({ label }) => label).sort()
    assert.equal(new Set(labels).size, 2)
    assert.equal(labels[1], `${labels[0] ?? ''}::2`)
    const taken = await store.accounts.create({ ...second.value, id: 'e'.repeat(24) }).catch((error: unknown) => error)
    assert(isAppError(taken, 'conflict'))
  })
})

suite('an email account', () => {
  test('does not outlive its user, wherever its creation is when the user is removed', async (t) => {
    let turns = 0
    const { store, mailboxes, running } = await openRig(t, (real) => ({
      ...real,
      accounts: {
        ...real.accounts,
        // each try is some turns of the event loop later than the one before
        create: async (record) => {
          for (let turn = 0; turn < turns; turn += 1) await immediate()
          await real.accounts.create(record)
          for (let turn = 0; turn < turns % 4; turn += 1) await immediate()
        },
      },
    }))
    const outcomes = new Set<string>()
    for (turns = 0; turns < 40; turns += 1) {
      const made = await mailboxes.createUser(developer, { account })
      assert(made.ok)
      const { user } = made.value
      const creation = mailboxes.createAccount(developer, user, account).then(
        () => 'created',
        (error: unknown) => (isAppError(error) ? error.code : String(error)),
      )
      await mailboxes.removeUser(user)
      outcomes.add(await creation)
      assert.deepEqual(await store.accounts.listByUser(user.id), [])
      assert.deepEqual([...running], [], `after ${turns} turns`)
    }
    assert(outcomes.delete('not_found'), 'some came too late')
    outcomes.delete('created')
    assert.deepEqual([...outcomes], [])
  })

  test('adds its address to the user, also when several come at the same time', async (t) => {
    const { store, mailboxes } = await openRig(t)
    const made = await mailboxes.createUser(developer, { account })
    assert(made.ok)
    const { user } = made.value
    const emails = ['b', 'c', 'd', 'e', 'f', 'g'].map((name) => `${name}@mail.example`)
    await Promise.all(emails.map((email) => mailboxes.createAccount(developer, user, { ...account, email })))
    const stored = await store.users.get(developer.id, user.id)
    assert.deepEqual([...(stored?.emailAddresses ?? [])].sort(), ['ann@mail.example', ...emails])
  })
})
