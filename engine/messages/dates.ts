/**
 * Date headers: RFC 5322 §3.3, its obsolete forms (§4.3), and the usual mistakes. Own code: mailparser uses `new Date`,
 * which knows neither most zone names nor `12.00.00`, and turns 30 February into March (dates.test.ts); for an
 * unreadable date it gives the present.
 */

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')

/** Military letters and other names count as UTC (RFC 5322 §4.3). */
const zones = new Map(
  (
    'est-0500 edt-0400 cst-0600 cdt-0500 mst-0700 mdt-0600 pst-0800 pdt-0700 bst+0100 cet+0100 cest+0200 met+0100 ' +
    'mest+0200 eet+0200 eest+0300 msk+0300 jst+0900 kst+0900 ist+0530'
  )
    .split(' ')
    .map((zone) => [zone.slice(0, -5), zone.slice(-5)] as const),
)

const time = String.raw`(?<hour>\d{1,2})[:.](?<minute>\d{1,2})(?:[:.](?<second>\d{1,2}))?(?:[.,]\d{1,9})?(?: ?(?<half>[ap]m))?`
const shapes = [
  new RegExp(
    String.raw`^\D{0,20}?(?<day>\d{1,2})[ .-]{1,3}(?<month>[a-z]{3,9})[ .,-]{1,3}(?<year>\d{2,4})[ ,]{1,3}${time}(?<zone>.*)$`,
  ),
  // asctime: `Mon Nov 21 07:08:00 2022`, with a zone before or after the year.
  new RegExp(
    String.raw`^(?:[a-z]+[.,]* )?(?<month>[a-z]{3,9}) (?<day>\d{1,2}),? ${time} ?(?<zone>[a-z+:\d-]{0,40}?) ?(?<year>\d{4})(?<rest>.*)$`,
  ),
  new RegExp(String.raw`^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[t ]${time}(?<zone> ?(?:z|[+-]\d\d:?\d\d)?)$`),
]

function fullYear(text: string): number {
  const year = Number(text)
  if (text.length >= 4) return year
  return text.length === 2 && year < 50 ? 2000 + year : 1900 + year
}

const numericZone = /([+-])(\d{1,2}):?(\d{2})/

function offsetMinutes(zone: string): number {
  const name = /[a-z]+/.exec(zone)?.[0] ?? ''
  const [, sign, hours, minutes] = numericZone.exec(zone) ?? numericZone.exec(zones.get(name) ?? '+0000') ?? []
  const offset = Number(hours) * 60 + Number(minutes)
  // No place has more than +14:00; -0000 means "UTC, place unknown".
  return offset > 14 * 60 ? 0 : offset * (sign === '-' ? -1 : 1)
}

function hoursOf(text: string, half: string | undefined): number {
  return half === undefined ? Number(text) : (Number(text) % 12) + (half === 'pm' ? 12 : 0)
}

function assemble(parts: Readonly<Record<string, string | undefined>>): number | null {
  const { year = '', month = '', day = '', hour = '', minute = '', second = '0', half, zone = '', rest = '' } = parts
  const monthIndex = /^\d/.test(month) ? Number(month) - 1 : months.indexOf(month.slice(0, 3))
  const hours = hoursOf(hour, half)
  if (monthIndex < 0 || hours > 23 || Number(minute) > 59 || Number(second) > 60 || fullYear(year) < 100) return null
  // 60 is a leap second, which Date does not have.
  const seconds = Math.min(Number(second), 59)
  const local = Date.UTC(fullYear(year), monthIndex, Number(day), hours, Number(minute), seconds)
  if (Number(day) < 1 || new Date(local).getUTCMonth() !== monthIndex) return null
  return local - offsetMinutes(zone + rest) * 60_000
}

/** Removes comments in parentheses, innermost first, up to four levels. Usual mail has one. */
export function withoutComments(text: string): string {
  let result = text
  for (let level = 0; level < 4 && result.includes('('); level++) result = result.replace(/\([^()]*\)/g, ' ')
  return result
}

/** RFC 5322 §3.3: no year is before 1900. */
const earliest = Date.UTC(1900, 0, 1)

/** ms since 1970, negative before; null when the value is absent, unreadable or before 1900. Never throws. */
export function parseDate(value: string): number | null {
  const text = withoutComments(value.slice(0, 300)).toLowerCase().replace(/\s+/g, ' ').trim().slice(0, 120)
  for (const shape of shapes) {
    const parts = shape.exec(text)?.groups
    const at = parts === undefined ? null : assemble(parts)
    if (parts !== undefined) return at !== null && at >= earliest ? at : null
  }
  return null
}
