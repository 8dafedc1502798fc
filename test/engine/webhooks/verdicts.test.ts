/** Filters one by one: their grammar, what is no candidate, and what a verdict says. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import type { MessageAddresses, WebhookFilters } from '../../../engine/store/records.ts'
import { bareReference, compileMatcher, filterParameters } from '../../../engine/webhooks/match.ts'
import { facts } from './arrival.ts'
import { judge, mail } from './judging.ts'

const compiled = (filters: WebhookFilters) =>
  compileMatcher({ filters, receiveAllChanges: false, receiveDrafts: false })

const from = (name: string, email: string) =>
  facts('m', { addresses: { ...mail.addresses, from: [{ name, email }] } satisfies MessageAddresses })

/** Matching texts, then others, of one filter on the message of judging.ts. */
function check(name: keyof WebhookFilters, hits: readonly string[], misses: readonly string[], path = 'INBOX'): void {
  const event = { path, kind: name === 'folderRemoved' ? 'folder_removed' : 'received' } as const
  for (const [texts, outcome] of [
    [hits, 'match'],
    [misses, 'no'],
  ] as const) {
    for (const text of texts) assert.equal(judge({ [name]: text }, { event }).outcome, outcome, `${name}=${text}`)
  }
}

suite('grammar', () => {
  test('people and domains are lists with all wildcards, of whole values', () => {
    check('cc', ['x, elodie@example.net', '[e]lodie@*'], ['elodie@'])
    check('toDomain', ['x.org, [e]xample.com'], ['xample.com', 'exampl'])
    check('fromDomain', ['x.org, [e]xample.org'], ['xample.org'])
  })

  test('a subject is one text, found anywhere; brackets in it are brackets', () => {
    const at = { facts: facts('m', { subject: 'Re: [urgent] one, two' }) }
    for (const text of ['one, two', '[urgent]', 'Re*[urgent]'])
      assert.equal(judge({ subject: text }, at).outcome, 'match', text)
    for (const text of ['two, one', '[u]rgent', 'Re*[urgent]x'])
      assert.equal(judge({ subject: text }, at).outcome, 'no', text)
  })

  test('a folder is one whole name; brackets and commas in it are themselves', () => {
    for (const name of ['folderAdded', 'folderRemoved'] as const) {
      check(
        name,
        ['[Gmail]/A, B', '[gmail]/*', '/gmail/'],
        ['A, B', '[Gmail]/A', 'x, [Gmail]/A, B', '[g[]*'],
        '[Gmail]/A, B',
      )
    }
  })

  test('text of the body is one text, found anywhere, with all wildcards', () => {
    const { bodySearch } = compiled({ bodySearch: 'one, t[wx]o' })
    assert.ok(bodySearch)
    assert.equal(bodySearch.wanted, 'one, t[wx]o')
    for (const [text, hit] of [
      ['say ONE, TWO now', true],
      ['one', false],
      ['two', false],
    ] as const) {
      assert.equal(bodySearch.matches(text), hit, text)
    }
  })

  test('a bad pattern is refused by the name of its parameter, whichever it is', () => {
    for (const [name, parameter] of Object.entries(filterParameters)) {
      assert.throws(
        () => compiled({ [name]: name === 'thread' ? '<>' : '/(/' }),
        (error) => isAppError(error, 'bad_request') && error.message.startsWith(`${parameter}: `),
        name,
      )
    }
  })
})

suite('what is asked for before', () => {
  test('nothing, unless there is such a filter', () => {
    const none = compiled({ subject: 'x' })
    assert.deepEqual([none.bodySearch, none.threadReference], [null, null])
    assert.equal(compiled({ thread: ' <A@b> ' }).threadReference, 'A@b')
  })

  test('a thread is named with or without its wrapping', () => {
    const rows = [
      ['<a@b>', 'a@b'],
      ['gm-17', '17'],
      ['<GM-17>', '17'],
      ['x<a@b>', 'x<a@b>'],
      ['<a@b>x', '<a@b>x'],
      ['igm-1', 'igm-1'],
      ['<<a>>', '<a>'],
    ]
    for (const [text = '', bare] of rows) assert.equal(bareReference(text), bare)
  })

  test('a look-up that has not been made leaves it open, also for a message that answers none', () => {
    const alone = facts('alone')
    const thread = '<sibling@example.com>'
    const open = judge({ thread }, { facts: alone })
    assert.deepEqual([open.outcome, open.undecided], ['undecided', ['filter_thread']])
    assert.deepEqual(
      open.verdicts.map(({ filter, matched }) => [filter, matched]),
      [
        ['receive_all_changes', true],
        ['receive_drafts', true],
        ['filter_thread', false],
      ],
    )
    assert.equal(judge({ thread }, { facts: alone, known: { threads: new Set() } }).outcome, 'no')
    assert.equal(judge({ thread, subject: 'nothing such' }, { facts: alone }).outcome, 'no')
  })

  test('hexadecimal spelling of a hosted thread has 14 to 16 digits and nothing else', () => {
    for (const [thread, hit] of [
      ['112210f47de98115', true],
      ['112210F47DE98115', true],
      ['12210f47de9811', true],
      ['112210f47de98115f', false],
      ['2210f47de9811', false],
    ] as const) {
      const hostedThreadId = BigInt(`0x${thread}`).toString()
      const of = facts('m', { hostedThreadId })
      const { outcome } = judge({ thread }, { facts: of, known: { threads: new Set(), ancestors: [] } })
      assert.equal(outcome, hit ? 'match' : 'no', thread)
    }
    assert.equal(
      judge({ thread: 'zz112210f47de98115' }, { known: { threads: new Set(), ancestors: [] } }).outcome,
      'no',
    )
  })
})

