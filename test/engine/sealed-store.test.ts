/** A former secret that is taken away while something is still sealed with it: the start is refused. Both stores. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { readConfig } from '../../engine/config.ts'
import { createDevelopers } from '../../engine/developers.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { openSealedStore, reseal } from '../../engine/sealed-store.ts'
import { createSealer, keyFrom } from '../../engine/secrets/seal.ts'
import type { Store } from '../../engine/store/port.ts'
import { webhookRecord } from '../store/contract/records.ts'
import { accountRecord, developerRecord, userRecord } from '../support/records.ts'
import { chosenStore } from '../support/store-choice.ts'

/** Keys, not pass phrases: those cost a derivation at each start. */
const [former, next] = ['f0', 'a1'].map((byte) => byte.repeat(32)) as [string, string]
const sealers = { former: createSealer(keyFrom(former)), next: createSealer(keyFrom(next)) }
const kinds = ['developer', 'account', 'webhook', 'provider'] as const

type Open = (env: Readonly<Record<string, string>>) => ReturnType<typeof openSealedStore>

function places(t: TestContext): Open {
  const folder = mkdtempSync(join(tmpdir(), 'mr-sealed-'))
  const store = chosenStore()
  t.after(async () => {
    await store.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  const base = { MAILROOM_DATA_DIR: folder, MAILROOM_SQLITE_SYNC: 'off', ...store.env }
  return (env) => openSealedStore(readConfig({ ...base, ...env }), silentLogger, undefined, () => undefined)
}

/** The first developer has the new key, as after a start with both; of the rest only `old` has the former one. */
async function fill(store: Store, old: readonly (typeof kinds)[number][]): Promise<void> {
  const seal = (kind: (typeof kinds)[number], id: string): string =>
    sealers[old.includes(kind) ? 'former' : 'next'].seal('{}', id)
  await store.developers.create({ ...developerRecord({ id: 'd1' }), sealedSecret: sealers.next.seal('x', 'd1') })
  const second = developerRecord({ id: 'd2', apiKey: 'second' })
  await store.developers.create({ ...second, sealedSecret: seal('developer', 'd2') })
  const user = userRecord('d1')
  await store.users.create(user)
  const account = accountRecord(user, { id: 'a1' })
  await store.accounts.create({ ...account, sealedCredential: seal('account', 'a1') })
  const sealedSecrets = seal('webhook', 'w1')
  await store.webhooks.create(webhookRecord('d1', { id: 'w1', userId: user.id, sealedSecrets }))
  const provider = { developerId: 'd2', consumerKey: 'key', shownSecret: '', type: 'GMAIL_OAUTH2', createdAt: 1 }
  await store.providers.put({ ...provider, sealedSecret: seal('provider', 'd2:key') })
}

async function filled(t: TestContext, old: readonly (typeof kinds)[number][]): Promise<Open> {
  const open = places(t)
  const { store } = await open({ MAILROOM_SECRET: next })
  await fill(store, old)
  await store.close()
  return open
}

async function opens(open: Open, env: Readonly<Record<string, string>>): Promise<void> {
  const { store } = await open(env)
  await store.close()
}

suite('a former secret that is taken away', () => {
  for (const kind of kinds) {
    test(`too early for one ${kind}: the start is refused, and says what to run`, async (t) => {
      const open = await filled(t, [kind])
      await assert.rejects(open({ MAILROOM_SECRET: next }), ({ message }: Error) => {
        assert.match(message, /^MAILROOM_SECRET_OLD: .*\b1 sealed with the key [0-9a-f]{8}\b.*`mailroom reseal`/)
        assert(message.includes(sealers.former.keyId) && !message.includes('the former secret'))
        return true
      })
      await opens(open, { MAILROOM_SECRET: next, MAILROOM_SECRET_OLD: former })
      await opens(open, { MAILROOM_SECRET: next, MAILROOM_SECRET_LOST: '1' })
    })
  }

  test('may go when the command says so, not while something is left', async (t) => {
    const open = await filled(t, kinds)
    const given = await open({ MAILROOM_SECRET: next, MAILROOM_SECRET_OLD: former })
    const { left, done } = await reseal(given, 2)
    await given.store.close()
    assert.deepEqual({ left, done }, { left: 2, done: false })
    await assert.rejects(open({ MAILROOM_SECRET: next }), /\b2 sealed with/)
    const again = await open({ MAILROOM_SECRET: next, MAILROOM_SECRET_OLD: former })
    const rest = await reseal(again, 100)
    await again.store.close()
    assert.deepEqual([rest.left, rest.done], [0, true])
    await opens(open, { MAILROOM_SECRET: next })
  })

  test('values that name no key are tried', async (t) => {
    const open = await filled(t, [])
    const given = await open({ MAILROOM_SECRET: next })
    const unnamed = (kind: 'former' | 'next'): string =>
      sealers[kind].seal('{}', 'a1').replace(/^v2\.[0-9a-f]{8}\./, 'v1.')
    await given.store.accounts.edit('a1', { sealedCredential: unnamed('next') })
    await given.store.close()
    const second = await open({ MAILROOM_SECRET: next })
    await second.store.accounts.edit('a1', { sealedCredential: unnamed('former') })
    await second.store.close()
    await assert.rejects(open({ MAILROOM_SECRET: next }), /\b1 sealed with the key v1\b/)
  })
})

suite('a secret that is lost before anything was sealed anew', () => {
  const given = { MAILROOM_API_KEY: 'first', MAILROOM_API_SECRET: 'a secret of the environment' }
  for (const [name, env] of [
    ['has MAILROOM_API_SECRET again', given],
    ['has another secret, shown once', {}],
  ] as const) {
    test(`MAILROOM_SECRET_LOST=1 starts, and the first developer ${name}`, async (t) => {
      const open = places(t)
      const start = async (settings: Readonly<Record<string, string>>) => {
        const sealed = await open({ ...env, ...settings })
        try {
          const developers = createDevelopers({ ...sealed, config: readConfig({ ...env, ...settings }) })
          const shown = await developers.ensureFirst()
          const first = (await sealed.store.developers.first()) ?? assert.fail('no developer')
          assert.equal(await sealed.store.developers.count(), 1)
          return { shown, first: await developers.authenticate(first.apiKey) }
        } finally {
          await sealed.store.close()
        }
      }
      const before = await start({ MAILROOM_SECRET: former })
      await assert.rejects(open({ ...env, MAILROOM_SECRET: next }), /^AppError: MAILROOM_SECRET: not the one/)
      const lost = await start({ MAILROOM_SECRET: next, MAILROOM_SECRET_LOST: '1' })
      assert.equal(lost.first?.developer.apiKey, before.first?.developer.apiKey)
      assert.equal(lost.first?.secret, lost.shown?.apiSecret ?? given.MAILROOM_API_SECRET)
      assert.equal(lost.shown?.apiKey, before.shown?.apiKey)
      assert.equal(lost.first.secret === before.first?.secret, env === given)
      const again = await start({ MAILROOM_SECRET: next, MAILROOM_SECRET_LOST: '1' })
      assert.deepEqual([again.shown, again.first?.secret], [null, lost.first.secret])
      assert.equal((await start({ MAILROOM_SECRET: next })).first?.secret, lost.first.secret)
    })
  }
})
