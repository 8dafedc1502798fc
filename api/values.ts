/**
 * Schemas of parameters: flags, comma lists, times in seconds. Each accepts every usual spelling (1, "1", true) and
 * returns one JavaScript value; the OpenAPI document shows one plain spelling.
 */
import { z } from 'zod'
import { own } from '../engine/index.ts'
import { answer } from './examples.ts'

/** JSON Schema of a parameter. */
type WireSchema = Readonly<Record<string, unknown>>

/** The JSON Schema that openapi.ts prints for a schema instead of zod's own output. */
export const wireSchemas = z.registry<{ readonly wire: WireSchema }>()

/** A clone of the schema: other parameters that share it keep their own documentation. */
export function documented<T extends z.ZodType>(schema: T, wire: WireSchema): T {
  const own = schema.clone()
  wireSchemas.add(own, { wire })
  return own
}

/** An optional parameter, or an optional field of an answer. */
export function optional<T extends z.ZodType>(schema: T, description: string, ...examples: readonly unknown[]) {
  return schema.optional().meta({ description, ...(examples.length === 0 ? {} : { examples: [...examples] }) })
}

type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** A copy without the undefined members. */
export function given<T extends object>(members: T): Given<T> {
  const there: Partial<T> = {}
  for (const name in members) if (members[name] !== undefined) there[name] = members[name]
  return there as unknown as Given<T>
}

const longestName = 1000
/** Refresh tokens of some providers are a few thousand characters long. */
const longestLine = 10_000

/** Stores keep such a text unchanged: no half of a surrogate pair, no NUL. */
function isWhole(value: string): boolean {
  return value.isWellFormed() && !value.includes('\0')
}

const whole = { error: 'must be well-formed Unicode without NUL' }

/** Numbers and booleans of a JSON body become text, null the empty text. */
const anyText = z
  .union([z.string(), z.number(), z.boolean(), z.null()], { error: 'expected text' })
  .transform((value) => String(value ?? ''))
  .refine(isWhole, whole)

/** Text that may be empty: on an edit, an empty text removes the value. */
export const text = documented(anyText, { type: 'string' })

const filled = z.string().min(1, 'must not be empty')

export const filledText = documented(anyText.pipe(filled), { type: 'string', minLength: 1 })

/** Text that a mail server gets in one line: without control characters, since CR, LF or NUL would end the line. */
export const lineText = documented(
  anyText.pipe(
    filled
      .max(longestLine, `must not be longer than ${longestLine} characters`)
      .refine((value) => !/\p{Cc}/u.test(value), { error: 'must not contain control characters' }),
  ),
  { type: 'string', minLength: 1, maxLength: longestLine },
)

/** A person's name; may be empty. */
export const nameText = documented(
  anyText.pipe(z.string().max(longestName, `must not be longer than ${longestName} characters`)),
  { type: 'string', maxLength: longestName },
)

/** A schema of text, numbers and booleans: `read` returns undefined for a wrong value. */
function spelled<T>(problem: string, read: (value: string) => T | undefined) {
  return z.union([z.boolean(), z.number(), z.string()], { error: problem }).transform((value, context) => {
    const found = read(String(value))
    if (found !== undefined) return found
    context.addIssue({ code: 'custom', message: problem })
    return z.NEVER
  })
}

const flagWords: Readonly<Record<string, boolean>> = { '1': true, true: true, '0': false, false: false, '': false }

/** 1/0, "1"/"0", true/false, "true"/"false" in any case; PHP sends '' for false. */
export const flag = documented(
  spelled('expected 1 or 0', (value) => own(flagWords, value.toLowerCase())),
  { type: 'integer', enum: [0, 1] },
)

/** 'a, b or c' */
const anyOf = new Intl.ListFormat('en-GB', { type: 'disjunction' })

/** One of a few words, in any case; returns the word as listed. */
export function choice<const T extends string>(words: readonly T[], problem = `expected ${anyOf.format(words)}`) {
  const schema = spelled(problem, (value) => {
    const wanted = value.trim().toLowerCase()
    return words.find((one) => one.toLowerCase() === wanted)
  })
  return documented(schema, { type: 'string', enum: words })
}

/** `include_headers`, `include_header`: false, '1' (parsed) or 'raw'. */
export const headerMode = documented(
  spelled('expected 0, 1 or raw', (value) => {
    const word = value.toLowerCase()
    const isOn = own(flagWords, word)
    return word === 'raw' ? word : isOn === true ? '1' : isOn
  }),
  { type: 'string', enum: ['0', '1', 'raw'] },
)

export function integer(minimum: number, maximum?: number) {
  const range = maximum === undefined ? `, at least ${minimum}` : ` from ${minimum} to ${maximum}`
  const schema = spelled(`expected a whole number${range}`, (value) => {
    const number = /^[+-]?\d{1,16}$/.test(value.trim()) ? Number(value) : Number.NaN
    return Number.isSafeInteger(number) && number >= minimum && number <= (maximum ?? number) ? number : undefined
  })
  return documented(schema, { type: 'integer', ...given({ minimum, maximum }) })
}

