/** Filters: hits, misses and bad patterns of each, and the rules on events. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { isAppError } from '../../../engine/errors.ts'
import type { WebhookFilters } from '../../../engine/store/records.ts'
import { vanishWhere } from '../../../engine/store/rows.ts'
import { compileMatcher, filterParameters, type MessageEvent } from '../../../engine/webhooks/match.ts'
import { compilePatterns } from '../../../engine/webhooks/patterns.ts'
import { facts, messageOf } from './arrival.ts'
import { account, judge, mail } from './judging.ts'

const table: readonly (readonly [keyof WebhookFilters, readonly string[], readonly string[]])[] = [
  [
    'to',
    [
      'sales@example.com',
      'SALES@example.com',
      'nobody@x.org, sales@example.com',
      '*@example.com',
      'sale?@example.com',
      '[r-t]ales@*',
      '[!a]ales@*',
      '/^sales@/',
      '/a{2},|sales@exa/',
      '"Team, Sales"',
      'team*',
      'nobody, /^bob@/',
    ],
    [
      'sales',
      'example.com',
      'sale@example.com',
      '?sales@example.com',
      '[!s]ales@*',
      '/^ales@/',
      'elodie@example.net',
      'Team',
    ],
  ],
  [
    'from',
    ['ada@mail.example.org', 'ada lovelace', 'Ada *', '/lovelace$/'],
    ['ada', 'sales@example.com', '/^lovelace/'],
  ],
  ['cc', ['élodie', 'e\u0301lodie', 'ELODIE@EXAMPLE.NET', '*@example.net'], ['elodie', 'sales@example.com']],
  [
    'subject',
    [
      'rechnung',
      'Nr. 42',
      'GRÜSSE'.replace('SS', 'ß'),
      '/nr\\.\\s+\\d+/',
      '/^Rechnung/',
      'rech*42',
      'Nr? 4?',
      'gru\u0308?e',
    ],
    ['rech*43', 'invoice', '/^Nr/', '/\\d{3}/', '[r]echnung', 'Rechnung, invoice', '42??????????'],
  ],
  [
    'thread',
    [
      'feedfeedfeedfeed',
      '1234567890123456789',
      'gm-1234567890123456789',
      '112210f47de98115',
      '<m1@example.com>',
      'm1@example.com',
      'root@example.com',
      '<parent@example.com>',
    ],
    [],
  ],
  [
    'fileName',
    [
      '*.pdf',
      'invoice-2024.pdf',
      'invoice-????.*',
      '/\\.(pdf|zip)$/',
      '*.zip, *.doc',
      'report[1].doc',
      'report\\[1\\].doc',
    ],
    ['*.zip', 'invoice', 'pdf', '/^report\\d/'],
  ],
  ['folderAdded', ['INBOX', 'inbox', 'in*', '/^inbox$/'], ['INBOX/Work', 'Sent', '/^in$/']],
  [
    'toDomain',
    [
      'example.com',
      '@example.com',
      'EXAMPLE.COM',
      'x.org, example.com',
      'com',
      'bücher.example',
      'xn--bcher-kva.example',
      '*.com',
    ],
    ['ample.com', 'mail.example.com', 'org', 'sales@example.com'],
  ],
  [
    'fromDomain',
    ['example.org', 'mail.example.org', '*.example.org'],
    ['example.com', 'xample.org', 'x.mail.example.org'],
  ],
]

suite('filters', () => {
  for (const [name, hits, misses] of table) {
    test(name, () => {
      for (const text of hits) {
        const { outcome, verdicts } = judge({ [name]: text }, { known: { threads: new Set() } })
        assert.equal(outcome, 'match', `${name}=${text}: ${JSON.stringify(verdicts)}`)
      }
      for (const text of misses) {
        const { outcome, verdicts } = judge({ [name]: text }, { known: { threads: new Set() } })
        assert.equal(outcome, 'no', `${name}=${text}`)
        const verdict = verdicts.find((one) => one.filter === filterParameters[name])
        assert.ok(verdict && !verdict.matched && verdict.why !== '')
      }
    })
  }

  test('bodySearch waits for the body', () => {
    assert.equal(judge({ bodySearch: 'secret' }).outcome, 'undecided')
    const body = 'Dear all,\nthe SECRET word [x]'
    const matches = (bodySearch: string) =>
      compileMatcher({ filters: { bodySearch }, receiveAllChanges: false, receiveDrafts: false }).bodySearch?.matches(
        body,
      )
    for (const text of ['secret', 'sec?et', 'the*word', '/the\\s+secret/', '[x]'])
      assert.equal(matches(text), true, text)
    for (const text of ['secrets', '/^secret/']) assert.equal(matches(text), false, text)
    for (const [matched, outcome] of [
      [true, 'match'],
      [false, 'no'],
      [null, 'undecided'],
    ] as const) {
      const judged = judge({ bodySearch: 'secret' }, { known: { body: { matched, why: 'so it is' } } })
      assert.equal(judged.outcome, outcome)
      assert.deepEqual(judged.verdicts.at(-1), { filter: 'body_search', matched: matched === true, why: 'so it is' })
    }
    assert.equal(judge({ bodySearch: 'secret', subject: 'nothing such' }).outcome, 'no', 'no need to read the body')
  })

  test('thread by a Message-ID that the message does not carry waits for the look-up', () => {
    assert.equal(judge({ thread: '<sibling@example.com>' }).outcome, 'undecided')
    assert.equal(
      judge({ thread: '<sibling@example.com>' }, { known: { threads: new Set(['feedfeedfeedfeed']) } }).outcome,
      'match',
    )
    const threads = new Set(['another'])
    assert.equal(judge({ thread: '<sibling@example.com>' }, { known: { threads } }).outcome, 'undecided')
    for (const thread of ['<sibling@example.com>', 'feed', '1'])
      assert.equal(judge({ thread }, { known: { threads, ancestors: [] } }).outcome, 'no', thread)
    const alone = facts('alone')
    assert.equal(judge({ thread: '<sibling@example.com>' }, { facts: alone, known: { threads } }).outcome, 'no')
  })

  test('all filters have to match', () => {
    assert.equal(judge({ subject: 'rechnung', from: '*@mail.example.org' }).outcome, 'match')
    assert.equal(judge({ subject: 'rechnung', from: '*@example.com' }).outcome, 'no')
  })

  test('letters with their accents apart are the same letters', () => {
    const apart = 'Gru\u0308\u00dfe'
    for (const text of [apart, `${apart}*`, `42 ? ${apart}`, `/^rechnung .* ${apart}$/`, '/gr[u\u0308x]ße/'])
      assert.equal(judge({ subject: text }).outcome, 'match', text)
    assert.equal(judge({ cc: 'e\u0301l?die' }).outcome, 'match')
    assert.equal(judge({ cc: '[e\u0301x]lodie' }).outcome, 'match')
  })

  test('folder names: as the API shows them, or as the server writes them', () => {
    const event = { path: 'Work.Projects.2024', kind: 'folder_added', first: false } as const
    const known = { folderName: (path: string) => path.replaceAll('.', '/') }
    for (const text of ['Work/Projects/2024', 'Work.Projects.2024', 'work/*']) {
      assert.equal(judge({ folderAdded: text }, { event, known }).outcome, 'match', text)
    }
    for (const text of ['Projects', 'Work|Projects|2024', 'Work.Projects/2024'])
      assert.equal(judge({ folderAdded: text }, { event, known }).outcome, 'no', text)
    // A dot is a letter like any other where the server has another delimiter.
    assert.equal(judge({ folderAdded: 'v1/2' }, { event: { ...event, path: 'v1.2' } }).outcome, 'no')
    assert.equal(judge({ folderAdded: '[Mail]/All' }, { event: { ...event, path: '[Mail]/All' } }).outcome, 'match')
  })

  test('a bad pattern names the parameter and the place', () => {
    const bad: readonly (readonly [WebhookFilters, RegExp])[] = [
      [{ to: 'a@b.c, /x(y/' }, /^filter_to: .*missing closing \).* at position 12$/],
      [{ from: '[abc' }, /^filter_from: \[ without closing \] at position 1$/],
      [{ from: 'x,,y' }, /^filter_from: empty item at position 3$/],
      [{ subject: '/(?=x)/' }, /^filter_subject: .* at position 2$/],
      [{ fileName: '*.[z-a]' }, /^filter_file_name: .* at position 3$/],
      [{ cc: '/abc' }, /^filter_cc: regular expression without closing \/ at position 1$/],
      [{ bodySearch: '//' }, /^body_search: empty regular expression/],
      [{ subject: '/abc' }, /^filter_subject: regular expression without closing \/ at position 1$/],
      [{ folderAdded: ' /abc' }, /^filter_folder_added: regular expression without closing \/ at position 2$/],
      [{ bodySearch: '/' }, /^body_search: regular expression without closing \//],
      [{ subject: '   ' }, /^filter_subject: empty pattern/],
      [{ from: '  ' }, /^filter_from: empty item/],
      [{ thread: '<>' }, /^filter_thread: names no thread$/],
      [{ thread: ' ' }, /^filter_thread: names no thread$/],
      [{ to: 'x'.repeat(3000) }, /^filter_to: is longer/],
    ]
    for (const [filters, message] of bad) {
      assert.throws(
        () => compileMatcher({ filters, receiveAllChanges: false, receiveDrafts: false }),
        (error) => isAppError(error, 'bad_request') && message.test(error.message),
        JSON.stringify(filters),
      )
    }
  })

  test('users’ expressions run in linear time', () => {
    const [pattern] = compilePatterns('p', '/(a+)+$/', { list: false, wildcards: 'all', anchoring: 'within' })
    const since = performance.now()
    assert.equal(pattern?.matches(`${'a'.repeat(50_000)}b`), false)
    assert.ok(performance.now() - since < 1000)
  })
})

suite('events', () => {
  const later = (kind: MessageEvent['kind'], path = 'INBOX') => ({ event: { kind, first: false, path } })

  test('only the first event without options', () => {
    assert.equal(judge({}).outcome, 'match')
    assert.equal(judge({}, { event: { kind: 'sent' } }).outcome, 'match')
    for (const kind of ['flags_changed', 'folder_added', 'folder_removed', 'deleted'] as const) {
      assert.equal(judge({}, later(kind)).outcome, 'no', kind)
      assert.equal(judge({}, { ...later(kind), more: { receiveAllChanges: true } }).outcome, 'match', kind)
    }
  })

  test('folder filters ask for every event of their direction', () => {
    const { event } = later('folder_added', 'Work')
    assert.equal(judge({ folderAdded: 'Work' }, { event }).outcome, 'match')
    assert.equal(judge({ folderAdded: 'Work' }, { event: { ...event, kind: 'folder_removed' } }).outcome, 'no')
    assert.equal(judge({ folderRemoved: 'Work' }, { event: { ...event, kind: 'folder_removed' } }).outcome, 'match')
    assert.equal(judge({ folderRemoved: 'Work' }, { event: { ...event, kind: 'deleted' } }).outcome, 'match')
    assert.equal(judge({ folderRemoved: 'Work' }).outcome, 'no')
    const both = { folderAdded: 'In', folderRemoved: 'Out' }
    assert.equal(judge(both, later('folder_added', 'In')).outcome, 'match')
    assert.equal(judge(both, later('folder_removed', 'Out')).outcome, 'match')
    assert.equal(judge(both, later('folder_removed', 'In')).outcome, 'no')
    assert.equal(judge(both, { ...later('flags_changed', 'In'), more: { receiveAllChanges: true } }).outcome, 'no')
  })

  test('drafts only when asked for', () => {
    const draft = { event: { kind: 'draft' } } as const
    assert.equal(judge({}, draft).outcome, 'no')
    assert.equal(judge({}, { ...draft, more: { receiveDrafts: true } }).outcome, 'match')
    assert.equal(judge({}, { event: { flags: ['\\Draft'] } }).outcome, 'no')
  })

  test('a draft that is sent is told when it leaves the drafts', () => {
    const message = messageOf(account, { facts: mail, path: 'Drafts', flags: ['\\Draft'] }, 1, null)
    const [draft] = message.placements
    assert.ok(draft)
    const sent = { ...draft, folderId: 'c'.repeat(24), path: 'Sent', uid: 7, flags: ['\\Seen'] }
    const matcher = compileMatcher({ filters: {}, receiveAllChanges: false, receiveDrafts: false })
    const event: MessageEvent = { kind: 'folder_added', first: false, ...sent }
    assert.equal(matcher.judge(event, { ...message, placements: [draft, sent] }).outcome, 'match')
    const archive = { ...sent, folderId: 'd'.repeat(24), path: 'Archive' }
    const second: MessageEvent = { ...event, ...archive }
    assert.equal(matcher.judge(second, { ...message, placements: [draft, sent, archive] }).outcome, 'no')
    const left = vanishWhere(message, () => true, 1)
    assert.equal(matcher.judge(event, { ...left, placements: [sent] }).outcome, 'match', 'moved')
    const both = { ...left, placements: [sent, archive] }
    assert.equal(matcher.judge(second, both).outcome, 'no', 'it was sent before')
    const filed = vanishWhere(both, ({ path }) => path === 'Sent', 2)
    assert.equal(matcher.judge(second, filed).outcome, 'no', 'and so it was when it is moved on')
  })
})

suite('wildcards', () => {
  const grammar = { list: false, wildcards: 'all', anchoring: 'whole' } as const
  const alphabet = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '.', '*', '?'), minLength: 1, maxLength: 12 })

  test('agree with a naive matcher', () => {
    fc.assert(
      fc.property(alphabet, fc.string({ unit: fc.constantFrom('a', 'b', 'c', '.'), maxLength: 12 }), (glob, value) => {
        const [pattern] = compilePatterns('p', glob, grammar)
        assert.equal(pattern?.matches(value), naive(glob, value), `${glob} against ${value}`)
      }),
    )
  })

  function naive(glob: string, value: string): boolean {
    if (glob === '') return value === ''
    const [head, rest] = [glob.charAt(0), glob.slice(1)]
    if (head === '*') return naive(rest, value) || (value !== '' && naive(glob, value.slice(1)))
    return value !== '' && (head === '?' || head === value.charAt(0)) && naive(rest, value.slice(1))
  }
})
