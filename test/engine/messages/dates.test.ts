import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseDate } from '../../../engine/messages/dates.ts'

const noon = Date.UTC(2024, 2, 5, 12, 0, 0)

const readable: readonly (readonly [text: string, at: number])[] = [
  ['Tue, 05 Mar 2024 12:00:00 +0000', noon],
  ['5 Mar 2024 12:00 GMT', noon],
  ['Tue, 5 Mar 2024 14:00:00 +0200 (EET)', noon],
  ['Tue, 5 Mar 2024 07:00:00 EST', noon],
  ['Tue, 5 Mar 2024 04:00:00 -0800', noon],
  ['Tue,5 Mar 24 12:00:00 Z', noon],
  ['tue, 05 march 2024 12:00:00 utc', noon],
  ['Tue (day), 5 (d) Mar (m (x)) 2024 12:00:00 (noon) +0000', noon],
  ['Tue, 05 Mar 2024 12:00:00 GMT+0200', noon - 7_200_000],
  ['Tue, 05 Mar 2024 17:30:00 +05:30', noon],
  ['Tue, 05-Mar-2024 12:00:00 +0000', noon],
  ['Tue, 05 Mar 2024 12.00.00 +0000', noon],
  ['Tue, 05 Mar 2024 12:00:00.123 +0000', noon],
  ['Tue, 05 Mar 2024 12:00:00', noon],
  ['Tue, 05 Mar 2024 12:00:00 PM +0000', noon],
  ['Tue, 05 Mar 2024 12:00:00 -0000', noon],
  ['Tue, 05 Mar 2024 12:00:00 +9999', noon],
  ['  Tue,  05   Mar  2024   12:00:00   +0000  ', noon],
  ['Tue Mar  5 12:00:00 2024', noon],
  ['Tue Mar 5 12:00:00 GMT 2024', noon],
  ['2024-03-05T12:00:00Z', noon],
  ['2024-03-05 14:00:00 +02:00', noon],
  ['mié, 05 Mar 2024 12:00:00 +0000', noon],
  ['Sat, 31 Dec 2016 23:59:60 +0000', Date.UTC(2016, 11, 31, 23, 59, 59)],
  ['Thu, 29 Feb 2024 00:00:00 +0000', Date.UTC(2024, 1, 29)],
  ['1 Jan 99 00:00:00 +0000', Date.UTC(1999, 0, 1)],
  ['1 Jan 102 00:00:00 +0000', Date.UTC(2002, 0, 1)],
]

for (const [text, at] of readable) {
  test(`parseDate: ${text}`, () => {
    assert.equal(parseDate(text), at)
  })
}

const unreadable = [
  '',
  'yesterday',
  'Tue, 05 Mar 2024',
  '32 Jan 2024 00:00:00 +0000',
  '30 Feb 2024 00:00:00 +0000',
  '0 Jan 2024 00:00:00 +0000',
  '5 Foo 2024 12:00:00 +0000',
  '5 Mar 2024 25:00:00 +0000',
  '5 Mar 2024 12:61:00 +0000',
  '31 Dec 1899 23:59:59 +0000',
  '1 Jan 0001 00:00:00 +0000',
  '2024-13-05T12:00:00Z',
  '1709640000',
]

for (const text of unreadable) {
  test(`parseDate: "${text}" is not readable`, () => {
    assert.equal(parseDate(text), null)
  })
}

test('parseDate reads every date that JavaScript writes', () => {
  const date = fc.date({ min: new Date('1900-01-01T00:00:00Z'), max: new Date('2099-12-31'), noInvalidDate: true })
  fc.assert(
    fc.property(date, (at) => {
      const seconds = Math.floor(at.getTime() / 1000) * 1000
      assert.equal(parseDate(at.toUTCString()), seconds)
      assert.equal(parseDate(at.toISOString().replace(/\.\d+/, '')), seconds)
    }),
  )
})

test('parseDate gives a time or null for anything', () => {
  const noise = fc.array(
    fc.constantFrom('1', '05', '2024', 'Mar', 'Tue', ',', ':', ' ', '+', '-', '(', ')', '12:00', 'T', 'Z', 'é'),
  )
  fc.assert(
    fc.property(noise, (pieces) => {
      const at = parseDate(pieces.join(''))
      assert.ok(at === null || (Number.isSafeInteger(at) && at >= Date.UTC(1900, 0, 1)))
    }),
    { numRuns: 2000 },
  )
})
