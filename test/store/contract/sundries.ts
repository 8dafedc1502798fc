/** Connect tokens, OAuth providers, nonces and the call log. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId, newToken } from '../../../engine/store/ids.ts'
import type { AuditRecord, CallLogRecord, OAuthProviderRecord } from '../../../engine/store/records.ts'
import { createUser, rejectsWith, type Subject } from './mailbox.ts'
import { epochStart, tokenRecord } from './records.ts'

export function settingsContract({ store }: Subject): void {
  describe('settings', () => {
    test('are written over, listed by their ids, and removed once', async () => {
      const settings = [
        { id: 'MAILROOM_CALL_LOG_RETENTION', value: 604_800_000, setAt: 2 },
        { id: 'pace:imap.example.com', value: 0, setAt: 1 },
      ]
      await store.settings.put({ id: 'pace:imap.example.com', value: 7, setAt: 0 })
      for (const setting of settings.toReversed()) await store.settings.put(setting)
      assert.deepEqual(await store.settings.list(), settings)
      assert.equal(await store.settings.remove('pace:imap.example.com'), true)
      assert.equal(await store.settings.remove('pace:imap.example.com'), false)
      assert.deepEqual(await store.settings.list(), settings.slice(0, 1))
    })
  })
}

export function tokensContract({ store }: Subject): void {
  describe('connect tokens', () => {
    test('are found by the developer, and by the token alone', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      assert.deepEqual(await store.tokens.get(token.developerId, token.token), token)
      assert.equal(await store.tokens.get(newId(), token.token), null)
      assert.deepEqual(await store.tokens.find(token.token), token)
      assert.equal(await store.tokens.find(newToken()), null)
      await rejectsWith(store.tokens.create(token), 'conflict')
    })

    test('are listed newest first by owner and version', async () => {
      const { developerId, id: userId } = await createUser(store)
      const accountId = newId()
      const tokens = [
        tokenRecord(developerId),
        tokenRecord(developerId, { userId, version: '2.0' }),
        tokenRecord(developerId, { userId, accountId }),
      ] as const
      for (const token of tokens) await store.tokens.create(token)
      await store.tokens.create(tokenRecord(newId(), { userId, accountId }))
      const [first, second, third] = tokens
      assert.deepEqual(await store.tokens.list(developerId, {}, 10), [third, second, first])
      assert.deepEqual(await store.tokens.list(developerId, { userId }, 10), [third, second])
      assert.deepEqual(await store.tokens.list(developerId, { accountId }, 10), [third])
      assert.deepEqual(await store.tokens.list(developerId, { userId, accountId }, 10), [third])
      assert.deepEqual(await store.tokens.list(developerId, { version: '2.0' }, 10), [second])
      assert.deepEqual(await store.tokens.list(developerId, { userId, version: 'lite' }, 10), [third])
    })

    test('for a user are not there without it', async () => {
      const token = tokenRecord(newId(), { userId: newId() })
      await rejectsWith(store.tokens.create(token), 'not_found')
      assert.equal(await store.tokens.find(token.token), null)
    })

    test('are used once', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      const [userId, accountId] = [newId(), newId()]
      const usedAt = token.createdAt + 5
      const uses = await Promise.all([1, 2, 3].map(() => store.tokens.use(token.token, usedAt, userId, accountId)))
      const used = { ...token, usedAt, userId, accountId }
      assert.deepEqual(
        uses.filter((answer) => answer !== null),
        [used],
      )
      assert.deepEqual(await store.tokens.find(token.token), used)
      assert.deepEqual(await store.tokens.list(token.developerId, { userId }, 10), [used])
      assert.deepEqual(await store.tokens.list(token.developerId, { accountId }, 10), [used])
    })

    test('are claimed by one, before anything is made; what is released is claimed again', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      const claims = [1, 2, 3].map((n) => ({ userId: newId(), accountId: newId(), at: token.createdAt + n }))
      const answers = await Promise.all(claims.map((claim) => store.tokens.claim(token.token, claim)))
      const winners = answers.filter((answer) => answer !== null)
      assert.equal(winners.length, 1)
      const claim = claims.find(({ userId }) => userId === winners[0]?.claim?.userId)
      assert.deepEqual(await store.tokens.find(token.token), { ...token, claim })
      await store.tokens.release(token.token)
      const [again] = claims
      assert(again)
      assert.deepEqual((await store.tokens.claim(token.token, again))?.claim, again)
      assert(await store.tokens.use(token.token, again.at, again.userId, again.accountId))
      await store.tokens.release(token.token)
      assert.equal(await store.tokens.claim(token.token, again), null, 'it is used')
    })

    test('count their tries, up to as many as there may be', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      assert.equal((await store.tokens.tried(token.token, 2))?.tries, 1)
      assert.equal((await store.tokens.tried(token.token, 2))?.tries, 2)
      assert.equal(await store.tokens.tried(token.token, 2), null)
      assert.deepEqual(await store.tokens.find(token.token), { ...token, tries: 2 })
    })

    test('are not claimed when they have expired or are unknown', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      const ids = { userId: newId(), accountId: newId() }
      assert.equal(await store.tokens.claim(token.token, { ...ids, at: token.expiresAt }), null)
      assert.equal(await store.tokens.claim(newToken(), { ...ids, at: token.createdAt }), null)
      assert.equal(await store.tokens.tried(newToken(), 1), null)
      assert.deepEqual(await store.tokens.find(token.token), token)
    })

    test('are not used when they have expired or are unknown', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      assert.equal(await store.tokens.use(token.token, token.expiresAt, newId(), newId()), null)
      assert.equal(await store.tokens.use(newToken(), epochStart, newId(), newId()), null)
      assert.deepEqual(await store.tokens.find(token.token), token)
      assert(await store.tokens.use(token.token, token.expiresAt - 1, newId(), newId()))
    })

    test('are removed by their developer', async () => {
      const token = tokenRecord(newId())
      await store.tokens.create(token)
      assert.equal(await store.tokens.remove(newId(), token.token), false)
      assert.equal(await store.tokens.remove(token.developerId, token.token), true)
      assert.equal(await store.tokens.remove(token.developerId, token.token), false)
      assert.equal(await store.tokens.find(token.token), null)
    })
  })
}

export function providersContract({ store }: Subject): void {
  describe('OAuth providers', () => {
    test('are put, replaced, listed and removed', async () => {
      const developerId = newId()
      const provider: OAuthProviderRecord = {
        developerId,
        consumerKey: '12-ab.apps.example.com',
        sealedSecret: 'sealed',
        shownSecret: 'abc[...]xyz',
        type: 'PROVIDER_A_OAUTH2',
        createdAt: epochStart,
      }
      const second = { ...provider, consumerKey: 'aaa', createdAt: epochStart + 1 }
      await store.providers.put(provider)
      await store.providers.put(second)
      const replaced = { ...provider, sealedSecret: 'other' }
      await store.providers.put(replaced)
      assert.deepEqual(await store.providers.get(developerId, provider.consumerKey), replaced)
      assert.deepEqual(await store.providers.list(developerId), [replaced, second])
      assert.deepEqual(await store.providers.list(newId()), [])
      assert.equal(await store.providers.get(newId(), provider.consumerKey), null)
      assert.equal(await store.providers.remove(newId(), 'aaa'), false)
      assert.equal(await store.providers.remove(developerId, 'aaa'), true)
      assert.equal(await store.providers.remove(developerId, 'aaa'), false)
      assert.deepEqual(await store.providers.list(developerId), [replaced])
    })
  })
}

export function noncesContract({ store, clock }: Subject): void {
  describe('nonces', () => {
    test('a replay is known, for that key, nonce and time alone', async () => {
      const key = newId()
      const until = clock.now + 1000
      assert.equal(await store.nonces.remember(key, 'n', 5, until), true)
      assert.equal(await store.nonces.remember(key, 'n', 5, until), false)
      assert.equal(await store.nonces.remember(key, 'n', 6, until), true)
      assert.equal(await store.nonces.remember(key, 'm', 5, until), true)
      assert.equal(await store.nonces.remember(newId(), 'n', 5, until), true)
    })

    test('of many at once one is the first', async () => {
      const key = newId()
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => store.nonces.remember(key, 'n', 5, clock.now + 1000)),
      )
      assert.equal(answers.filter(Boolean).length, 1)
    })

    test('are forgotten when they have expired', async () => {
      const key = newId()
      assert.equal(await store.nonces.remember(key, 'n', 5, clock.now + 10), true)
      clock.now += 11
      assert.equal(await store.nonces.remember(key, 'n', 5, clock.now + 10), true)
      assert.equal(await store.nonces.remember(key, 'n', 5, clock.now + 10), false)
    })
  })
}

export function callsContract({ store }: Subject): void {
  describe('the call log', () => {
    const call = (developerId: string, age: number, patch: Partial<CallLogRecord> = {}): CallLogRecord => ({
      id: newId(),
      developerId,
      userId: null,
      at: epochStart + age,
      method: 'GET',
      path: '/lite/users',
      status: 200,
      durationMs: 3,
      ...patch,
    })

    test('is listed newest first by every filter', async () => {
      const [developerId, userId] = [newId(), newId()]
      const calls = [
        call(developerId, 1, { userId }),
        call(developerId, 2, { method: 'POST', status: 404 }),
        call(developerId, 3, { path: '/lite/users/1', userId }),
      ] as const
      await store.calls.append([...calls, call(newId(), 4)])
      await store.calls.append([calls[0]])
      const [first, second, third] = calls
      const list = async (filter: object, limit = 9, offset = 0) =>
        store.calls.list({ developerId, ...filter }, { limit, offset })
      assert.deepEqual(await list({}), [third, second, first])
      assert.deepEqual(await list({}, 1, 1), [second])
      assert.deepEqual(await list({ userId }), [third, first])
      assert.deepEqual(await list({ from: epochStart + 2 }), [third, second])
      assert.deepEqual(await list({ until: epochStart + 2 }), [second, first])
      assert.deepEqual(await list({ statusFrom: 400, statusTo: 499 }), [second])
      assert.deepEqual(await list({ method: 'POST' }), [second])
      assert.deepEqual(await list({ path: '/lite/users/1' }), [third])
      assert.deepEqual(await list({ path: '/lite', userId }), [])
      assert.deepEqual(await list({ before: third }), [second, first])
      assert.deepEqual(await list({ before: second, userId, from: epochStart }), [first])
      assert.deepEqual(await list({ before: first }), [])
    })

    test('of one moment is walked through without a loss or a repeat', async () => {
      const developerId = newId()
      const calls = Array.from({ length: 7 }, (_, index) => call(developerId, index < 5 ? 1 : 2))
      await store.calls.append(calls)
      const whole = await store.calls.list({ developerId }, { limit: 9, offset: 0 })
      const walked: CallLogRecord[] = []
      for (let before: CallLogRecord | undefined; walked.length <= calls.length; before = walked.at(-1)) {
        const query = { developerId, ...(before === undefined ? {} : { before }) }
        const page = await store.calls.list(query, { limit: 2, offset: 0 })
        walked.push(...page)
        if (page.length < 2) break
      }
      assert.deepEqual(walked, whole)
    })

    test('expires in steps', async () => {
      const developerId = newId()
      // older than anything another test writes
      const calls = [1, 2, 3, 4].map((at) => call(developerId, 0, { at }))
      await store.calls.append(calls)
      assert.equal(await store.calls.expire(4, 2), 2)
      assert.equal(await store.calls.expire(4, 2), 1)
      assert.equal(await store.calls.expire(4, 2), 0)
      const left = await store.calls.list({ developerId }, { limit: 9, offset: 0 })
      assert.deepEqual(left, calls.slice(3))
      await store.calls.append([])
    })
  })
}

export function auditContract({ store }: Subject): void {
  describe('the audit trail', () => {
    test('is listed newest first, whole or of one target, and expires in steps', async () => {
      const target = newId()
      const made = (at: number, of: string): AuditRecord => ({
        ...{ id: newId(), at, by: 'token', actorId: newId(), actorName: 'ops', address: '192.0.2.7' },
        ...{ action: 'accounts pause', target: of, details: { folder: 'INBOX' }, status: 200 },
      })
      const records = [made(1, target), made(2, newId()), made(3, target)] as const
      for (const record of records) await store.audit.append(record)
      const [first, second, third] = records
      assert.deepEqual(await store.audit.list(undefined, { limit: 2, offset: 0 }), [third, second])
      assert.deepEqual(await store.audit.list([target], { limit: 9, offset: 0 }), [third, first])
      assert.deepEqual([await store.audit.expire(3, 1), await store.audit.expire(3, 9)], [1, 1])
      assert.deepEqual(await store.audit.list(undefined, { limit: 9, offset: 0 }), [third])
    })
  })
}
