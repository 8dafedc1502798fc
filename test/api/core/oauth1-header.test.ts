/** The OAuth header, which anybody may send: read right, and never with more work than its length asks for. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { parseOAuthHeader } from '../../../api/oauth1.ts'
import { percentEncode } from '../../../api/wire.ts'

suite('the OAuth header', () => {
  test('no text takes more time than its length asks for', () => {
    const [many, list] = [' '.repeat(100_000), 'a=1 , '.repeat(20_000)]
    const word = 'a'.repeat(100_000)
    const texts = [`a=${many}x y`, many, list, `a="${many}`, `a${many}b`, `a=${word} c`, word, `a=${many}"`]
    for (const text of texts) {
      const from = performance.now()
      parseOAuthHeader(`OAuth ${text}`)
      assert(performance.now() - from < 1000, text.slice(0, 20))
    }
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
