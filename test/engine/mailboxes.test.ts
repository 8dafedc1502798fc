/** Creating a user with its email account: both are there, or neither. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { readConfig } from '../../engine/config.ts'
import { AppError, isAppError } from '../../engine/errors.ts'
import type { AccountEdit, ProbeResult } from '../../engine/accounts/types.ts'
import { createMailboxes } from '../../engine/mailboxes.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { createUndo } from '../../engine/creation-undo.ts'
import { openCredential, sealCredential } from '../../engine/secrets/seal.ts'
import { createSealer } from '../../engine/secrets/seal.ts'
import type { Store } from '../../engine/store/port.ts'
import { accountRecord, userRecord } from '../support/records.ts'
import { openTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'

const developer = { id: 'd'.repeat(24), apiKey: 'key', sealedSecret: '', statusCallbackUrl: null, createdAt: 1 }
const account = {
  email: 'Ann@mail.example',
  server: 'imap.mail.example',
  port: 993,
  useSsl: true,
  username: 'ann',
  credential: { kind: 'password', password: 'secret' },
} as const

const works: ProbeResult = { ok: true, log: '' }

/** A store; `wrap` puts something before some of its steps. */
async function openRig(
  t: TestContext,
  wrap: (store: Store) => Store = (store) => store,
  probe: ProbeResult | (() => Promise<ProbeResult>) = works,
) {
  const { store, remove } = await openTestStore()
  t.after(async () => {
    undo.close()
    await remove()
  })
  await store.developers.create(developer)
  const started: string[] = []
  const sealer = createSealer(Buffer.alloc(32, 7))
  const running = new Set<string>()
  const undo = createUndo(silentLogger, 20_000)
  const mailboxes = createMailboxes({
    config: readConfig({}),
    undo,
    store: wrap(store),
    sealer,
    developers: {
      setStatusCallbackUrl: (of, url) =>
        store.developers.edit(of.id, { statusCallbackUrl: url }).then((one) => one ?? assert.fail()),
    },
    accounts: {
      async probe(_developer, _settings, _credential, { onRotated } = {}) {
        const result = await (typeof probe === 'function' ? probe() : probe)
        if (result.rotated !== undefined) await onRotated?.(result.rotated)
        return result
      },
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
  return { store, mailboxes, started, running, sealer }
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

  test('whose outcome is not known is taken back as soon as the store answers', async (t) => {
    const away = new AppError('store_unavailable', 'the answer is lost')
    let open = false
    const answered = <T>(work: () => Promise<T>): Promise<T> => (open ? work() : Promise.reject(away))
    const { store, mailboxes, started } = await openRig(t, (real) => ({
      ...real,
      users: {
        ...real.users,
        create: (...step) => real.users.create(...step).then(() => Promise.reject(away)),
        createWithAccount: (...step) => real.users.createWithAccount(...step).then(() => Promise.reject(away)),
        undoCreate: (...step) => answered(() => real.users.undoCreate(...step)),
        remove: (id) => answered(() => real.users.remove(id)),
      },
    }))
    await assert.rejects(mailboxes.createUser(developer, { account }), (error) => error === away)
    await assert.rejects(mailboxes.createUser(developer, { email: 'ann@mail.example' }), (error) => error === away)
    const page = { limit: 10, offset: 0 }
    assert.equal((await store.users.list(developer.id, {}, page)).length, 2)
    open = true
    await until('both are taken back', async () => {
      const [users, accounts] = [await store.users.list(developer.id, {}, page), await store.accounts.page(null, 10)]
      return users.length + accounts.length === 0
    })
    assert.deepEqual(started, [])
  })

  test('takes the next label when another account has the first', async (t) => {
    const { store, mailboxes } = await openRig(t)
    const created = await mailboxes.createUser(developer, { account })
    assert(created.ok)
    const { user } = created.value
    const second = await mailboxes.createAccount(user, account)
    assert(second.ok)
    const labels = (await store.accounts.listByUser(user.id)).map(({ label }) => label).sort()
    assert.equal(new Set(labels).size, 2)
    assert.equal(labels[1], `${labels[0] ?? ''}::2`)
    const taken = await store.accounts.create({ ...second.value, id: 'e'.repeat(24) }).catch((error: unknown) => error)
    assert(isAppError(taken, 'conflict'))
  })
})

suite('an email account', () => {
  test('whose outcome is not known, or whose address could not be added, is taken back', async (t) => {
    const away = new AppError('store_unavailable', 'the answer is lost')
    const lost = new Set<string>()
    const { store, mailboxes, running } = await openRig(t, (real) => ({
      ...real,
      users: {
        ...real.users,
        addAddress: (...step) => (lost.has('address') ? Promise.reject(away) : real.users.addAddress(...step)),
      },
      accounts: {
        ...real.accounts,
        create: async (record) => {
          await real.accounts.create(record)
          if (lost.has('account')) throw away
        },
      },
    }))
    const made = await mailboxes.createUser(developer, { email: 'ann@mail.example' })
    assert(made.ok)
    const { user } = made.value
    for (const what of ['account', 'address']) {
      lost.clear()
      lost.add(what)
      await assert.rejects(mailboxes.createAccount(user, account), (error) => error === away)
      assert.deepEqual(await store.accounts.listByUser(user.id), [])
      assert.deepEqual([...running], [])
    }
  })

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
    // of a store across the network a removal takes longer than any number of turns that is fixed here
    for (
      turns = 0;
      turns < 40 || (!outcomes.has('not_found') && turns < 100_000);
      turns += Math.ceil(turns / 20) || 1
    ) {
      const made = await mailboxes.createUser(developer, { account })
      assert(made.ok)
      const { user } = made.value
      const creation = mailboxes.createAccount(user, account).then(
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
    await Promise.all(emails.map((email) => mailboxes.createAccount(user, { ...account, email })))
    const stored = await store.users.get(developer.id, user.id)
    assert.deepEqual([...(stored?.emailAddresses ?? [])].sort(), ['ann@mail.example', ...emails])
  })
})

/** Whoever names another place gives it with the edit. */
const credential = { kind: 'password', password: 'newer' } as const

suite('an edit to another host or username', () => {
  test('that cannot be stored leaves the account as it was, and at work', async (t) => {
    const away = new AppError('store_unavailable', 'the database does not answer')
    const { store, mailboxes, running } = await openRig(t, (inner) => ({
      ...inner,
      sync: { ...inner.sync, replaceMailbox: () => Promise.reject(away) },
    }))
    const made = await mailboxes.createUser(developer, { account })
    assert(made.ok && made.value.account !== null)
    const stored = made.value.account
    await assert.rejects(mailboxes.editAccount(stored, { username: 'bob', credential }), away)
    assert.deepEqual(await store.accounts.get(stored.id), stored)
    assert.deepEqual([...running], [stored.id])
  })

  test('is one step of the store; one that names the same again, or other settings, is an edit', async (t) => {
    const { store, mailboxes, running } = await openRig(t)
    const made = await mailboxes.createUser(developer, { account })
    assert(made.ok && made.value.account !== null)
    const stored = made.value.account
    const same = await mailboxes.editAccount(stored, {
      username: 'ann',
      server: 'imap.mail.example',
      port: 143,
      useSsl: false,
      credential,
    })
    assert(same.ok)
    assert.deepEqual([same.value.port, same.value.epoch, same.value.remapSince], [143, 0, undefined])
    const other = await mailboxes.editAccount(same.value, { server: 'imap.other.example', credential })
    assert(other.ok)
    assert.deepEqual([other.value.server, other.value.username, other.value.epoch], ['imap.other.example', 'ann', 1])
    assert.deepEqual(await store.accounts.get(stored.id), other.value)
    assert.deepEqual([...running], [stored.id])
  })
})

suite('an edit while another one tries its login', () => {
  /** The account, and an edit of it whose login goes on until `release`. */
  async function stage(t: TestContext, edit: AccountEdit) {
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    let slow = false
    const { store, mailboxes, sealer } = await openRig(t, undefined, async () => {
      if (slow) {
        slow = false
        await released
      }
      return works
    })
    const made = await mailboxes.createUser(developer, { account })
    assert(made.ok && made.value.account !== null)
    const known = made.value.account
    slow = true
    const late = mailboxes.editAccount(known, edit)
    await until('its login hangs', () => !slow)
    const stored = async () => (await store.accounts.get(known.id)) ?? assert.fail()
    return { mailboxes, sealer, known, late, release, stored }
  }

  for (const [what, other] of [
    ['server', { server: 'imap.other.example', credential }],
    ['port', { port: 143, useSsl: false, credential }],
  ] as const) {
    test(`leaves the ${what} that was written meanwhile: conflict`, async (t) => {
      const { mailboxes, known, late, release, stored } = await stage(t, { credential, username: 'bob' })
      assert((await mailboxes.editAccount(known, other)).ok)
      const meanwhile = await stored()
      release(undefined)
      await assert.rejects(late, { code: 'conflict' })
      assert.deepEqual(await stored(), meanwhile)
    })
  }

  test('adds to what was written meanwhile, and is no conflict with the same edit', async (t) => {
    const edit = { credential, server: 'imap.other.example', options: { syncAllFolders: true } }
    const { mailboxes, sealer, known, late, release, stored } = await stage(t, edit)
    assert((await mailboxes.editAccount(known, { options: { rawFileList: true } })).ok)
    assert((await mailboxes.editAccount(known, { server: edit.server, credential })).ok)
    release(undefined)
    assert((await late).ok)
    const { server, options, epoch, ...rest } = await stored()
    assert.deepEqual([server, options.syncAllFolders, options.rawFileList, epoch], [edit.server, true, true, 1])
    assert.deepEqual(openCredential(sealer, rest), credential)
  })

  test('comes too late for an account that is removed meanwhile', async (t) => {
    const { mailboxes, known, late, release } = await stage(t, { credential })
    await mailboxes.removeAccount(known)
    release(undefined)
    await assert.rejects(late, { code: 'not_found' })
  })
})

suite('a refresh token that the provider replaces during the trial login', () => {
  const given = { kind: 'oauth2', refreshToken: 'refresh-1', providerKey: 'key' } as const
  const rotated = { ...given, refreshToken: 'refresh-2' }

  async function stage(t: TestContext, probe: ProbeResult) {
    const rig = await openRig(t, undefined, probe)
    const provider = { developerId: developer.id, consumerKey: 'key', sealedSecret: '', shownSecret: '', createdAt: 1 }
    await rig.store.providers.put({ ...provider, type: 'GMAIL_OAUTH2' })
    const stored = async (id: string) => {
      const found = await rig.store.accounts.get(id)
      return found === null ? null : openCredential(rig.sealer, found)
    }
    return { ...rig, stored }
  }

  test('is what a new account has, and what an edit gives it', async (t) => {
    const { mailboxes, store, stored } = await stage(t, { ok: true, log: '', rotated })
    const created = await mailboxes.createUser(developer, { account: { ...account, credential: given } })
    assert(created.ok && created.value.account !== null)
    const { user } = created.value
    assert.deepEqual(await stored(created.value.account.id), rotated)
    const added = await mailboxes.createAccount(user, { ...account, credential: given })
    assert(added.ok)
    assert.deepEqual(await stored(added.value.id), rotated)
    const password = await mailboxes.createAccount(user, account)
    assert(password.ok)
    const other = (await store.accounts.get(password.value.id)) ?? password.value
    assert((await mailboxes.editAccount(other, { credential: given })).ok)
    assert.deepEqual(await stored(password.value.id), rotated)
  })

  for (const ok of [true, false]) {
    test(`is kept when the settings are given again and the login ${ok ? 'works' : 'fails'}`, async (t) => {
      const failed = { ok: false, failure: 'tls', message: 'no TLS', log: '', rotated } as const
      const probe: ProbeResult = ok ? { ok, log: '', rotated } : failed
      const { mailboxes, store, stored, sealer } = await stage(t, probe)
      const user = userRecord(developer.id)
      const mine = accountRecord(user, { authType: 'oauth2', providerKey: 'key' })
      const sealedCredential = sealCredential(sealer, mine.id, given)
      await store.users.createWithAccount(user, { ...mine, sealedCredential })
      const edited = await mailboxes.editAccount({ ...mine, sealedCredential }, { port: mine.port })
      assert.equal(edited.ok, ok)
      assert.deepEqual(await stored(mine.id), rotated)
    })
  }
})
