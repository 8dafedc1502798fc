/** The OAuth header, which anybody may send: read as before, and never with more work than its length asks for. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { parseOAuthHeader, type Characters } from '../../../api/oauth1.ts'
import { percentEncode } from '../../../api/wire.ts'

/** How many characters the reader looks at. */
function steps(text: string): number {
  let count = 0
  const counted: Characters = {
    length: text.length,
    charCodeAt(index) {
      count += 1
      return text.charCodeAt(index)
    },
    slice(from, to) {
      count += to - from
      return text.slice(from, to)
    },
  }
  parseOAuthHeader(counted)
  return count
}

const pieces = fc.stringMatching(/^[ \t=,"a%]{1,6}$/)

suite('the OAuth header', () => {
  test('work for twice the length is at most 2.2 times as much', () => {
    fc.assert(
      fc.property(pieces, pieces, pieces, fc.integer({ min: 100, max: 1000 }), (first, again, last, times) => {
        const once = steps(`OAuth ${first}${again.repeat(times)}${last}`)
        const twice = steps(`OAuth ${first}${again.repeat(2 * times)}${last}`)
        assert(twice <= 2.2 * once + 20, `${once} steps, then ${twice}`)
      }),
      { numRuns: 2000 },
    )
  })

  test('no text needs more than four steps a character', () => {
    const texts = [`a=${' '.repeat(8000)}x y`, ' '.repeat(8000), 'a=1 , '.repeat(1500), `a="${' '.repeat(8000)}`]
    for (const text of texts) assert(steps(`OAuth ${text}`) <= 4 * text.length + 20, text.slice(0, 20))
  })

  test('whatever is written in it is read, with spaces wherever they may stand', () => {
    const word = fc.string({ unit: fc.constantFrom(...Array.from('aZ09 +&=%/~",ü€\u{1F600}')), maxLength: 12 })
    const name = word.filter((text) => text !== '' && text.toLowerCase() !== 'realm')
    const space = fc.constantFrom('', ' ', '\t', '   ')
    const pair = fc.record({ name, value: word, quoted: fc.boolean(), spaces: fc.tuple(space, space, space, space) })
    fc.assert(
      fc.property(fc.array(pair), fc.boolean(), (pairs, trailing) => {
        const written = pairs.map(({ name, value, quoted, spaces: [a, b, c, d] }) => {
          const encoded = percentEncode(value)
          return `${a}${percentEncode(name)}${b}=${c}${quoted ? `"${encoded}"` : encoded}${d}`
        })
        const header = `OAuth ${['realm="x y"', ...written].join(',')}${trailing ? ', ' : ''}`
        assert.deepEqual(
          parseOAuthHeader(header),
          pairs.map(({ name, value }) => [name, value]),
        )
      }),
    )
  })
})
