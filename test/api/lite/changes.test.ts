/** The change log as pages and as a stream: complete, in order, and resumable at every place. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import { changeStream } from '../../../api/lite/changes.ts'
import type { Engine, UserRecord } from '../../../engine/index.ts'
import { openEventStream, readEvent, type EventStream } from '../../support/event-stream.ts'
import { until } from '../../support/until.ts'
import { basic, startLiteRig, type Json, type LiteRig, type TestMailbox } from './rig.ts'

interface Page {
  readonly changes: Json[]
  readonly cursor: string
  readonly more: boolean
  readonly gap: boolean
}

suite('changes', () => {
  let rig: LiteRig
  let box: TestMailbox
  let path = ''
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_GONE_HOLD: '200ms' } })
    box = await rig.mailbox('chris', { subjects: ['was there before'] })
    path = `/lite/users/${box.userId}/changes`
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.tags.includes('watching'))
    for (const subject of ['first', 'second', 'third']) await box.deliver({ subject })
  })
  after(() => rig.close())

  const read = async (query = ''): Promise<Page> => (await rig.ok('GET', `${path}${query}`)) as unknown as Page
  const whole = async (): Promise<unknown[]> => (await read('?limit=1000')).changes.map(({ id }) => id)
  const stream = (headers: Record<string, string> = {}, query = ''): Promise<EventStream> =>
    openEventStream(`${rig.url}${path}${query}`, { authorization: basic, ...headers })

  test('of mail that was there before are none; of new mail there is one each, with every field', async () => {
    const { changes, more, gap } = await read()
    assert.equal(changes.length, 3)
    assert.deepEqual([more, gap], [false, false])
    const [first] = changes
    const message = await box.indexed('first')
    assert.deepEqual(
      { ...first, id: 'x', timestamp: 0, uid: 0 },
      {
        id: 'x',
        sequence: 1,
        timestamp: 0,
        account_id: box.userId,
        label: box.label,
        event: 'received',
        first: true,
        message_id: message,
        folder: 'INBOX',
        uid: 0,
        flags: [],
        folders: ['INBOX'],
        resource_url: `${rig.url}${box.path}/messages/${message}`,
      },
    )
    assert(Math.abs(Number(first?.['timestamp']) - Date.now() / 1000) < 600)
  })

  test('pages of any size together are the whole, without repeats', async () => {
    for (const limit of [1, 2, 3]) {
      const seen: unknown[] = []
      let cursor = ''
      for (let more = true; more;) {
        const page = await read(`?limit=${limit}&since=${cursor}`)
        seen.push(...page.changes.map(({ id }) => id))
        assert(page.changes.length <= limit)
        ;({ cursor, more } = page)
      }
      assert.deepEqual(seen, await whole())
    }
  })

  test('a cursor gives what came after it, and an empty page the same cursor', async () => {
    const { cursor } = await read()
    assert.deepEqual(await read(`?since=${cursor}`), { changes: [], cursor, more: false, gap: false })
    await box.deliver({ subject: 'fourth' })
    const next = await read(`?since=${cursor}`)
    assert.deepEqual(
      next.changes.map(({ sequence }) => sequence),
      [4],
    )
    assert.deepEqual((await read('?since=now')).changes, [])
    assert.equal((await read('?since=now')).cursor, next.cursor)
  })

  test('flags and deletions are told as what they are', async () => {
    const { cursor } = await read()
    const uid = rig.imap.append(box.email, 'INBOX', 'From: a@b.example\nSubject: fifth\nMessage-ID: <5@b.example>\n\nx')
    await box.indexed('fifth')
    rig.imap.setFlags(box.email, 'INBOX', uid, ['\\Seen'])
    const events = async (): Promise<unknown[]> => (await read(`?since=${cursor}`)).changes.map(({ event }) => event)
    await until('the flags', async () => (await events()).includes('flags_changed'))
    assert.deepEqual(await events(), ['received', 'flags_changed'])
    const [, flagged] = (await read(`?since=${cursor}`)).changes
    assert.deepEqual([flagged?.['flags'], flagged?.['first']], [['\\Seen'], false])
    rig.imap.expunge(box.email, 'INBOX', uid)
    await until('the deletion', async () => (await events()).includes('deleted'))
    const last = (await read(`?since=${cursor}`)).changes.at(-1)
    assert.deepEqual([last?.['event'], last?.['folders']], ['deleted', []])
  })

  test('several accounts are one log: each in order, none left out', async () => {
    const second = 'chris.second@mail.example'
    rig.imap.addUser(second)
    await rig.ok('POST', `/lite/users/${box.userId}/email_accounts`, {
      email: second,
      server: rig.imap.host,
      port: rig.imap.port,
      use_ssl: 0,
      username: second,
      password: 'secret',
      type: 'imap',
    })
    const accounts = await rig.engine.store.accounts.listByUser(box.userId)
    await until('both watched', () =>
      accounts.every(({ id }) => rig.engine.accounts.view(id)?.tags.includes('watching')),
    )
    const { cursor } = await read()
    for (let count = 0; count < 4; count += 1) {
      rig.imap.append(second, 'INBOX', `From: a@b.example\nSubject: s\nMessage-ID: <s${count}@b.example>\n\nx`)
      await box.deliver({ subject: `both ${count}`, id: `both-${count}` })
    }
    await until('all', async () => (await read(`?since=${cursor}`)).changes.length === 8)
    const seen: Json[] = []
    for (let since = cursor, more = true; more;) {
      const page = await read(`?since=${since}&limit=3`)
      seen.push(...page.changes)
      ;({ cursor: since, more } = page)
    }
    assert.equal(new Set(seen.map(({ id }) => id)).size, 8)
    for (const label of new Set(seen.map((change) => change['label']))) {
      const sequence = seen.filter((change) => change['label'] === label).map((change) => Number(change['sequence']))
      assert.deepEqual(
        sequence,
        sequence.toSorted((a, b) => a - b),
      )
      assert.equal(sequence.length, 4)
    }
  })

  test('a cursor that is none is 400, whatever it holds', async () => {
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const bad of [
      'x',
      '!!',
      'bnVsbA',
      encode([1]),
      encode({ x: 1 }),
      encode({ ['a'.repeat(24)]: -1 }),
      encode('s'),
    ]) {
      const answer = await rig.call('GET', `${path}?since=${bad}`)
      assert.equal(answer.status, 400, bad)
      assert.match(String(answer.json['value']), /^since: /)
      assert.equal((await stream({ 'last-event-id': bad })).status, 400)
    }
    await fc.assert(
      fc.asyncProperty(fc.string(), async (text) => {
        const { status } = await rig.call('GET', `${path}?since=${encodeURIComponent(text)}`)
        assert(status === 400 || (status === 200 && text === ''), `${status} for ${text}`)
      }),
      { numRuns: 40 },
    )
    for (const query of ['limit=0', 'limit=1001']) assert.equal((await rig.call('GET', `${path}?${query}`)).status, 400)
  })

  test('what retention has taken away is told', async () => {
    const ada = await rig.mailbox('keeper')
    await until('watching', () => rig.engine.accounts.view(ada.accountId)?.tags.includes('watching'))
    for (const subject of ['k1', 'k2', 'k3', 'k4']) await ada.deliver({ subject })
    const own = `/lite/users/${ada.userId}/changes`
    const { cursor } = (await rig.ok('GET', `${own}?limit=1`)) as unknown as Page
    await rig.engine.store.changes.expire(Date.now() + 1000, 1000)
    const page = (await rig.ok('GET', `${own}?since=${cursor}`)) as unknown as Page
    assert.equal(page.gap, true)
    assert.deepEqual(
      page.changes.map(({ sequence }) => sequence),
      [4],
    )
  })

  test('as a stream: what was, then what comes, each with the cursor after it', async () => {
    const events = await stream()
    assert.equal(events.status, 200)
    assert.equal(events.headers['content-type'], 'text/event-stream')
    assert.equal(events.headers['cache-control'], 'no-store')
    const past = (await read('?limit=1000')).changes
    await until('the past', () => events.events.length === past.length)
    assert.deepEqual(
      events.events.map(({ data }) => data),
      past,
    )
    assert.deepEqual(
      events.events.map(({ event }) => event),
      past.map(({ event }) => event),
    )
    await box.deliver({ subject: 'live' })
    const live = await until('the live one', () => events.events[past.length])
    assert.equal(live.id, (await read('?limit=1000')).cursor)
    events.close()
  })

  test('a stream goes on after Last-Event-ID at every place, without loss or repeat', async () => {
    const all = await whole()
    const first = await stream()
    await until('all', () => first.events.length === all.length)
    first.close()
    const ids = first.events.map(({ id }) => id)
    for (const [index, id] of ids.entries()) {
      const next = await stream({ 'last-event-id': id })
      const rest = all.slice(index + 1)
      await until(`the rest after ${index}`, () => next.events.length >= rest.length)
      assert.deepEqual(
        next.events.map(({ data }) => data['id']),
        rest,
      )
      next.close()
    }
  })

  test('a stream from now on is told nothing old; Last-Event-ID is stronger than since', async () => {
    const fresh = await stream({}, '?since=now')
    await until('the first line', () => fresh.text.startsWith('retry:'))
    await box.deliver({ subject: 'newest' })
    await until('the new one', () => fresh.events.length > 0)
    assert.deepEqual(
      fresh.events.map(({ data }) => data['message_id']),
      [await box.indexed('newest')],
    )
    fresh.close()
    const { cursor } = await read('?limit=1')
    const resumed = await stream({ 'last-event-id': cursor }, '?since=now')
    await until('the rest', async () => resumed.events.length === (await whole()).length - 1)
    resumed.close()
  })

  test('as many streams as a user may have hear of one message', async () => {
    const streams = await Promise.all(Array.from({ length: 16 }, () => stream({}, '?since=now')))
    await until('all open', () => streams.every(({ text }) => text.startsWith('retry:')))
    const id = await box.deliver({ subject: 'to all' })
    await until('all told', () => streams.every(({ events }) => events.some(({ data }) => data['message_id'] === id)))
    assert(streams.every(({ events }) => events.length === 1))
    for (const one of streams) one.close()
  })

  test('the stream of an unknown user is 404', async () => {
    const strange = await openEventStream(`${rig.url}/lite/users/${'f'.repeat(24)}/changes`, { authorization: basic })
    assert.equal(strange.status, 404)
  })

  suite('the stream by itself', () => {
    let user: UserRecord
    before(async () => {
      const { engine } = rig
      const developer = await engine.developers.authenticate('frame-key')
      const found = await engine.store.users.get(String(developer?.developer.id), box.userId)
      assert(found !== null)
      user = found
    })

    /** The engine with its listeners and reads counted. */
    const counted = (): { readonly engine: Engine; readonly counts: { listening: number; reads: number } } => {
      const counts = { listening: 0, reads: 0 }
      const { engine } = rig
      const subscribe: Engine['webhooks']['subscribe'] = (...args) => {
        counts.listening += 1
        const leave = engine.webhooks.subscribe(...args)
        return () => {
          counts.listening -= 1
          leave()
        }
      }
      const since: Engine['store']['changes']['since'] = (...args) => {
        counts.reads += 1
        return engine.store.changes.since(...args)
      }
      const store = { ...engine.store, changes: { ...engine.store.changes, since } }
      return { engine: { ...engine, store, webhooks: { ...engine.webhooks, subscribe } }, counts }
    }
    const open = (engine: Engine, aborter: AbortController, heartbeatMs = 15_000, from = new Map<string, number>()) =>
      changeStream({ engine, user, from, baseUrl: 'http://x', signal: aborter.signal, heartbeatMs })

    test('says that it lives when nothing happens', async () => {
      const aborter = new AbortController()
      const now = new Map(
        await Promise.all(
          (await rig.engine.store.accounts.listByUser(user.id)).map(
            async ({ id }) => [id, await rig.engine.store.changes.lastSeq(id)] as const,
          ),
        ),
      )
      let text = ''
      for await (const chunk of open(rig.engine, aborter, 20, now)) {
        text += String(chunk)
        if (text.split(': still here\n\n').length > 3) break
      }
      assert.match(text, /^retry: 3000\nid: [\w-]+\n\n(?:: still here\n\n){3}/)
    })

    test('reads no further than its client takes', async () => {
      const before = (await whole()).length
      for (let count = 0; count < 260; count += 1) {
        rig.imap.append(
          box.email,
          'INBOX',
          `From: a@b.example\nSubject: many ${count}\nMessage-ID: <m${count}@b.example>\n\nx`,
        )
      }
      await until('all', async () => (await whole()).length >= before + 260, { withinMs: 20_000 })
      const { engine, counts } = counted()
      const accounts = (await engine.store.accounts.listByUser(user.id)).length
      const aborter = new AbortController()
      const slow = open(engine, aborter)
      const [first] = (await slow.take(1).toArray()) as [Buffer]
      assert.match(String(first), /^retry/)
      assert(counts.reads <= accounts, `${counts.reads} reads for a client that has taken one line`)
      aborter.abort()

      const { engine: again, counts: reads } = counted()
      const stop = new AbortController()
      const events: unknown[] = []
      const expected = await whole()
      for await (const chunk of open(again, stop)) {
        events.push(
          ...String(chunk)
            .split('\n\n')
            .flatMap(readEvent)
            .map(({ data }) => data['id']),
        )
        if (events.length >= expected.length) stop.abort()
      }
      assert.deepEqual(events, expected)
      assert(reads.reads > accounts, 'several pages')
    })

    test('stops listening when its client goes', async () => {
      const { engine, counts } = counted()
      const aborter = new AbortController()
      const one = open(engine, aborter)
      one.resume()
      await until('listening', () => counts.listening === 1)
      aborter.abort()
      await until('gone', () => counts.listening === 0)
    })

    test('ends with its user', async () => {
      const made = await rig.ok('POST', '/lite/users', {})
      const mine = await rig.engine.store.users.get(user.developerId, String(made['id']))
      assert(mine !== null)
      const signal = new AbortController().signal
      const one = changeStream({
        engine: rig.engine,
        user: mine,
        from: new Map(),
        baseUrl: '',
        signal,
        heartbeatMs: 20,
      })
      let ended = false
      one.on('end', () => (ended = true)).resume()
      await rig.ok('DELETE', `/lite/users/${mine.id}`)
      await until('the end', () => ended)
    })
  })
})
