/**
 * What is answered while a mailbox is read for the first time: what is whole at once, and for the rest how far the
 * reading is.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { aroundNextCall } from '../../support/nodes.ts'
import { until } from '../../support/until.ts'
import { userBody } from '../../support/users.ts'
import { type AdminRig, startAdminRig } from '../admin/rig.ts'
import { startLiteRig, type Json, type LiteRig } from './rig.ts'

const email = 'big@mail.example'
const count = 300

suite('a mailbox that is being read for the first time', () => {
  let rig: AdminRig
  let path = ''
  let userId = ''
  let accountId = ''

  before(async () => {
    // Two batches are read, and the third after the next connect.
    rig = await startAdminRig({ env: { MAILROOM_SYNC_BATCH: '100', MAILROOM_BACKFILL_PAUSE: '1h' } })
    rig.imap.addUser(email)
    for (let index = 0; index < count; index += 1) {
      const date = new Date(1_600_000_000_000 + index * 60_000)
      const text = index === 0 ? 'the needle' : 'hay'
      rig.imap.append(email, 'INBOX', mail({ to: email, subject: `number ${index}.`, date, text }))
    }
    rig.imap.createFolder(email, 'Refused')
    rig.imap.append(email, 'Refused', mail({ to: email, subject: 'out of reach' }))
    rig.imap.hooks = {
      command: ({ name, text }) =>
        name === 'SELECT' && text.includes('Refused') ? { tagged: 'NO [SERVERBUG] broken' } : undefined,
    }
    rig.imap.createFolder(email, 'Group', ['\\Noselect'])
    const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
    userId = String((await rig.ok('POST', '/lite/users', userBody(server, email)))['id'])
    path = `/lite/users/${userId}/email_accounts/0`
    const [account] = await rig.engine.store.accounts.listByUser(userId)
    accountId = String(account?.id)
    await until('two batches', async () => (await rig.engine.store.messages.count(accountId)) === 200)
    const look = async () => (await rig.call('GET', `${path}/messages?limit=1`)).status === 200
    await until('each folder was opened, or refused once', look)
  })
  after(() => rig.close())

  const subjects = (list: readonly Json[]) => list.map((message) => String(message['subject']))

  test('a full page of the newest is answered', async () => {
    for (const list of [`${path}/messages`, `${path}/folders/INBOX/messages`]) {
      assert.deepEqual(subjects(await rig.list(`${list}?limit=3`)), ['number 299.', 'number 298.', 'number 297.'])
      assert.deepEqual(subjects(await rig.list(`${list}?limit=2&offset=198`)), ['number 101.', 'number 100.'])
    }
  })

  test('what could lack messages is 503: says how far the reading is, and when to come back', async () => {
    const unknown = encodeURIComponent('<number-0-@sender.example>')
    for (const call of [
      `${path}/messages?offset=250`,
      `${path}/messages?offset=199&limit=2`,
      `${path}/messages?sort_order=asc&limit=1`,
      `${path}/messages?subject=number%200.`,
      `${path}/messages?from=nobody@example.org`,
      `${path}/messages?date_before=1600000000`,
      `${path}/messages?body_search_string=needle`,
      `${path}/folders/INBOX/messages?body_search_string=needle`,
      `${path}/folders/INBOX/messages?sort_order=asc`,
      `${path}/messages/${unknown}`,
      `${path}/messages/${unknown}/flags`,
      `${path}/messages/${'0'.repeat(40)}`,
      `/lite/users/${userId}/contacts/nobody@example.org`,
      `/lite/users/${userId}/contacts?offset=50`,
    ]) {
      const answer = await rig.call('GET', call)
      assert.equal(answer.status, 503, `${call}: ${answer.text}`)
      assert.match(String(answer.json['value']), /^200 of 300 messages of INBOX read/, call)
      assert(Number(answer.headers['retry-after']) >= 1, call)
    }
  })

  test('an operator sees how far the reading is, its pace, and how long it takes', async () => {
    const seen = await rig.good('read', 'GET', `/admin/accounts/${accountId}`)
    const { messages, indexed, per_second: pace, seconds_left: left } = seen['reading'] as Record<string, number>
    assert.deepEqual([messages, indexed], [301, 200])
    assert(pace !== undefined && pace > 0)
    // Of a pace that is rounded.
    assert(left !== undefined && Math.abs(left - 101 / pace) < 1 + 101 / pace / pace, `${left} s at ${pace} a second`)
    const words = /Its older mail: 200 of 301 messages read, [\d,.]+ a second, \d+ (?:s|min) left\.$/
    assert.match(String((seen['explain'] as Json)['next']), words)
  })

  test('of a folder that was refused an unknown message is 503, not 404', async () => {
    const name = encodeURIComponent('<out of reach@sender.example>')
    const known = encodeURIComponent('<number-299-@sender.example>')
    for (const message of [name, known, '0'.repeat(40)]) {
      const answer = await rig.call('GET', `${path}/folders/Refused/messages/${message}`)
      assert.equal(answer.status, 503, answer.text)
    }
  })

  test('contacts that are known are answered, with the counts so far', async () => {
    const { contacts } = await rig.ok('GET', `/lite/users/${userId}/contacts`)
    assert.equal((contacts as Json[])[0]?.['email'], 'ada@sender.example')
  })

  test('another folder that is read is whole by itself', async () => {
    await until('Sent is opened', async () => (await rig.call('GET', `${path}/folders/Sent/messages`)).status === 200)
    assert.deepEqual(await rig.list(`${path}/folders/Sent/messages?sort_order=asc`), [])
    assert.deepEqual(await rig.list(`${path}/folders/Group/messages`), [])
  })

  test('once all is read everything is answered: folders that cannot be read hold nothing up', async () => {
    const { folders, messages } = rig.engine.store
    const inbox = () => folders.byPath(accountId, 'INBOX')
    // The message is read when it has been looked for, and before the folders are.
    const stores = rig.engines.map(({ store }) => store.messages)
    aroundNextCall(stores, 'find', async (call) => {
      const none = await call()
      // Each connect brings a page, and a slow page makes the next pages shorter.
      let read = 0
      await until('all of INBOX', async () => {
        const before = read
        read = await messages.count(accountId)
        if (read > before && read < count) rig.imap.dropConnections(email)
        return read === count && ((await inbox())?.cursor?.backfillBelow ?? 2) <= 1
      })
      return none
    })
    const unknown = encodeURIComponent('<number-0-@sender.example>')
    assert.equal((await rig.ok('GET', `${path}/messages/${unknown}`))['subject'], 'number 0.')
    assert.equal(await messages.count(accountId), count)
    const oldest = await until('an answer', () => rig.list(`${path}/messages?sort_order=asc&limit=1`))
    assert.deepEqual(subjects(oldest), ['number 0.'])
    assert.deepEqual(await rig.list(`${path}/messages?subject=nothing`), [])
    assert.deepEqual(subjects(await rig.list(`${path}/messages?body_search_string=needle`)), ['number 0.'])
    assert.equal((await rig.call('GET', `${path}/messages/${'0'.repeat(40)}`)).status, 404)
    assert.equal((await rig.call('GET', `/lite/users/${userId}/contacts/nobody@example.org`)).status, 404)
    const alone = await rig.call('GET', `${path}/folders/Refused/messages`)
    assert.equal(alone.status, 503)
    assert.match(String(alone.json['value']), /^folder Refused has not been read yet/)
  })
})

suite('several folders that are being read', () => {
  test('a full page over all of them is answered when each is read as far back as the page goes', async () => {
    const rig = await startLiteRig({ env: { MAILROOM_SYNC_BATCH: '100', MAILROOM_BACKFILL_PAUSE: '1h' } })
    try {
      const email = 'both@mail.example'
      rig.imap.addUser(email)
      const fill = (folder: string, from: number, number: number): void => {
        for (let index = 0; index < number; index += 1) {
          const date = new Date(from + index * 60_000)
          const headers = ['Content-Disposition: attachment; filename="list.txt"']
          rig.imap.append(email, folder, mail({ to: email, subject: `${folder} ${index}.`, date, headers }))
        }
      }
      const start = 1_600_000_000_000
      fill('INBOX', start, 50)
      fill('Sent', start + 86_400_000, 300)
      const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
      const userId = String((await rig.ok('POST', '/lite/users', userBody(server, email)))['id'])
      const path = `/lite/users/${userId}/email_accounts/0`
      const seen = new Set<string>()
      await until('the newest of Sent', async () => {
        const answer = await rig.call('GET', `${path}/messages?limit=20`)
        seen.add(answer.status === 200 ? String((JSON.parse(answer.text) as Json[])[0]?.['subject']) : answer.text)
        return answer.status === 200
      })
      assert(![...seen].includes('INBOX 49.'), [...seen].join())
      const page = await rig.list(`${path}/messages?limit=20`)
      assert.deepEqual([page[0]?.['subject'], page.at(-1)?.['subject']], ['Sent 299.', 'Sent 280.'])
      const inV2 = ['messages', 'threads', 'files'].map((name) => `/2.0/accounts/${userId}/${name}`)
      for (const list of [`${path}/messages`, ...inV2]) {
        assert.equal((await rig.list(`${list}?limit=20`)).length, 20, list)
        const before = await rig.call('GET', `${list}?limit=20&date_before=${(start + 40 * 60_000) / 1000}`)
        assert.equal(before.status, 503, `${list}: ${before.text}`)
        assert.match(String(before.json['value']), /of 300 messages of Sent read/)
      }
      const inbox = `${path}/folders/INBOX/messages?limit=20&date_before=${(start + 40 * 60_000) / 1000}`
      assert.equal((await rig.list(inbox))[0]?.['subject'], 'INBOX 40.')
    } finally {
      await rig.close()
    }
  })
})

suite('a folder that is refused when a part of it is read', () => {
  test('is not taken for whole: holds up what could lack its mail, once it is parked a list of its own', async () => {
    const rig = await startLiteRig({ env: { MAILROOM_SYNC_BATCH: '100', MAILROOM_BACKFILL_PAUSE: '1h' } })
    try {
      const email = 'half@mail.example'
      rig.imap.addUser(email, { folders: { INBOX: [], Half: [] } })
      for (let index = 0; index < count; index += 1)
        rig.imap.append(email, 'Half', mail({ to: email, subject: `number ${index}.` }))
      const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
      const userId = String((await rig.ok('POST', '/lite/users', userBody(server, email)))['id'])
      const accountId = String((await rig.engine.store.accounts.listByUser(userId))[0]?.id)
      const path = `/lite/users/${userId}/email_accounts/0`
      await until('a batch', async () => (await rig.engine.store.messages.count(accountId)) === 100)
      rig.imap.hooks = {
        command: ({ name, folder }) =>
          name === 'UID SEARCH' && folder?.name === 'Half' ? { tagged: 'NO [INUSE] later' } : undefined,
      }
      rig.imap.dropConnections(email)
      const half = async () => (await rig.engine.store.folders.list(accountId)).find((folder) => folder.path === 'Half')
      await until('refused', async () => ((await half())?.failures ?? 0) >= 1)
      const isFinished = async (): Promise<unknown> => {
        const states = Object.values(await rig.ok('GET', `/2.0/accounts/${userId}/sync`))[0] as Record<string, Json>
        return states['Half']?.['initial_import_finished']
      }
      const unknown = `${path}/messages/${'0'.repeat(40)}`
      const oldest = `${path}/folders/Half/messages?sort_order=asc`
      for (const call of [unknown, oldest]) {
        const answer = await rig.call('GET', call)
        assert.equal(answer.status, 503, answer.text)
        assert.match(String(answer.json['value']), /^100 of 300 messages of Half read/)
      }
      assert.equal(await isFinished(), false)
      const { store } = rig.engines.find(({ store }) => store.nodes.owns(userId)) ?? assert.fail('no owner')
      await store.folders.setParked(String((await half())?.id), 3, Date.now() + 3_600_000)
      assert.equal((await rig.call('GET', unknown)).status, 404)
      assert.equal((await rig.call('GET', oldest)).status, 503)
      assert.equal(await isFinished(), false)
      // So is INBOX of which a part is read.
      const inbox = (await store.folders.byPath(accountId, 'INBOX')) ?? assert.fail('no INBOX')
      await rig.engine.accounts.stop(accountId)
      const account = (await store.accounts.claim(accountId)) ?? assert.fail('no account')
      const cursor = { ...(inbox.cursor ?? assert.fail('no cursor')), uidNext: 9, liveFrom: 9, exists: 8 }
      for (const [backfillBelow, status] of [
        [5, 404],
        [9, 503],
      ] as const) {
        const before = (await store.folders.byPath(accountId, 'INBOX'))?.cursor ?? null
        const after = { ...cursor, backfillBelow }
        const nothing = {
          added: [],
          flagUpdates: [],
          vanished: [],
          reported: [],
          changes: [],
          outbox: [],
          contacts: [],
        }
        await store.sync.apply({
          ...nothing,
          vanishedAt: 0,
          accountId,
          epoch: account.epoch,
          folderId: inbox.id,
          cursorBefore: before,
          cursorAfter: after,
        })
        await store.folders.setParked(inbox.id, 3, Date.now() + 3_600_000)
        assert.equal((await rig.call('GET', unknown)).status, status)
      }
    } finally {
      await rig.close()
    }
  })
})

suite('a folder of another program, long before the next poll', () => {
  test('is read as soon as a call has found it: an unknown message is a 404 again', async () => {
    const rig = await startLiteRig({ env: { MAILROOM_FOLDER_POLL: '1h' } })
    try {
      const box = await rig.mailbox('shared', { subjects: ['here'] })
      rig.imap.createFolder(box.email, '`')
      rig.imap.append(box.email, '`', mail({ to: box.email, subject: 'there' }))
      const id = await box.indexed('here')
      assert.equal((await rig.call('PUT', `${box.path}/messages/${id}?new_folder_id=Unknown`)).status, 404)
      const unknown = `${box.path}/messages/${'0'.repeat(40)}`
      await until('no 503', async () => (await rig.call('GET', unknown)).status === 404, { withinMs: 5000 })
      assert.equal((await rig.list(`${box.path}/folders/${encodeURIComponent('`')}/messages`))[0]?.['subject'], 'there')
    } finally {
      await rig.close()
    }
  })
})

suite('a list that is asked for right after its account is made', () => {
  let rig: LiteRig
  before(async () => {
    rig = await startLiteRig()
  })
  after(() => rig.close())

  /** A new account, whose mail server holds the newest page back for a while. */
  async function made(address: string, heldMs: number, { imap, ok }: Pick<LiteRig, 'imap' | 'ok'> = rig) {
    imap.addUser(address)
    imap.append(address, 'INBOX', mail({ to: address, subject: 'the newest' }))
    let fetches = 0
    imap.hooks = {
      command: ({ name }) => {
        if (!name.endsWith('FETCH')) return undefined
        fetches += 1
        return fetches === 1 ? { delayMs: heldMs, proceed: true } : undefined
      },
    }
    const server = { host: imap.host, port: imap.port, password: 'secret' }
    const { id } = await ok('POST', '/lite/users', userBody(server, address))
    const path = `/lite/users/${String(id)}/email_accounts/0`
    return { path, messages: `${path}/messages`, inbox: `${path}/folders/INBOX/messages`, id: String(id) }
  }

  test('waits for the newest page of the mailbox', async () => {
    const { messages, inbox } = await made('anna@mail.example', 1500)
    for (const list of await Promise.all([rig.list(messages), rig.list(inbox)]))
      assert.deepEqual(
        list.map((message) => message['subject']),
        ['the newest'],
      )
  })

  test('waits for half of the time of a call, and is a 503 then', async () => {
    const short = await startLiteRig({ env: { MAILROOM_REQUEST_TIMEOUT: '4s' } })
    try {
      const { messages } = await made('carl@mail.example', 20_000, short)
      const startedAt = performance.now()
      const { status, headers } = await short.call('GET', messages)
      const tookMs = performance.now() - startedAt
      assert.equal(status, 503)
      assert.ok(Number(headers['retry-after']) >= 1)
      assert.ok(tookMs >= 1900 && tookMs < 4000, `after ${tookMs} ms`)
    } finally {
      await short.close()
    }
  })

  test('waits for no page that is not on its way', async () => {
    const { messages, inbox, id } = await made('bert@mail.example', 20_000)
    const [account] = await rig.engine.store.accounts.listByUser(id)
    await rig.engine.accounts.pause(String(account?.id))
    for (const list of [messages, inbox]) {
      const startedAt = performance.now()
      assert.equal((await rig.call('GET', list)).status, 503)
      assert.ok(performance.now() - startedAt < 5000)
    }
  })
})
