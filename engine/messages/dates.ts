/** Date headers as they are written: RFC 5322 §3.3, its obsolete forms (§4.3), and the usual mistakes. */
import { own } from '../own.ts'

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** Minutes east of UTC. Military letters and unknown names count as UTC (RFC 5322 §4.3). */
const zones: Readonly<Record<string, number>> = {
  est: -300,
  edt: -240,
  cst: -360,
  cdt: -300,
  mst: -420,
  mdt: -360,
  pst: -480,
  pdt: -420,
  bst: 60,
  cet: 60,
  cest: 120,
  met: 60,
  mest: 120,
  eet: 120,
  eest: 180,
  msk: 180,
  jst: 540,
  kst: 540,
  ist: 330,
}

const time = String.raw`(\d{1,2})[:.](\d{1,2})(?:[:.](\d{1,2}))?(?:[.,]\d{1,9})?(?: ?([ap]m))?`
const dayFirst = new RegExp(
  String.raw`^\D{0,20}?(\d{1,2})[ .-]{1,3}([a-z]{3,9})[ .,-]{1,3}(\d{2,4})[ ,]{1,3}${time}(.*)$`,
)
/** asctime: `Mon Nov 21 07:08:00 2022`, with a zone before or after the year. */
const monthFirst = new RegExp(
  String.raw`^(?:[a-z]+[.,]* )?([a-z]{3,9}) (\d{1,2}),? ${time} ?([a-z+:\d-]{0,40}?) ?(\d{4})(.*)$`,
)
const iso = /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:z|[+-]\d\d:?\d\d))?$/

interface Parts {
  readonly year: string
  readonly month: string
  readonly day: string
  readonly hour: string
  readonly minute: string
  readonly second: string
  readonly half: string
  readonly zone: string
}

function fullYear(text: string): number {
  const year = Number(text)
  if (text.length >= 4) return year
  return text.length === 2 && year < 50 ? 2000 + year : 1900 + year
}

function offsetMinutes(zone: string): number {
  const numeric = /([+-])(\d{1,2}):?(\d{2})/.exec(zone)
  if (numeric) {
    const minutes = Number(numeric[2]) * 60 + Number(numeric[3])
    // Beyond +14:00 there is no land; -0000 means "UTC, place unknown".
    return minutes > 14 * 60 ? 0 : minutes * (numeric[1] === '-' ? -1 : 1)
  }
  const name = /[a-z]+/.exec(zone)?.[0] ?? ''
  return own(zones, name) ?? 0
}

function hours(text: string, half: string): number {
  const hour = Number(text)
  if (half === '') return hour
  return (hour % 12) + (half === 'pm' ? 12 : 0)
}

function assemble(parts: Parts): number | null {
  const month = months.indexOf(parts.month.slice(0, 3))
  const year = fullYear(parts.year)
  const [day, hour, minute] = [Number(parts.day), hours(parts.hour, parts.half), Number(parts.minute)]
  // 60 is a leap second, which this clock does not have.
  const second = Math.min(Number(parts.second), 59)
  if (month < 0 || hour > 23 || minute > 59 || Number(parts.second) > 60) return null
  const local = year < 100 ? Number.NaN : Date.UTC(year, month, day, hour, minute, second)
  if (day < 1 || new Date(local).getUTCMonth() !== month) return null
  return local - offsetMinutes(parts.zone) * 60_000
}

function withoutComments(text: string): string {
  // Innermost first, a few levels: nobody nests deeper for an honest reason.
  let result = text
  for (let level = 0; level < 4 && result.includes('('); level++) result = result.replace(/\([^()]*\)/g, ' ')
  return result
}

function read(text: string): number | null {
  const first = dayFirst.exec(text)
  if (first) {
    const [, day = '', month = '', year = '', hour = '', minute = '', second = '0', half = '', zone = ''] = first
    return assemble({ year, month, day, hour, minute, second, half, zone })
  }
  const second = monthFirst.exec(text)
  if (second) {
    const [, month = '', day = '', hour = '', minute = '', sec = '0', half = '', before = '', year = '', after = ''] =
      second
    return assemble({ year, month, day, hour, minute, second: sec, half, zone: before + after })
  }
  if (!iso.test(text)) return null
  const zoned = /z$|[+-]\d\d:?\d\d$/.test(text.slice(10)) ? text : `${text}z`
  const at = Date.parse(zoned.replace(' ', 'T').replace(' ', '').toUpperCase())
  return Number.isNaN(at) ? null : at
}

/** RFC 5322 §3.3: no year is before 1900. */
const earliest = Date.UTC(1900, 0, 1)

/** ms since 1970, negative before; null when the value is absent, unreadable or lies before 1900. Never throws. */
export function parseDate(value: string): number | null {
  const text = withoutComments(value.slice(0, 300)).toLowerCase().replace(/\s+/g, ' ').trim().slice(0, 120)
  const at = read(text)
  return at !== null && at >= earliest ? at : null
}
