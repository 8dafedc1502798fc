/** Operators: the console's password and sessions, tokens of the admin API, developers' keys. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createDevelopers } from '../../engine/developers.ts'
import { isAppError, readConfig } from '../../engine/index.ts'
import { checkScope, createOperators } from '../../engine/operators.ts'
import { createSealer } from '../../engine/secrets/seal.ts'
import { openTestStore } from '../support/test-store.ts'

const hour = 3_600_000
const password = 'a password of an operator'

async function stage(t: { after(end: () => Promise<void>): void }, env: Readonly<Record<string, string>> = {}) {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const clock = { at: Date.UTC(2026, 0, 1) }
  const open = (more: Readonly<Record<string, string>> = {}) =>
    createOperators({ store, config: readConfig({ ...env, ...more }), now: () => clock.at })
  return { store, clock, open, operators: open() }
}

suite('the console', () => {
  test('a generated password is shown once and works after a restart; another does not', async (t) => {
    const { operators, open } = await stage(t)
    const generated = await operators.ensurePassword()
    assert(generated !== null && generated.length >= 16)
    assert.equal(await operators.ensurePassword(), null)
    assert.equal(await open().ensurePassword(), null)
    assert((await open().login(generated)) !== null)
    assert.equal(await operators.login(`${generated}x`), null)
    assert.equal(await operators.login(''), null)
    assert.deepEqual(await operators.tokens(), [])
  })

  test('a try does not hold the event loop while its key is derived', async (t) => {
    const { operators } = await stage(t)
    await operators.ensurePassword()
    let [turns, tried] = [0, false]
    const trying = operators.login('a guess').finally(() => (tried = true))
    for (; !tried; turns += 1) await nextTurn()
    assert.equal(await trying, null)
    assert(turns > 50, `${turns} turns`)
  })

  test('MAILROOM_ADMIN_PASSWORD stands above a generated one', async (t) => {
    const { operators, open } = await stage(t)
    const generated = await operators.ensurePassword()
    const set = open({ MAILROOM_ADMIN_PASSWORD: password })
    assert.equal(await set.ensurePassword(), null)
    assert((await set.login(password)) !== null)
    assert.equal(await set.login(generated ?? ''), null)
  })

  test('is off where others may connect and no password is set', async (t) => {
    const { operators } = await stage(t, { MAILROOM_HOST: '0.0.0.0' })
    assert.equal(operators.consoleOn, false)
    assert.equal(await operators.ensurePassword(), null)
    assert.equal(await operators.login(''), null)
    const { open } = await stage(t, { MAILROOM_HOST: '0.0.0.0' })
    assert.equal(open({ MAILROOM_ADMIN_PASSWORD: password }).consoleOn, true)
    for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost'])
      assert.equal(open({ MAILROOM_HOST: host }).consoleOn, true)
  })

  test('a session ends with its time, by logout, and when a hundred newer ones are there', async (t) => {
    const { open, clock } = await stage(t)
    const operators = open({ MAILROOM_ADMIN_PASSWORD: password })
    const login = async () => {
      clock.at += 1
      const session = await operators.login(password)
      assert(session !== null)
      return session
    }
    const first = await login()
    assert.equal((await operators.session(first.id))?.csrf, first.csrf)
    assert.notEqual((await login()).csrf, first.csrf)
    clock.at += 12 * hour - 2
    assert((await operators.session(first.id)) !== null)
    clock.at += 1
    assert.equal(await operators.session(first.id), null)
    const second = await login()
    await operators.logout(second.id)
    assert.equal(await operators.session(second.id), null)
    const third = await login()
    for (let count = 0; count < 99; count += 1) await login()
    assert((await operators.session(third.id)) !== null)
    await login()
    assert.equal(await operators.session(third.id), null)
  })
})

suite('tokens of the admin API', () => {
  test('open what their scopes name until they are revoked; the store has no token', async (t) => {
    const { operators, store } = await stage(t)
    const { record, token } = await operators.createToken('grafana', ['read'])
    assert.deepEqual((await operators.authenticate(token))?.scopes, ['read'])
    // The secret itself may hold a '_'.
    const secret = token.slice(`mra_${record.id}_`.length)
    assert(secret.length > 20 && !JSON.stringify(await store.operators.list()).includes(secret))
    for (const wrong of ['', 'mra_', `${token}x`, token.replace(/.$/, (sign) => (sign === 'A' ? 'B' : 'A'))])
      assert.equal(await operators.authenticate(wrong), null)
    checkScope(record, 'read')
    assert.throws(
      () => checkScope(record, 'act'),
      (error) => isAppError(error, 'forbidden') && error.message.includes('act'),
    )
    const revoked = await operators.revokeToken(record.id)
    assert.equal(await operators.authenticate(token), null)
    assert.equal((await operators.revokeToken(record.id)).revokedAt, revoked.revokedAt)
    await assert.rejects(operators.revokeToken('0'.repeat(24)), (error) => isAppError(error, 'not_found'))
  })

  test('the password of the console is none of them', async (t) => {
    const { operators } = await stage(t)
    await operators.ensurePassword()
    await assert.rejects(operators.revokeToken('console'), (error) => isAppError(error, 'not_found'))
    assert((await operators.ensurePassword()) === null)
  })
})

suite('keys of developers', () => {
  test('are created, rotated, revoked and restored, each at once', async (t) => {
    const { store } = await stage(t)
    const developers = createDevelopers({ store, sealer: createSealer(Buffer.alloc(32, 1)), config: readConfig({}) })
    const { developer, secret } = await developers.create('Example')
    assert.equal(developer.name, 'Example')
    assert.equal((await developers.authenticate(developer.apiKey))?.secret, secret)
    const rotated = await developers.rotate(developer.id)
    assert.notEqual(rotated.secret, secret)
    assert.equal((await developers.authenticate(developer.apiKey))?.secret, rotated.secret)
    await developers.setRevoked(developer.id, true)
    assert.equal(await developers.authenticate(developer.apiKey), null)
    assert.equal(await developers.get(developer.id), null, 'its download links are void')
    await developers.setRevoked(developer.id, false)
    assert.equal((await developers.get(developer.id))?.secret, rotated.secret)
    assert.equal((await developers.authenticate(developer.apiKey))?.secret, rotated.secret)
    const fixed = createDevelopers({
      store,
      sealer: createSealer(Buffer.alloc(32, 1)),
      config: readConfig({ MAILROOM_API_KEY: developer.apiKey, MAILROOM_API_SECRET: 'a secret of the environment' }),
    })
    await assert.rejects(fixed.rotate(developer.id), (error) => isAppError(error, 'conflict'))
    for (const work of [() => developers.rotate('x'), () => developers.setRevoked('x', true)])
      await assert.rejects(work, (error) => isAppError(error, 'not_found'))
  })

  test('a key that is revoked while it is being read is refused from then on', async (t) => {
    const { store } = await stage(t)
    const [read, goOn] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    const byKey = async (apiKey: string) => {
      const found = await store.developers.byKey(apiKey)
      read.resolve(undefined)
      await goOn.promise
      return found
    }
    const developers = createDevelopers({
      store: { ...store, developers: { ...store.developers, byKey } },
      sealer: createSealer(Buffer.alloc(32, 1)),
      config: readConfig({}),
    })
    const { developer } = await developers.create('shop')
    const call = developers.authenticate(developer.apiKey)
    await read.promise
    await developers.setRevoked(developer.id, true)
    goOn.resolve(undefined)
    await call
    assert.equal(await developers.authenticate(developer.apiKey), null)
    assert.equal(await developers.get(developer.id), null)
  })
})
