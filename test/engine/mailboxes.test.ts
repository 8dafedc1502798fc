/** Creating a user with its email account: both are there, or neither. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { readConfig } from '../../engine/config.ts'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createMailboxes } from '../../engine/mailboxes.ts'
import { createSealer } from '../../engine/secrets/seal.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import type { AccountStore } from '../../engine/store/port.ts'

const developer = { id: 'd'.repeat(24), apiKey: 'key', sealedSecret: '', statusCallbackUrl: null, createdAt: 1 }
const account = {
  email: 'Ann@mail.example',
  server: 'imap.mail.example',
  port: 993,
  useSsl: true,
  username: 'ann',
  credential: { kind: 'password', password: 'secret' },
} as const

/** The embedded store; `create` stands in for its writing of an account. */
async function openRig(t: TestContext, create?: AccountStore['create']) {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-mailboxes-'))
  const store = await createSqliteStore({ path: join(folder, 'mailroom.sqlite'), sync: 'off' })
  t.after(async () => {
    await store.close()
    await rm(folder, { recursive: true })
  })
  await store.developers.create(developer)
  const started: string[] = []
  const mailboxes = createMailboxes({
    config: readConfig({}),
    store: { ...store, accounts: { ...store.accounts, ...(create === undefined ? {} : { create }) } },
    sealer: createSealer(Buffer.alloc(32, 7)),
    developers: { setStatusCallbackUrl: (of, url) => store.developers.setStatusCallbackUrl(of.id, url) },
    accounts: {
      probe: () => Promise.resolve({ ok: true, log: '', capabilities: [] }),
      start: ({ id }) => void started.push(id),
      stop: () => Promise.resolve(),
      wake: () => undefined,
    },
    webhooks: { forget: () => undefined },
  })
  return { store, mailboxes, started }
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
    const { store, mailboxes, started } = await openRig(t, () => Promise.reject(away))
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
    const labels = (await store.accounts.listByUser(user.id)).map(({ label }) => label)
    assert.equal(new Set(labels).size, 2)
    assert.equal(labels[1], `${labels[0] ?? ''}::2`)
    const taken = await store.accounts.create({ ...second.value, id: 'e'.repeat(24) }).catch((error: unknown) => error)
    assert(isAppError(taken, 'conflict'))
  })
})