suite('what is no candidate', () => {
  test('a name or an address that is not there', () => {
    assert.equal(judge({ from: '*' }, { facts: from('', '') }).outcome, 'no')
    assert.equal(judge({ from: '*' }, { facts: from('', 'root') }).outcome, 'match')
    assert.equal(judge({ from: '*' }, { facts: from('Root', '') }).outcome, 'match')
  })

  test('the domain of an address without one', () => {
    assert.equal(judge({ fromDomain: '*' }, { facts: from('Root', 'root') }).outcome, 'no')
    assert.equal(judge({ fromDomain: '@*' }, { facts: from('Root', 'root@x.example') }).outcome, 'match')
    assert.equal(judge({ fromDomain: '@example' }, { facts: from('Root', 'root@x.example') }).outcome, 'no')
  })

  test('an attachment without a name', () => {
    const nameless = facts('m', { attachments: mail.attachments.map((one) => ({ ...one, fileName: '' })) })
    assert.equal(judge({ fileName: '*' }, { facts: nameless }).outcome, 'no')
    assert.equal(judge({ fileName: '*' }, { facts: facts('m') }).outcome, 'no')
  })

  test('an event of the other direction, without a filter on that', () => {
    const event = { kind: 'folder_removed', first: false, path: 'Work' } as const
    const more = { receiveAllChanges: true }
    assert.equal(judge({ folderAdded: 'Work' }, { event, more }).outcome, 'no')
    assert.equal(judge({ folderAdded: 'x', folderRemoved: 'Work' }, { event, more }).outcome, 'match')
    assert.equal(judge({ folderRemoved: 'x' }, { event: { ...event, kind: 'folder_added' }, more }).outcome, 'no')
  })
})

suite('why', () => {
  const whyOf = (filters: WebhookFilters, of = mail) => {
    const { verdicts } = judge(filters, { facts: of, known: { threads: new Set(), ancestors: [] } })
    const { matched, why } = verdicts.at(-1) ?? assert.fail()
    return [matched, why] as const
  }

  test('a hit is shown with the item that it matches, a miss with what was looked at', () => {
    assert.deepEqual(whyOf({ from: 'x, ada*' }), [true, '"ada@mail.example.org" matches ada*'])
    const [matched, why] = whyOf({ from: 'x, y' })
    assert.equal(matched, false)
    for (const part of ['"ada@mail.example.org", "Ada Lovelace" ', 'x, y']) assert.ok(why.includes(part), why)
    assert.doesNotMatch(why, /…/)
    const [none, empty] = whyOf({ fileName: 'x, y' }, facts('m'))
    assert.equal(none, false)
    assert.ok(empty.includes('x, y') && !empty.includes('""'), empty)
    assert.equal(whyOf({ folderAdded: 'x' })[0], false)
    assert.ok(whyOf({ folderAdded: 'x' })[1].includes('"INBOX"'))
    assert.equal(whyOf({ thread: 'nothing' })[0], false)
  })

  test('of many values five are shown, and of a long one its beginning', () => {
    const to = Array.from({ length: 6 }, (_, index) => ({ name: '', email: `n${index}@x.example` }))
    const [, why] = whyOf({ to: 'y' }, facts('m', { addresses: { ...mail.addresses, to } }))
    assert.match(why, /"n4@x.example" …/)
    assert.doesNotMatch(why, /n5@/)
    const five = whyOf({ to: 'y' }, facts('m', { addresses: { ...mail.addresses, to: to.slice(1) } }))[1]
    assert.doesNotMatch(five, /…/)
    for (const [length, shown] of [
      [80, 'x'.repeat(80)],
      [81, `${'x'.repeat(79)}…`],
    ] as const) {
      assert.deepEqual(whyOf({ subject: 'x' }, facts('m', { subject: 'x'.repeat(length) }))[1], `"${shown}" matches x`)
    }
  })
})
