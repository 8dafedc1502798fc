/** What both stores share: keys of messages and queries, and the steps that change records. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inSteps, newMail } from '../../engine/store/batch-steps.ts'
import { changeId } from '../../engine/store/ids.ts'
import { freshCursor, messageKeys, newMessage, queryKeys, sameCursor, subjectNeedle } from '../../engine/store/rows.ts'
import type { AddedMessage } from '../../engine/store/port.ts'
import type { ContactDelta, Placement } from '../../engine/store/records.ts'
import { addressed, attachmentRecord } from './contract/records.ts'

const placement: Placement = {
  folderId: 'inbox',
  path: 'INBOX',
  uidValidity: '1',
  uid: 1,
  flags: [],
  modseq: '0',
  rev: 0,
}

function keysOf(from: readonly string[], to: readonly string[] = [], attached = false): string[] {
  const attachments = attached ? [attachmentRecord(0)] : []
  const facts = addressed({ from, to }, { threadId: 'thread', attachments })
  return messageKeys(newMessage('account', { id: 'm', identity: 'i', facts, placement, firstChangeId: null }, 0)).sort()
}

describe('keys of a message', () => {
  test('are its folders, thread, attachments, addresses, and domains with their parents', () => {
    const expected = ['a', 'f:inbox', 'from:@com', 'from:@x.com', 'from:ann@x.com', 't:thread', 'to:@org', 'to:b@org']
    assert.deepEqual(keysOf(['Ann@X.com', 'ann@x.com'], ['b@org'], true), expected)
  })

  test('of odd addresses stay few and findable', () => {
    const plain = ['f:inbox', 't:thread']
    assert.deepEqual(keysOf(['', '  ']), plain)
    assert.deepEqual(keysOf(['postmaster']), ['f:inbox', 'from:@postmaster', 't:thread'])
    assert.deepEqual(keysOf(['a@[10.0.0.1]']), ['f:inbox', 'from:@[10.0.0.1]', 'from:a@[10.0.0.1]', 't:thread'])
    const deep = Array.from({ length: 100 }, (_, index) => `l${index}`).join('.')
    const keys = keysOf([`a@${deep}`])
    assert.equal(keys.length, plain.length + 9)
    for (const key of [`from:a@${deep}`, `from:@${deep}`, 'from:@l99', 'from:@l98.l99']) assert(keys.includes(key), key)
    assert.deepEqual(keysOf(['"a@b"@x']), ['f:inbox', 'from:"a@b"@x', 'from:@x', 't:thread'])
  })

  test('of a tombstone are none', () => {
    const facts = addressed({ from: ['a@x.com'] })
    const message = newMessage('account', { id: 'm', identity: 'i', facts, placement, firstChangeId: null }, 0)
    assert.deepEqual(messageKeys({ ...message, placements: [] }), [])
  })
})

describe('keys of a query', () => {
  test('are a conjunction of alternatives', () => {
    const query = { folderId: 'inbox', from: ['Ann@X.com', 'x.com', '@x.com', '.com'], hasAttachments: false }
    assert.deepEqual(queryKeys(query), {
      all: [['f:inbox'], ['from:ann@x.com', 'from:@x.com', 'from:@com']],
      none: ['a'],
    })
    const email = ['from', 'to', 'cc', 'bcc'].map((field) => `${field}:@x.com`)
    assert.deepEqual(queryKeys({ email: ['x.com'] }), { all: [email], none: [] })
    assert.deepEqual(queryKeys({}), { all: [], none: [] })
    assert.deepEqual(queryKeys({ to: [] }), { all: [[]], none: [] })
  })

  test('begin with those that the fewest messages have: thread, address, few before many, domain, folder, .com', () => {
    const [to, cc] = [['a@x.com', 'b@x.com'], ['c@x.com']]
    const query = { from: ['.com'], to, cc, bcc: ['y.com'], threadId: 't1', folderId: 'inbox', hasAttachments: true }
    assert.deepEqual(
      queryKeys(query).all.map(([key]) => key),
      ['t:t1', 'cc:c@x.com', 'to:a@x.com', 'bcc:@y.com', 'a', 'f:inbox', 'from:@com'],
    )
  })

  test('are of the very address that is named, also where it begins with a dot', () => {
    for (const address of ['.john@x.com', '..@x.com']) {
      assert.deepEqual(queryKeys({ from: [address] }).all, [[`from:${address}`]])
      assert(keysOf([address]).includes(`from:${address}`))
    }
    assert.deepEqual(queryKeys({ from: ['..x.com', '.@x.com', '@.x.com'] }).all, [['from:@x.com', 'from:.@x.com']])
  })

  test('look for an internationalised domain in both spellings', () => {
    const both = ['from:@bücher.example', 'from:@xn--bcher-kva.example']
    const all = (...from: string[]) => queryKeys({ from }).all.map((keys) => keys.toSorted())
    assert.deepEqual(all('bücher.example'), [both])
    assert.deepEqual(all('@XN--Bcher-kva.example'), [both])
    assert.deepEqual(all('bücher.example', 'xn--bcher-kva.example'), [both])
    assert.deepEqual(all('Anna@bücher.example'), [['from:anna@bücher.example', 'from:anna@xn--bcher-kva.example']])
    assert.deepEqual(all('.рф'), [['from:@xn--p1ai', 'from:@рф']])
    assert.deepEqual(all('xn--'), [['from:@xn--']])
    for (const sent of ['anna@bücher.example', 'anna@xn--bcher-kva.example']) {
      for (const term of [
        'bücher.example',
        'xn--bcher-kva.example',
        'anna@BÜCHER.example',
        'anna@xn--bcher-kva.example',
      ]) {
        const keys = keysOf([sent])
        assert(
          all(term)[0]?.some((key) => keys.includes(key)),
          `${sent} ${term}`,
        )
      }
    }
  })

  test('leave the subject to be compared', () => {
    assert.equal(subjectNeedle({}), null)
    assert.equal(subjectNeedle({ subject: '' }), null)
    assert.equal(subjectNeedle({ subject: 'CAFE\u0301' }), 'caf\u00e9')
  })
})

test('the ids of changes of a first use of a UID are what they ever were; each later use has its own', () => {
  const at = ['a'.repeat(24), 'f'.repeat(24), '1', 5] as const
  assert.equal(changeId(...at, 'added', 0), 'b693869f8b231e104824b4efc43e8138')
  assert.equal(changeId(...at, 'flags', '1:\\Seen'), 'dd92bcf8dc3b57e66ccf497e9774931f')
  assert.equal(changeId(...at, 'added', 0, 0), changeId(...at, 'added', 0))
  const ids = [0, 7, 8].flatMap((generation) => [
    changeId(...at, 'added', 0, generation),
    changeId(...at, 'removed', 0, generation),
    changeId(...at, 'flags', '1:', generation),
  ])
  assert.equal(new Set(ids).size, 9)
})

test('cursors are the same when every field is', () => {
  const cursor = { ...freshCursor('1'), quarantined: [3, 4] }
  assert(sameCursor(null, null))
  assert(sameCursor(cursor, { ...cursor, quarantined: [3, 4] }))
  assert(!sameCursor(cursor, null))
  const others = [
    { uidValidity: '2' },
    { uidNext: 9 },
    { backfillBelow: 9 },
    { highestModseq: '9' },
    { exists: 9 },
    { comparedAt: 9 },
    { quarantined: [3] },
    { generation: 9 },
  ]
  for (const other of others) assert(!sameCursor(cursor, { ...cursor, ...other }), JSON.stringify(other))
})

describe('a batch of new mail', () => {
  const mail = (id: string, recipients: number) => {
    const to = Array.from({ length: recipients }, (_, n) => `p${n}@x.com`)
    return { id, identity: id, facts: addressed({ from: ['ann@x.com'], to }), placement, firstChangeId: null }
  }
  const delta = (id: string, of: number): ContactDelta => {
    const counts = { total: 1, direct: 0, indirect: 0 }
    return { userId: 'user', email: `p${of}@x.com`, name: '', key: `${id}:o`, receivedAt: 0, ...counts }
  }
  const stepsOf = (added: readonly AddedMessage[], contacts: readonly ContactDelta[] = []) =>
    inSteps(newMail({ added, contacts })).map((step) => [
      step.added.map(({ id }) => id).join(' '),
      step.contacts.length,
    ])

  test('is one step, up to 1,500 addresses', () => {
    const many = Array.from({ length: 300 }, (_, n) => mail(`m${n}`, 4))
    assert.equal(stepsOf(many).length, 1)
    assert.equal(stepsOf([...many, mail('more', 4)]).length, 2)
  })

  test('to thousands of people is a step each, with its own contacts, of which each weighs as four addresses', () => {
    const contacts = [...Array(300).keys()].flatMap((n) => [delta('b', n), delta('known', n)])
    assert.deepEqual(stepsOf([mail('a', 5000), mail('b', 5000), mail('c', 1), mail('d', 300)], contacts), [
      ['a', 0],
      ['b', 300],
      ['c d', 0],
      ['', 300],
    ])
  })
})
