/** Sessions of a refresh token: renewed before their access token ends, and the newest refresh token is kept. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { keepRotated, openCredential, sealCredential } from '../../../engine/secrets/seal.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { granted, startTokenEndpoint } from '../../support/token-endpoint.ts'
import { until } from '../../support/until.ts'
import { accountId, letter, sealer, type StageOptions } from './stage.ts'
import { openAccounts } from './running.ts'

const kind = 'oauth2'
const providerKey = 'client-1'

/** An account that is not started yet; tokens are good for `seconds`. refresh-1 brings access-1 and refresh-2 … */
async function stage(t: TestContext, seconds: number, options: StageOptions = {}) {
  const endpoint = await startTokenEndpoint()
  const running = await openAccounts(t, {
    ...options,
    settings: { MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url, MAILROOM_OAUTH_TIMEOUT: '20s', ...options.settings },
  })
  running.parts.defer(() => endpoint.close())
  const ends = new Map<string, number>()
  endpoint.answer(({ refresh_token: old = '' }) => {
    const number = Number(old.slice('refresh-'.length))
    ends.set(`access-${number}`, Date.now() + seconds * 1000)
    return granted(`access-${number}`, { expires_in: seconds, refresh_token: `refresh-${number + 1}` })
  })
  running.server.setAccessToken('ann', (token) => Promise.resolve(Date.now() < (ends.get(token) ?? 0)))
  const { developerId } = running.account
  const sealedSecret = sealer.seal('client-secret', `${developerId}:${providerKey}`)
  const provider = { developerId, consumerKey: providerKey, sealedSecret, shownSecret: '', createdAt: 1 }
  await running.store.providers.put({ ...provider, type: 'PROVIDER_A_OAUTH2' })
  const sealed = (refreshToken: string): string =>
    sealCredential(sealer, accountId, { kind, refreshToken, providerKey })
  const account = { ...running.account, sealedCredential: sealed('refresh-1'), authType: kind, providerKey } as const
  await running.store.accounts.edit(accountId, {
    sealedCredential: account.sealedCredential,
    authType: kind,
    providerKey,
  })
  return {
    ...{ running, endpoint, ends, sealed },
    start: () => running.accounts.start(account),
    stored: async () => openCredential(sealer, await running.record()),
  }
}

suite('a session that lives longer than its access token', () => {
  for (const mechanism of ['XOAUTH2', 'OAUTHBEARER']) {
    test(`${mechanism}: is renewed in time, and each message is told once`, { timeout: 60_000 }, async (t) => {
      const capabilities = [...fullCapabilities.filter((name) => name !== 'AUTH=XOAUTH2'), `AUTH=${mechanism}`]
      // Nothing but the end of the token ends an IDLE.
      const settings = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_FOLDER_POLL_COLD: '1h', MAILROOM_FOLDER_LIST: '1h' }
      const { running, endpoint, ends, start, stored } = await stage(t, 4, { capabilities, settings })
      const { server } = running
      const logins = () => server.log.filter(({ line }) => line.includes(`AUTHENTICATE ${mechanism}`))
      const late: string[] = []
      let [looked, stoodStillAt] = [performance.now(), 0]
      const watch = setInterval(() => {
        const at = performance.now()
        if (at - looked > 300) {
          stoodStillAt = at
          // So did the service between a token and the plan for the next one.
          for (const [token, end] of ends) if (end > Date.now() - (at - looked)) ends.set(token, end + (at - looked))
        }
        looked = at
        // The machine stood still: the renewal has its turn first.
        if (at - stoodStillAt < 1000) return
        for (const { connection, line } of logins()) {
          const words = Buffer.from(line.split(' ').at(-1) ?? '', 'base64').toString('utf8')
          const token = /Bearer ([^\x01]*)/.exec(words)?.[1] ?? ''
          const isOpen = server.connections.some(({ id }) => id === connection)
          if (isOpen && Date.now() >= (ends.get(token) ?? 0)) late.push(token)
        }
      }, 50)
      t.after(() => clearInterval(watch))
      start()
      await running.tagged('watching')
      await running.settled()
      const sent: string[] = []
      const giveUpAt = performance.now() + 30_000
      while (ends.size < 4) {
        assert(performance.now() < giveUpAt, `after ${ends.size} tokens there was no other one`)
        // Nothing comes while the second token is good: the session is renewed all the same.
        if (ends.size !== 2) {
          sent.push(`m${sent.length + 1}`)
          server.append('ann', 'INBOX', letter(String(sent.at(-1))))
        }
        await pause(200)
      }
      await running.tells(sent.map((subject) => `received ${subject} INBOX`))
      assert.deepEqual(late, [], 'a session was open after the end of its token')
      assert(ends.size <= 5, 'tokens are not asked for more often than they end')
      assert.deepEqual(running.listener.statuses, [])
      assert.equal((await running.record()).statusMessage, null)
      const newest = `refresh-${endpoint.asked.length + 1}`
      await until('the newest in the store', async () => JSON.stringify(await stored()).includes(newest))
      const asked = endpoint.asked.map((form) => form['refresh_token'])
      assert.deepEqual(asked, [...new Set(asked)], 'no refresh token is used twice')
    })
  }
})

