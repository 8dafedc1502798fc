/** Every spelling of a parameter gives one value, and a wrong one says what was expected. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import type { z } from 'zod'
import * as values from '../../../api/values.ts'

type Case = readonly [
  name: string,
  schema: z.ZodType,
  good: readonly (readonly [input: unknown, output: unknown])[],
  bad: readonly unknown[],
]

const cases: readonly Case[] = [
  [
    'flag',
    values.flag,
    [
      ...[1, '1', true, 'true', 'True', 'TRUE'].map((input) => [input, true] as const),
      ...[0, '0', false, 'false', 'False', ''].map((input) => [input, false] as const),
    ],
    [2, '2', 'yes', null, [], {}, Number.NaN],
  ],
  [
    'headerMode',
    values.headerMode,
    [
      [0, false],
      ['0', false],
      ['1', '1'],
      [1, '1'],
      [true, '1'],
      ['raw', 'raw'],
      ['RAW', 'raw'],
    ],
    ['2', null, 'x'],
  ],
  [
    'choice',
    values.choice(['asc', 'Desc']),
    [
      ['asc', 'asc'],
      ['ASC', 'asc'],
      [' dEsC ', 'Desc'],
    ],
    ['', 'ascending', null, 1, true, ['asc']],
  ],
  [
    'text',
    values.text,
    [
      ['a', 'a'],
      ['', ''],
      [12, '12'],
      [null, ''],
      [true, 'true'],
      ['👋', '👋'],
    ],
    [[], {}, 'a\0b', 'half \ud800', '\udc00\ud800'],
  ],
  [
    'filledText',
    values.filledText,
    [
      ['a', 'a'],
      [0, '0'],
    ],
    ['', null, []],
  ],
  [
    'lineText',
    values.lineText,
    [
      ['a b ü', 'a b ü'],
      [0, '0'],
      ['x'.repeat(10_000), 'x'.repeat(10_000)],
    ],
    ['', null, [], 'a\rb', 'a\n', '\0', 'a\tb', '\x7f', 'x'.repeat(10_001)],
  ],
  [
    'nameText',
    values.nameText,
    [
      ['', ''],
      ['x'.repeat(1000), 'x'.repeat(1000)],
    ],
    ['x'.repeat(1001), [], '\0', '\ud83d'],
  ],
  [
    'integer',
    values.integer(-1, 10),
    [
      [5, 5],
      ['5', 5],
      ['-1', -1],
      [' 7 ', 7],
      ['+3', 3],
    ],
    [11, '11', -2, 1.5, '1.5', '', 'x', '0x5', '1e1', null, true],
  ],
  [
    'port',
    values.port,
    [
      ['993', 993],
      [143, 143],
    ],
    [0, 65_536, ''],
  ],
  [
    'timestamp',
    values.timestamp,
    [
      ['1700000000', 1_700_000_000_000],
      [0, 0],
    ],
    [-1, 'yesterday', 1e12],
  ],
  [
    'timestampOrDate',
    values.timestampOrDate,
    [
      ['1700000000', 1_700_000_000_000],
      ['02/29/2024', Date.UTC(2024, 1, 29)],
      ['1/2/2020', Date.UTC(2020, 0, 2)],
    ],
    ['02/30/2024', '13/01/2024', '2024-01-01', ''],
  ],
  [
    'commaList',
    values.commaList,
    [
      ['a, b,,c ', ['a', 'b', 'c']],
      ['', []],
      [
        ['a', ' b'],
        ['a', 'b'],
      ],
    ],
    [1, null, [1], 'a,\0', ['\ud800']],
  ],
  [
    'limit',
    values.limit,
    [
      [undefined, 25],
      ['100', 100],
      [1, 1],
    ],
    [0, 101, '-1'],
  ],
  [
    'limitOf',
    values.limitOf(100),
    [
      [undefined, 100],
      ['5', 5],
    ],
    [101],
  ],
  [
    'offset',
    values.offset,
    [
      [undefined, 0],
      ['7', 7],
    ],
    [-1],
  ],
  [
    'url',
    values.url,
    [
      ['https://a.example/x?y', 'https://a.example/x?y'],
      ['HTTP://127.0.0.1:80', 'HTTP://127.0.0.1:80'],
    ],
    ['', 'a.example', 'ftp://a', 'http://', 'http:///x', 'javascript:alert(1)', `http://a/${'x'.repeat(3000)}`, null],
  ],
  [
    'urlOrEmpty',
    values.urlOrEmpty,
    [
      ['', ''],
      [null, ''],
      ['http://a', 'http://a'],
    ],
    ['x', 'ftp://a'],
  ],
  [
    'email',
    values.email,
    [
      ['anna@x.example', 'anna@x.example'],
      [' a+b@localhost ', 'a+b@localhost'],
    ],
    ['', 'anna', 'a b@c', 'a@b@c'],
  ],
  ['sortOrder', values.sortOrder, [['asc', 'asc']], ['up']],
  [
    'accountStatus',
    values.accountStatus,
    [
      ['OK', 'OK'],
      ['DISABLED', 'DISABLED'],
    ],
    ['okay', ''],
  ],
]

suite('values', () => {
  for (const [name, schema, good, bad] of cases) {
    test(name, () => {
      for (const [input, output] of good) assert.deepEqual(schema.parse(input), output, JSON.stringify(input))
      for (const input of bad) {
        const result = schema.safeParse(input)
        assert.ok(!result.success, `${JSON.stringify(input)} was taken`)
        assert.match(result.error.issues[0]?.message ?? '', /expected|must|Too big|Invalid/)
      }
    })
  }

  test('status and status_ok say the same', () => {
    assert.equal(values.wantedStatus({}), undefined)
    assert.equal(values.wantedStatus({ status: 'DISABLED', status_ok: true }), 'DISABLED')
    assert.equal(values.wantedStatus({ status_ok: true }), 'OK')
    assert.equal(values.wantedStatus({ status_ok: false }), 'DISABLED')
  })

  test('nothing that a client sends makes a schema throw', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const [, schema] of cases) assert.equal(typeof schema.safeParse(value).success, 'boolean')
      }),
      { numRuns: 300 },
    )
  })
})