/** For a write: null or '' = none. */
export function integerOrNone(minimum: number, maximum: number, description: string) {
  const none = z.literal('').transform(() => null)
  const problem = `expected a whole number from ${minimum} to ${maximum}, or nothing`
  const wire = { type: 'integer', minimum, maximum, description }
  return documented(z.union([none, z.null(), integer(minimum, maximum)], problem), wire)
}

export const port = integer(1, 65_535)

/** Seconds since 1970; returns milliseconds, the unit of records. */
export const timestamp = documented(
  integer(0, 32_503_680_000).transform((seconds) => seconds * 1000),
  { type: 'integer', minimum: 0, maximum: 32_503_680_000, description: 'Unix timestamp in seconds' },
)

/** The last millisecond of a time in whole seconds. */
export const endOfSecond = (at: number | undefined): number | undefined => (at === undefined ? undefined : at + 999)

const americanDate = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/

/** 2.0: a timestamp or mm/dd/yyyy (midnight UTC); returns milliseconds. */
export const timestampOrDate = documented(
  spelled('expected a Unix timestamp or mm/dd/yyyy', (value) => {
    const [, month, day, year] = americanDate.exec(value.trim()) ?? []
    if (month === undefined) return timestamp.safeParse(value).data
    const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)))
    const isReal = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
    return isReal ? date.getTime() : undefined
  }),
  { type: 'string', description: 'Unix timestamp in seconds, or mm/dd/yyyy' },
)

/** Comma-separated, or an array in a JSON body; trimmed, without empty entries. */
export const commaList = documented(
  z
    .union([z.string(), z.array(z.string())], { error: 'expected a comma-separated list' })
    .transform((value) =>
      (typeof value === 'string' ? value.split(',') : value)
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ''),
    )
    .refine((entries) => entries.every(isWhole), whole),
  { type: 'string', description: 'comma-separated list' },
)

/** Number of entries of a page. */
export function limitOf(fallback: number, maximum = 100) {
  const wire = { type: 'integer', minimum: 1, maximum, default: fallback, description: 'most entries of one answer' }
  return documented(integer(1, maximum).default(fallback), wire)
}

export const limit = limitOf(25)

/** Of lists that the interface does not page: short ones come whole. */
export const limitOfWhole = limitOf(1000, 1000)

/** `description` names the skipped entries and their order. */
export function offsetOf(description: string) {
  return documented(integer(0).default(0), { type: 'integer', minimum: 0, default: 0, description })
}

export const offset = offsetOf('entries to pass over, from the first of the list')

const urlProblem = 'expected an http:// or https:// URL'

/** An absolute http or https URL, unchanged. The engine decides whether it may be called. */
export const url = documented(z.string(urlProblem).refine(isHttpUrl, urlProblem), { type: 'string', format: 'uri' })

/** The same, where an empty text or null removes the URL. */
export const urlOrEmpty = documented(
  anyText.refine((value) => value === '' || isHttpUrl(value), `${urlProblem}, or nothing`),
  { type: 'string' },
)

function isHttpUrl(value: string): boolean {
  return isWhole(value) && value.length <= 2048 && /^https?:\/\/[^/?#\s]/i.test(value) && URL.canParse(value)
}

const emailProblem = 'expected an email address'

/** One email address. Only its outline is checked: mail servers know the rest. */
export const email = documented(
  z
    .string(emailProblem)
    .trim()
    .max(320)
    .regex(/^[^\s@]+@[^\s@]+$/, emailProblem)
    .refine(isWhole, whole),
  { type: 'string', format: 'email' },
)

export const sortOrder = choice(['asc', 'desc'])

/** Names of a person, on users and connect tokens. */
export const personNames = {
  first_name: optional(nameText, 'first name of the user; empty removes it', 'Anna'),
  last_name: optional(nameText, 'last name of the user; empty removes it', 'Berg'),
}

export const accountStatus = choice(['OK', 'DISABLED'])

/** `status` and `status_ok` (1 = OK, 0 = DISABLED) of the user and account lists: spread into a query schema. */
export const statusFilter = {
  status: optional(accountStatus, 'only with an email account of this status'),
  status_ok: optional(flag, 'the same as a flag: 1 = OK, 0 = DISABLED; `status` goes before it'),
}

/** The status that both parameters ask for; undefined = every status. */
export function wantedStatus(query: z.output<z.ZodObject<typeof statusFilter>>): 'OK' | 'DISABLED' | undefined {
  if (query.status !== undefined || query.status_ok === undefined) return query.status
  return query.status_ok ? 'OK' : 'DISABLED'
}

export const success = z.object({ success: z.boolean() })

/** `{success: true}` with the URL of the created or changed resource. */
export const successAt = (example: string) =>
  answer({ success: [z.boolean(), true], resource_url: [z.string(), example] })

/** An empty map is `[]` in addresses, person_info and list_headers. */
export const orEmptyList = <T extends z.ZodType>(map: T) => z.union([map, z.array(z.never())])
