/**
 * Every parser of what strangers send takes linear time: for an input of twice the length at most 2.2 times the steps,
 * however the input is made. Steps are counted, not seconds (test/support/steps.ts). In a process of its own: the count
 * is that of the process.
 */
import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import fc from 'fast-check'
import { createStepCounter } from '../support/steps.ts'

const counter = createStepCounter()
after(() => counter.close())

const { parseStructured, resolveParameters } = await import('../../engine/messages/headers.ts')
const { headerFields, headerObject, messageIdsOf } = await import('../../engine/messages/headers.ts')
const { parseAddresses } = await import('../../engine/messages/addresses.ts')
const { decodeWords } = await import('../../engine/messages/encoded-words.ts')
const { bodyNodeOf } = await import('../../engine/messages/structure.ts')
const { parseDate } = await import('../../engine/messages/dates.ts')
const { htmlText, unflow } = await import('../../engine/messages/bodies.ts')
const { createUuDecoder } = await import('../../engine/messages/transfer-encoding.ts')
const { inSet, splitSet, toSet } = await import('../../engine/accounts/session/uids.ts')
const { readBodyStructure } = await import('../../engine/accounts/session/responses.ts')
const { compilePatterns } = await import('../../engine/webhooks/patterns.ts')
const { parseOAuthHeader } = await import('../../api/oauth1.ts')

/** Short pieces that mean something to a parser of mail; a hostile input repeats a few of them for ever. */
const mailPieces = [
  '(', ')', '"', '\\', '<', '>', ',', ';', ':', '=', '*', '%', '?', '@', '[', ']', '-', '.', ' ', '\t', '\r\n', '\r\n ',
  'a', 'é', "'", '=?', '?=', '=?utf-8?q?a?=', '=?utf-8?b?YQ==?=', '=?x?b?', 'a=b', 'a*0*=b', '*1=', '\u0000', '--b', '--b--',
  '\n--b\n', 'Content-Type: multipart/mixed; boundary=b\n\n', 'begin 644 a\n', '#86)C\n', '<a', '&amp;', '<!--', '/', '{',
] // prettier-ignore

