/** No list of the embedded store walks a table, and only lists with several alternatives are sorted. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import type { DeliveryQuery, MessageQuery } from '../../engine/store/port.ts'
import { allStates, finishedStates, foldedTexts, groupName, queryKeys } from '../../engine/store/rows.ts'
import {
  accountPlaces,
  userList,
  userSearch,
  accountDeletes,
  keyedDeletes,
  userDeletes,
} from '../../engine/store/sqlite/accounts.ts'
import { contactPage } from '../../engine/store/sqlite/contacts.ts'
import { deleteWhere } from '../../engine/store/sqlite/database.ts'
import { folderList, isWhole, others } from '../../engine/store/sqlite/folders.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { expireKeyed, keyedList, nonceSweep } from '../../engine/store/sqlite/keyed.ts'
import { foldedMatches, messageCount, messagePage } from '../../engine/store/sqlite/message-query.ts'
import { keyRows, messageLookups } from '../../engine/store/sqlite/messages.ts'
import * as outbox from '../../engine/store/sqlite/outbox.ts'
import { liveMessages } from '../../engine/store/sqlite/sync.ts'

const page = { limit: 25, offset: 50 }
const byAge = ['createdAt', 'id'] as const
const newestToken = { by: ['createdAt', 'token'], descending: true, limit: 9 } as const
const newestCall = { by: ['at', 'id'], descending: true, ...page } as const
const contactList = (field: 'totalCount' | 'directCount' | 'indirectCount', descending: boolean) =>
  keyedList('contacts', { userId: 'u' }, { by: [field, 'id'], descending, ...page })
type Statement = { readonly sql: string; readonly values?: readonly SQLInputValue[] } | null

describe('plans of the embedded store', () => {
  let directory = ''
  let database: DatabaseSync | null = null

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'mailroom-plans-'))
    const path = join(directory, 'store.sqlite')
    await (await createSqliteStore({ path, sync: 'off' })).close()
    database = new DatabaseSync(path)
  })

  after(async () => {
    database?.close()
    await rm(directory, { recursive: true, force: true })
  })

  /** Every line of the plan, without the scans of what is not a table: arguments, arms, and the one page inside. */
  const plan = (statement: Statement): string[] => {
    assert(database && statement)
    const { sql } = statement
    const positions = (sql.match(/\?\d+/g) ?? []).map((place) => Number(place.slice(1)))
    const count = positions.length > 0 ? Math.max(...positions) : (sql.match(/\?/g) ?? []).length
    const values = statement.values ?? Array.from({ length: count }, () => '1')
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values)
    return rows.map((row) => String(row['detail']))
  }

  const tables = /^SCAN (?!json_each|CONSTANT ROW|hit\b|w\b|p\b|a\b|account\b|channel\b|\(subquery|others)/
  const served = (name: string, statement: Statement, sorted = false): void => {
    const lines = plan(statement)
    const scans = lines.filter((line) => tables.test(line))
    assert.deepEqual(scans, [], `${name}: ${lines.join(' | ')}`)
    const sorts = lines.filter((line) => line.includes('TEMP B-TREE FOR ORDER BY'))
    if (!sorted) assert.deepEqual(sorts, [], `${name}: ${lines.join(' | ')}`)
  }

  test('whether an account is whole is read from the index of what is to be read', () => {
    const lines = plan({ sql: isWhole })
    assert(
      lines.some((line) => line.includes('INDEX folders_to_read (account_id=?)')),
      lines.join(' | '),
    )
    assert(
      lines.every((line) => !line.startsWith('SCAN folders')),
      lines.join(' | '),
    )
  })

  test('the check itself sees a scan and a sort', () => {
    assert(plan({ sql: 'SELECT doc FROM messages' }).some((line) => tables.test(line)))
    assert.throws(() => served('scan', { sql: 'SELECT doc FROM outbox WHERE seq = 1' }))
    const sorting = 'SELECT doc FROM messages WHERE account_id = ? ORDER BY subject_key'
    assert.throws(() => served('sort', { sql: sorting }))
  })

  test('messages, by every filter', () => {
    const from = ['ann@x.com']
    const queries: readonly MessageQuery[] = [
      {},
      { order: 'asc' },
      { sentFrom: 1, sentUntil: 2 },
      { subject: 'x' },
      { folderId: 'f' },
      { folderId: 'f', order: 'asc', sentFrom: 1 },
      { folderId: 'f', subject: 'x', from },
      { from },
      { from, folderId: 'f', threadId: 't', hasAttachments: true },
      { to: ['com'], cc: from, bcc: from },
      { email: from },
      { email: [...from, 'x.org'], sentFrom: 1, subject: 'x', folderId: 'f' },
      { threadId: 't' },
      { threadIds: ['t', 'u'] },
      { hasAttachments: true },
      { hasAttachments: false },
      { hidden: { folderIds: ['f', 'g'], deleted: true } },
      { hidden: { folderIds: ['f'], deleted: false }, from, order: 'asc' },
    ]
    for (const query of queries) {
      const name = JSON.stringify(query)
      const list = messagePage('a', query, page)
      served(name, list)
      for (const part of [list?.walk, list?.quick]) if (part) served(`first of ${name}`, part)
      served(`count ${name}`, messageCount('a', query))
      const wide = new Map(queryKeys(query).all.map((keys) => [groupName(keys), ['1', '2']]))
      served(`${name}, and two wide messages`, messagePage('a', query, page, wide), true)
    }
    const folded = foldedMatches('a', foldedTexts(['to:@x.com', 'cc:ann@x.com']))
    for (const part of [folded, folded.walk]) served('wide messages', part, true)
    served('ids', messagePage('a', { ids: ['1', '2'] }, page), true)
    const many = Array.from({ length: 100 }, (_, index) => `u${index}@x.com`)
    served('many', messagePage('a', { from: many, folderId: 'f' }, page), true)
    for (const [name, sql] of Object.entries(messageLookups)) served(name, { sql })
    served('live', { sql: liveMessages })
    for (const found of [true, false]) served('contacts', { sql: contactPage('totalCount', true, found) }, true)
    served('others', { sql: `SELECT message_id FROM ${others} LIMIT ?3` })
  })

  test('everything else that is listed', () => {
    const lists: Readonly<Record<string, Statement>> = {
      users: userList('d', {}, page),
      usersByEmail: userList('d', { email: 'a@x.com' }, page),
      usersByStatus: userList('d', { status: 'OK' }, page),
      usersByBoth: userList('d', { email: 'a@x.com', status: 'DISABLED' }, page),
      accountsOfUser: keyedList('accounts', { userId: 'u' }, { by: byAge }),
      accountsByStatus: keyedList('accounts', { userId: 'u', status: 'OK' }, { by: byAge }),
      accountPage: keyedList('accounts', {}, { by: ['id'], behind: { id: 'a' }, limit: 9 }),
      folders: { sql: folderList },
      since: keyedList('changes', { accountId: 'a' }, { by: ['seq'], behind: { seq: 3 }, limit: 9 }),
      ofMessage: keyedList('changes', { accountId: 'a', messageId: 'm' }, { by: ['seq'] }),
      webhooksOfUser: keyedList('webhooks', { userId: 'u' }, { by: byAge }),
      webhooksOfDeveloper: keyedList('webhooks', { developerId: 'd', userId: null }, { by: byAge }),
      webhookPage: keyedList('webhooks', {}, { by: ['id'], behind: { id: 'a' }, limit: 9 }),
      contacts: contactList('totalCount', true),
      contactsAscending: contactList('indirectCount', false),
      contactsDirect: contactList('directCount', true),
      contactOfAccounts: keyedList('contacts', { userId: 'u', id: 'c' }, { by: ['accountId'] }),
      tokens: keyedList('tokens', { developerId: 'd' }, newestToken),
      tokensOfUser: keyedList('tokens', { developerId: 'd', userId: 'u', version: 'lite' }, newestToken),
      tokensOfAccount: keyedList('tokens', { developerId: 'd', userId: 'u', accountId: 'a' }, newestToken),
      providers: keyedList('providers', { developerId: 'd' }, { by: ['createdAt', 'consumerKey'] }),
      calls: keyedList('calls', { developerId: 'd', status: { from: 400 } }, newestCall),
      callsBefore: keyedList('calls', { developerId: 'd' }, { ...newestCall, behind: { at: 3, id: 'i' } }),
      callsOfUserBefore: keyedList(
        'calls',
        { developerId: 'd', userId: 'u' },
        { ...newestCall, behind: { at: 3, id: 'i' } },
      ),
      callsOfUser: keyedList('calls', { developerId: 'd', userId: 'u', at: { from: 1, until: 2 } }, newestCall),
    }
    for (const [name, statement] of Object.entries(lists)) served(name, statement)
    served('accountsOfUsers', keyedList('accounts', { userId: ['u', 'v'] }, { by: byAge }), true)
  })

  test('accounts for operators: by an index, or walking one that has all that is asked for', () => {
    for (const filter of [{ server: 's' }, { developerId: 'd' }, { developerId: 'd', sinceUntil: 1, text: 'x' }])
      served(JSON.stringify(filter), accountPlaces(filter))
    served('of a user, few', accountPlaces({ userId: 'u' }), true)
    for (const filter of [{}, { text: 'x' }, { condition: 'down' as const }])
      assert.match(plan(accountPlaces(filter)).join(), /^SCAN accounts USING COVERING INDEX \w+$/)
    assert.match(plan(accountPlaces({ sinceUntil: 1 })).join(), /^SEARCH accounts USING COVERING INDEX \w+ \(since</)
    assert.match(plan(accountPlaces({ server: 's', text: 'x' })).join(), /COVERING INDEX accounts_of_server/)
    served('several', keyedList('accounts', { id: ['a', 'b'] }, { by: ['id'] }), true)
  })

  test('the outbox', () => {
    const many = Array.from({ length: 50 }, String)
    served('channels', { sql: outbox.pendingChannels })
    served('accounts', { sql: outbox.pendingAccounts })
    served('pending', { sql: outbox.pendingOfChannel })
    served('backlog', { sql: outbox.backlog })
    for (const sql of [outbox.wholeBacklog, outbox.late])
      assert.match(plan({ sql }).join(), /SCAN outbox USING COVERING INDEX outbox_pending/)
    served('pending of few', outbox.pendingOf('c', ['a', 'b'], 9))
    served('pending of one', outbox.pendingOf('c', ['a'], 9))
    served('pending of many', outbox.pendingOf('c', many, 9))
    const queries: readonly DeliveryQuery[] = [
      { webhookId: 'w' },
      { webhookId: 'w', states: ['failed'], createdFrom: 1, createdUntil: 2 },
      { webhookId: 'w', developerId: 'd', statusFrom: 400, statusTo: 499 },
      { developerId: 'd', states: ['failed'] },
      { accountId: 'a', developerId: 'd' },
      { accountId: ['a', 'b'], developerId: 'd', createdFrom: 1 },
      { messageId: 'm', webhookId: 'w', accountId: 'a' },
    ]
    const after = { createdAt: 1, id: 'i' }
    const behind = {
      webhookId: 'w',
      kind: 'message',
      createdFrom: 1,
      createdUntil: 2,
      finishedUntil: 3,
      after,
    } as const
    for (const query of [behind, { ...behind, states: ['failed'] } as const]) {
      const step = outbox.deliveryPage(query, finishedStates, 'ASC', page)
      served('requeue', step)
      assert(plan(step).every((line) => !line.startsWith('SEARCH outbox') || line.includes('outbox_of_webhook')))
    }
    const accounts = ['a', ['a', 'b']].map((accountId) => ({ accountId, developerId: 'd' }))
    for (const owner of [{ webhookId: 'w' }, ...accounts, { developerId: 'd' }]) {
      for (const query of [owner, { ...owner, states: ['failed'], createdFrom: 1, statusFrom: 400 } as const]) {
        const few = outbox.deliveryPage({ ...query, kind: 'status' }, allStates, 'DESC', page)
        served('notices', few)
        assert(
          plan(few).some((line) => line.includes('outbox_notices_of_')),
          plan(few).join(' | '),
        )
      }
    }
    assert.match(plan(userSearch(['a'], 9)).join(), /^SCAN u .*SEARCH a USING COVERING INDEX addresses_of_user/)
    for (const query of [{}, { states: ['failed'], createdFrom: 1 } as const]) {
      const lines = plan(outbox.deliveryPage(query, allStates, 'DESC', page))
      assert.match(lines.join(), /S\w+ outbox USING COVERING INDEX outbox_by_age/)
      assert.doesNotMatch(lines.join(), /TEMP B-TREE/)
      const counts = outbox.deliveryCounts({ ...query, createdFrom: 1 }, 60_000)
      assert.match(plan(counts).join(), /^SEARCH outbox USING COVERING INDEX outbox_by_age/)
    }
    for (const query of [{ webhookId: ['v', 'w'] }, { webhookId: ['v', 'w'], accountId: 'a' }])
      served('of webhooks', outbox.deliveryPage(query, allStates, 'DESC', page))
    served('counts', outbox.deliveryCounts({ webhookId: ['v', 'w'], messageId: 'm' }, 60_000))
    for (const query of queries) {
      for (const direction of ['ASC', 'DESC'] as const) {
        served(JSON.stringify(query), outbox.deliveryPage(query, allStates, direction, page))
      }
    }
    for (const few of [{ accountId: many }, { messageId: ['m', 'n'], webhookId: 'w', accountId: ['a', 'b'] }])
      served('several', outbox.deliveryPage(few, allStates, 'DESC', page), true)
    served('ids', outbox.deliveryPage({ ids: ['1'], webhookId: 'w' }, finishedStates, 'ASC', page), true)
  })

  test('retention and removal', () => {
    const old = [deleteWhere('calls', 'at < ?'), deleteWhere('outbox', 'finished_at < ?')]
    const deletes = [...old, expireKeyed('tokens', 'expiresAt'), nonceSweep]
    const behind = { at: 1, id: 'c' }
    served('changes', keyedList('changes', { at: { until: 9 } }, { by: ['at', 'id'], behind, limit: 9 }))
    for (const sql of [...deletes, ...accountDeletes, ...userDeletes, ...Object.values(keyedDeletes), keyRows.remove]) {
      served(sql, { sql })
    }
  })
})
