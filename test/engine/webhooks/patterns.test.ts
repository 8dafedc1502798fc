/** The pattern language of filters: lists, quotes, wildcards, regular expressions, and where a bad one is wrong. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import { RE2JS } from 're2js'
import {
  compilePatterns,
  costOf,
  expressionFlags,
  type Grammar,
  stepsWritten,
} from '../../../engine/webhooks/patterns.ts'

const list: Grammar = { list: true, wildcards: 'all', anchoring: 'whole' }
const one: Grammar = { list: false, wildcards: 'all', anchoring: 'whole' }
const within: Grammar = { list: false, wildcards: 'no brackets', anchoring: 'within' }

/** How many items there are, and which of the values any of them matches. */
function found(text: string, values: readonly string[], grammar: Grammar): readonly [number, readonly string[]] {
  const patterns = compilePatterns('filter_x', text, grammar)
  return [patterns.length, values.filter((value) => patterns.some((pattern) => pattern.matches(value)))]
}

/** Rows of text, the number of its items, values that match and values that do not. */
type Row = readonly [string, number, readonly string[], readonly string[]]

function check(rows: readonly Row[], grammar: Grammar): void {
  for (const [text, items, hits, misses] of rows) {
    assert.deepEqual(found(text, [...hits, ...misses], grammar), [items, hits], text)
  }
}

function wrongAt(position: number | null, words: RegExp, grammar: Grammar, ...texts: readonly string[]): void {
  for (const text of texts) {
    assert.throws(
      () => compilePatterns('filter_x', text, grammar),
      (error) => {
        assert(isAppError(error, 'bad_request'), String(error))
        assert.match(error.message, /^filter_x: /)
        assert.match(error.message, words)
        if (position !== null) assert.match(error.message, new RegExp(` at position ${position}$`), text)
        return true
      },
      text,
    )
  }
}