suite('a refresh token that the provider has replaced', () => {
  const given = { kind, refreshToken: 'refresh-1', providerKey } as const
  const replaced = { ...given, refreshToken: 'refresh-2' }

  test('is kept, though the record was sealed anew meanwhile', async (t) => {
    const { running, sealed, stored } = await stage(t, 3600)
    const before = await running.record()
    await running.store.accounts.edit(accountId, { sealedCredential: sealed('refresh-1') })
    await keepRotated({ sealer, store: running.store }, before, replaced)
    assert.deepEqual(await stored(), replaced)
  })

  test('does not take the place of a credential that was given meanwhile', async (t) => {
    const { running, stored } = await stage(t, 3600)
    const before = await running.record()
    const password = { kind: 'password', password: 'secret' } as const
    await running.store.accounts.edit(accountId, { sealedCredential: sealCredential(sealer, accountId, password) })
    await keepRotated({ sealer, store: running.store }, before, replaced)
    assert.deepEqual(await stored(), password)
  })

  test('is kept after a check of an account that has no session', async (t) => {
    const { running, stored } = await stage(t, 3600)
    await running.accounts.checkNow(accountId)
    assert.deepEqual(await stored(), replaced)
  })

  test('is stored before the session is opened with what came with it', async (t) => {
    const slow: StageOptions['wrap'] = (store) => ({
      ...store,
      sealed: { ...store.sealed, account: (...step) => pause(300).then(() => store.sealed.account(...step)) },
    })
    const { running, start, stored } = await stage(t, 3600, { wrap: slow })
    let atLogin: unknown
    running.server.setAccessToken('ann', async () => {
      atLogin ??= await stored()
      return true
    })
    start()
    await running.tagged('watching')
    assert.deepEqual(atLogin, replaced)
  })
})

suite('a token endpoint that hangs', () => {
  test('says nothing against the account: it stays OK, says why, and goes on when it is answered', async (t) => {
    const { running, endpoint, start } = await stage(t, 3600, { settings: { MAILROOM_OAUTH_TIMEOUT: '1s' } })
    running.server.setAccessToken('ann', 'access-9')
    endpoint.answer(() => null)
    start()
    await until('the reason', async () => /OAuth provider/.test((await running.record()).statusMessage ?? ''))
    assert.equal((await running.record()).status, 'OK')
    endpoint.answer(() => granted('access-9'))
    await running.tagged('watching')
    await until('no reason', async () => (await running.record()).statusMessage === null)
    assert.deepEqual(running.listener.statuses, [])
  })
})