/** A beginning, a piece that is repeated, an end. */
const hostile = fc.record({
  head: fc.array(fc.constantFrom(...mailPieces), { maxLength: 3 }).map((pieces) => pieces.join('')),
  body: fc.array(fc.constantFrom(...mailPieces), { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join('')),
  tail: fc.array(fc.constantFrom(...mailPieces), { maxLength: 3 }).map((pieces) => pieces.join('')),
})
type Hostile = typeof hostile extends fc.Arbitrary<infer T> ? T : never

const textOf = ({ head, body, tail }: Hostile, length: number): string =>
  head + body.repeat(Math.ceil(length / body.length)) + tail

/** What ends what a piece begins: an opener behind which only the last closer is missing makes the longest search. */
const closers: Readonly<Record<string, string>> = {
  '(': ')',
  '"': '"',
  '<': '>',
  '[': ']',
  '=?': '?=',
  '<a': '>',
  '{': '}',
}
const examples: [Hostile][] = mailPieces.map((body) => [{ head: 'a', body, tail: closers[body] ?? ';' }])

/** What a parser does before and after the input itself. */
const constant = 500

/** Asked again for four times as much: V8 begins to count some functions late. */
function assertGrowth(steps: (size: number) => number, size: number, what: string): void {
  const [one, two] = [steps(size), steps(2 * size)]
  if (two <= 2.2 * one + constant) return
  const four = steps(4 * size)
  const words = `${what}: ${one} steps for ${size}, ${two} for the double, ${four} for four times as much`
  assert.ok(four <= 2.2 * two + constant, words)
}

/** Within the lengths that the parser looks at, so that its bound does not hide its growth. */
const parsers: readonly (readonly [string, (text: string) => unknown, number])[] = [
  ['structured headers', parseStructured, 1000],
  ['RFC 2231 parameters', (text) => resolveParameters({ name: text, 'name*': text, 'name*0*': text }), 1000],
  ['header fields', (text) => headerFields(Buffer.from(text)), 1000],
  ['headers as an object', (text) => headerObject(Buffer.from(`Subject: ${text}\r\nTo: ${text}\r\n`)), 1000],
  ['addresses', parseAddresses, 1000],
  ['encoded-words', decodeWords, 1000],
  ['MIME of a whole message', (text) => bodyNodeOf(Buffer.from(text)), 1000],
  ['multipart', (text) => bodyNodeOf(Buffer.from(`Content-Type: multipart/mixed; boundary=b\n\n${text}`)), 1000],
  ['Message-IDs', messageIdsOf, 1000],
  ['dates', parseDate, 1000],
  ['HTML to text', htmlText, 1000],
  ['format=flowed', (text) => unflow(text, true), 1000],
  ['uuencode', (text) => createUuDecoder().write(Buffer.from(text)), 1000],
  ['the OAuth header', (text) => parseOAuthHeader(`OAuth ${text}`), 1000],
]

suite('parsers take linear time', () => {
  for (const [name, work, length] of parsers) {
    test(name, () => {
      fc.assert(
        fc.property(hostile, (given) =>
          assertGrowth((size) => counter.count(() => work(textOf(given, size))), length, JSON.stringify(given)),
        ),
        { numRuns: examples.length + 20, examples },
      )
    })
  }
})

suite('sets, structures and filters take linear time', () => {
  const doubled = (work: (size: number) => unknown, size: number, what: string): void =>
    assertGrowth((of) => counter.count(() => work(of)), size, what)
  const uids = (size: number, step: number): number[] =>
    Array.from({ length: size }, (_, at) => ((at * step * 7919) % (size * step)) + 1)

  test('UID sets are written and cut', () => {
    for (const step of [1, 2, 3]) doubled((size) => splitSet(toSet(uids(size, step))), 4000, `step ${step}`)
  })

  test('whether answers belong to a set', () => {
    const work = (size: number): void => {
      const within = inSet(toSet(uids(size, 2)))
      for (let uid = 1; uid <= size; uid += 1) within(uid)
    }
    doubled(work, 1000, 'every second UID')
  })

  test('BODYSTRUCTURE', () => {
    const atom = (value: string) => ({ type: 'STRING' as const, value })
    const leaf = [atom('text'), atom('plain'), null, null, null, atom('7bit'), atom('1'), atom('1')]
    doubled(
      (size) => readBodyStructure([...Array.from({ length: size }, () => leaf), atom('mixed')] as never),
      300,
      'wide',
    )
    const nest = (depth: number): unknown => (depth === 0 ? leaf : [nest(depth - 1), atom('mixed')])
    doubled((size) => readBodyStructure(nest(size) as never), 300, 'deep')
  })

  test('filters: wildcards and regular expressions are compiled and matched', () => {
    const grammar = { list: true, wildcards: 'all', anchoring: 'whole' } as const
    fc.assert(
      fc.property(fc.constantFrom('*a', '?', '[ab]', '\\*', 'a,', '"a",', '/a*/,', '(a'), (piece) => {
        // Of as many characters as a filter may have: the library sorts what it compiles.
        const steps = counter.count(() => {
          try {
            return compilePatterns('filter_from', piece.repeat(2000 / piece.length), grammar)
          } catch (error) {
            return error
          }
        })
        assert.ok(steps < 2_000_000, `${piece}: ${steps} steps`)
      }),
    )
    for (const source of ['*a*a*a*a*a*b', '/(a*)*b/', '/(a|aa)+$/', 'a?a?a?aaa']) {
      const [pattern] = compilePatterns('filter_from', source, { ...grammar, list: false })
      doubled((size) => pattern?.matches('a'.repeat(size)), 2000, source)
    }
  })
})