suite('lists', () => {
  test('items are separated by commas, spaces around them do not count', () => {
    const rows: readonly Row[] = [
      ['a', 1, ['a', 'A'], ['b', 'ab', '']],
      ['  a , b  ,c ', 3, ['a', 'b', 'c'], [' a', 'a ', 'b ', 'a , b']],
      ['a b,c', 2, ['a b', 'c'], ['a', 'b']],
      ['a\\,b, c', 2, ['a,b', 'c'], ['a', 'b', 'a\\']],
    ]
    check(rows, list)
    check([['a, b', 1, ['a, b'], ['a', 'b']]], one)
  })

  test('in quotes everything is itself', () => {
    const rows: readonly Row[] = [
      ['"a, b"', 1, ['a, b'], ['a', 'b', '"a, b"']],
      ['"a*", "[b]" , "/c/"', 3, ['a*', '[b]', '/c/'], ['ab', 'b', 'c']],
      ['a", "b"', 2, ['a"', 'b'], ['a', '"b"']],
      ['a"b"', 1, ['a"b"'], ['a', 'b', '"b']],
      ['"a\\", b"', 1, ['a\\", b'], ['a', 'b']],
      ['""', 1, [''], ['"']],
    ]
    check(rows, list)
  })

  test('a regular expression may hold commas and slashes', () => {
    const rows: readonly Row[] = [
      ['/^a,b$/, c', 2, ['a,b', 'c'], ['a', 'b']],
      ['/,a$/', 1, [',a', 'x,a'], ['a']],
      ['/^a,/', 1, ['a,', 'a,b'], ['a']],
      ['/^a\\/, b/', 1, ['a/, b'], ['a/', 'b']],
      ['/^a/b,c$/', 1, ['a/b,c'], ['a/b', 'c', 'a']],
      ['/a/ , b', 2, ['xax', 'b'], ['c', 'x']],
    ]
    check(rows, list)
  })

  test('an empty item, or one that is not closed, is wrong where it begins', () => {
    wrongAt(1, /empty item/, list, '', ',a')
    wrongAt(4, /empty item/, list, '   ')
    wrongAt(3, /empty item/, list, 'x,', 'x,,y', '  ,x')
    wrongAt(4, /quoted text without closing "/, list, 'a, "b', 'a, "', 'a, "b" c')
    wrongAt(4, /regular expression without closing \//, list, 'a, /b', 'a, /', 'a, /b/c')
  })

  test('2000 characters are allowed, one more is not', () => {
    assert.equal(found('x'.repeat(2000), ['x'.repeat(2000)], list)[1].length, 1)
    wrongAt(null, /longer than 2000/, list, 'x'.repeat(2001))
  })
})

suite('wildcards', () => {
  test('of a set: its members, ranges, and their opposite; brackets and signs in it are themselves', () => {
    const rows: readonly Row[] = [
      ['[b]', 1, ['b', 'B', '[b]'], ['a', 'y', '', 'bb']],
      ['x[a-c]', 1, ['xa', 'xc'], ['xd', 'x', 'x-']],
      ['[!a]', 1, ['b', '!', ']'], ['a', 'A', '']],
      ['[^a]', 1, ['b', '^', '!'], ['a']],
      ['[a!]', 1, ['a', '!'], ['b']],
      ['[a^]', 1, ['a', '^'], ['b']],
      ['[[a]', 1, ['[', 'a'], ['b']],
      ['[\\a]', 1, ['\\', 'a'], ['b']],
      ['[]a]', 1, [']', 'a'], ['b', '[', 'a]']],
      ['[!]a]', 1, ['b', '['], [']', 'a']],
      ['[a]!?[b]', 1, ['a!xb'], ['a', '!', 'axb']],
      ['*![a]', 1, ['!a', 'x!a'], ['!b']],
      ['!*[a]', 1, ['!a', '!xa'], ['a']],
    ]
    check(rows, one)
  })

  test('are themselves after a backslash; a backslash at the end is itself', () => {
    const rows: readonly Row[] = [
      ['a\\*', 1, ['a*', 'a\\*'], ['ab', 'a']],
      ['\\[a\\]', 1, ['[a]'], ['a']],
      ['\\\\?', 1, ['\\a'], ['a', '\\']],
      ['a*\\', 1, ['ab\\', 'a\\'], ['ab', 'a']],
    ]
    check(rows, one)
  })

  test('stand for any text or letter, over lines too; all other letters are themselves', () => {
    const rows: readonly Row[] = [
      ['a*c', 1, ['ac', 'abbc', 'a\nc', 'A.C'], ['ab', 'xac', 'acx']],
      ['a?c', 1, ['abc', 'a\nc'], ['ac', 'abbc']],
      ['a.c*', 1, ['a.c', 'a.cd'], ['abc', 'abcd']],
      ['(a|b)*', 1, ['(a|b)', '(a|b)c'], ['a', 'b']],
    ]
    check(rows, one)
  })

  test('in names that often hold brackets, brackets are themselves', () => {
    const rows: readonly Row[] = [
      ['[urgent]', 1, ['[Urgent] now'], ['u', 'urgent']],
      ['Re*[urgent]', 1, ['Re: [urgent]', 'x Re: a [urgent] b'], ['Re: u', 'Re urgent']],
      ['a\\*b', 1, ['a\\xb', 'a\\b'], ['a*b']],
      ['a?[', 1, ['ax['], ['ax']],
    ]
    check(rows, within)
    check([['INBOX/*', 1, ['INBOX/a'], ['x/INBOX/a', 'INBOX']]], { ...within, anchoring: 'whole' })
  })

  test('a set that is not closed, or upside down, is wrong where it begins', () => {
    wrongAt(7, /\[ without closing \]/, list, 'x, abc[de', 'x, a*c[', 'x, abc[]')
    wrongAt(6, /\[ without closing \]/, list, 'x, ab[!]')
    wrongAt(6, /./, list, 'x, ab[z-a]')
  })
})

suite('regular expressions', () => {
  test('are found anywhere, without case, over lines; letters with accents apart are the same', () => {
    const rows: readonly Row[] = [
      ['/b.d/', 1, ['abcde', 'ab\nde', 'ABCDE'], ['bd']],
      ['/^gr\u00fc/', 1, ['gru\u0308n', 'GRÜN'], ['grun']],
    ]
    check(rows, one)
    check(rows, within)
  })

  test('what is wrong with one is said with its place', () => {
    wrongAt(4, /empty regular expression/, list, 'x, //')
    wrongAt(1, /without closing/, one, '/', '/a')
    wrongAt(5, /./, one, '/ab[z-a]c/')
    wrongAt(4, /./, one, '/ab(?=x)/')
    wrongAt(5, /missing/, one, '/ab(/')
    wrongAt(8, /missing/, list, 'x, /ab(/')
  })
})

suite('how long filters may take', () => {
  test('repetitions are counted before they are compiled, in one pass', () => {
    const sources = [
      'a', 'a{1000}', 'a{2,}', 'a{3,7}b', '(a{30}){30}', '((a{10}){10}){10}x', '(?:ab|c){20}', '[[:alpha:]]{3}', '[]a]{4}', '[^]]{5}',
      '\\x{1000}', '\\p{Lu}{40}', '\\{3}', '[{9}]', '(a[)]{4}){5}', '(?P<x>a){20}', '\\b[A-Z0-9._%+-]+@[A-Z0-9.-]+\\.[A-Z]{2,4}\\b',
    ] // prettier-ignore
    for (const source of sources) {
      const [written, real] = [stepsWritten(source), RE2JS.compile(source, expressionFlags).programSize()]
      assert(written <= 2 * real + 10 && real <= 3 * written + 10, `${source}: ${written} counted, ${real} compiled`)
    }
  })

  test('more than 10,000 steps of all items together are refused, with the place of the item', () => {
    const half = `/a{1000}b{1000}c{1000}d{1000}e{900}/`
    assert.equal(compilePatterns('filter_x', `${half}, ${half}`, list).length, 2)
    wrongAt(half.length * 2 + 5, /more than 10000 steps/, list, `${half}, ${half}, /f{300}/`)
    wrongAt(1, /more than 10000 steps/, one, `/${'(ab|cd|ef){166}'.repeat(100)}/`)
    const most = [list, one].map((grammar) => compilePatterns('filter_x', '?,'.repeat(999) + '?', grammar).length)
    assert.deepEqual(most, [1000, 1])
  })

  test('what it costs follows the values, the patterns and their length', () => {
    const cost = (text: string, count: number): number =>
      costOf(
        compilePatterns('filter_x', text, list),
        Array.from({ length: count }, () => 'someone@example.com'),
      )
    assert(cost('a@example.com', 5000) < 600_000, 'an address among thousands is nothing')
    assert(cost('*@example.com,*@example.net', 100) < 600_000)
    assert(cost(Array.from({ length: 263 }, () => '*abcdx').join(','), 5000) > 100_000_000)
    assert.equal(cost('*a*', 20), 20 * cost('*a*', 1))
  })
})
