/**
 * Parameters as clients spell them: 1/0/"1"/true for flags, comma lists, times in seconds. Each schema takes every
 * spelling and gives one JavaScript value. `documented` says in the OpenAPI document what a client should send.
 */
import { z } from 'zod'
import { own } from '../engine/index.ts'
import { answer } from './examples.ts'

/** JSON Schema of a parameter. */
export type WireSchema = Readonly<Record<string, unknown>>

/** What openapi.ts shows for a schema instead of zod's own output: the plain spelling, not all that are tolerated. */
export const wireSchemas = z.registry<{ readonly wire: WireSchema }>()

/** A schema of its own: what is said of one parameter must not be said of every other that shares its schema. */
export function documented<T extends z.ZodType>(schema: T, wire: WireSchema): T {
  const own = schema.clone()
  wireSchemas.add(own, { wire })
  return own
}

/** A parameter that may be absent, or such a field of an answer. */
export function optional<T extends z.ZodType>(schema: T, description: string, ...examples: readonly unknown[]) {
  return schema.optional().meta({ description, ...(examples.length === 0 ? {} : { examples: [...examples] }) })
}

type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** The members that are there: those that are undefined are left out. */
export function given<T extends object>(members: T): Given<T> {
  const there: Partial<T> = {}
  for (const name in members) if (members[name] !== undefined) there[name] = members[name]
  return there as unknown as Given<T>
}

const longestName = 1000
/** Refresh tokens of some providers are a few thousand characters long. */
const longestLine = 10_000

/** Numbers and booleans of a JSON body are taken as text; null is the empty text. */
function toText(value: string | number | boolean | null): string {
  return value === null ? '' : String(value)
}

/** Half of a surrogate pair is no character, and NUL is none of a text: what is stored comes back as it was sent. */
function isWhole(value: string): boolean {
  return value.isWellFormed() && !value.includes('\0')
}

const whole = { error: 'must be well-formed Unicode without NUL' }

const anyText = z
  .union([z.string(), z.number(), z.boolean(), z.null()], { error: 'expected text' })
  .transform(toText)
  .refine(isWhole, whole)

/** Text that may be empty: an empty one removes the value on an edit. */
export const text = documented(anyText, { type: 'string' })

export const filledText = documented(
  anyText.pipe(z.string().min(1, 'must not be empty')), // zod's own words name no remedy
  { type: 'string', minLength: 1 },
)

/** What goes to a mail server in one line: CR, LF or NUL would end it, and no setting has other control characters. */
export const lineText = documented(
  anyText.pipe(
    z
      .string()
      .min(1, 'must not be empty')
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

/** A schema of text, numbers and booleans: `read` answers undefined for what is no such value. */
function spelled<T>(problem: string, read: (value: string) => T | undefined) {
  return z.union([z.boolean(), z.number(), z.string()], { error: problem }).transform((value, context) => {
    const found = read(String(value))
    if (found !== undefined) return found
    context.addIssue({ code: 'custom', message: problem })
    return z.NEVER
  })
}

const flagWords: Readonly<Record<string, boolean>> = { '1': true, true: true, '0': false, false: false, '': false }

/** 1/0, "1"/"0", true/false, "true"/"false" in any case; '' is what PHP makes of false. */
export const flag = documented(
  spelled('expected 1 or 0', (value) => own(flagWords, value.toLowerCase())),
  { type: 'integer', enum: [0, 1] },
)

/** One of a few words, in any case; gives it as it stands here. */
export function choice<const T extends string>(words: readonly T[], problem = `expected ${inWords(words)}`) {
  const schema = spelled(problem, (value) => {
    const wanted = value.trim().toLowerCase()
    return words.find((one) => one.toLowerCase() === wanted)
  })
  return documented(schema, { type: 'string', enum: words })
}

/** 'a, b or c' */
function inWords(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
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

export function integer(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) {
  const problem =
    maximum === Number.MAX_SAFE_INTEGER
      ? `expected a whole number, at least ${minimum}`
      : `expected a whole number from ${minimum} to ${maximum}`
  const schema = spelled(problem, (value) => {
    const number = /^[+-]?\d{1,16}$/.test(value.trim()) ? Number(value) : Number.NaN
    return Number.isSafeInteger(number) && number >= minimum && number <= maximum ? number : undefined
  })
  return documented(schema, { type: 'integer', minimum, ...(maximum < Number.MAX_SAFE_INTEGER ? { maximum } : {}) })
}

/** In a write: null or '' = none. */
export function integerOrNone(minimum: number, maximum: number, description: string) {
  const none = z.literal('').transform(() => null)
  const problem = `expected a whole number from ${minimum} to ${maximum}, or nothing`
  return documented(z.union([none, z.null(), integer(minimum, maximum)], problem), {
    type: 'integer',
    ...{ minimum, maximum, description },
  })
}

export const port = integer(1, 65_535)

/** Seconds since 1970 as the API has them; gives milliseconds, as records have them. */
export const timestamp = documented(
  integer(0, 32_503_680_000).transform((seconds) => seconds * 1000),
  { type: 'integer', minimum: 0, maximum: 32_503_680_000, description: 'Unix timestamp in seconds' },
)

/** The last millisecond of a time in whole seconds. */
export const endOfSecond = (at: number | undefined): number | undefined => (at === undefined ? undefined : at + 999)

const americanDate = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/

/** 2.0: a timestamp or mm/dd/yyyy (midnight UTC); gives milliseconds. */
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

/** Number of entries of a page, where the interface's default is another one than 25. */
export function limitOf(fallback: number, maximum = 100) {
  const description = 'most entries of one answer'
  const wire = { type: 'integer', minimum: 1, maximum, default: fallback, description }
  return documented(integer(1, maximum).default(fallback), wire)
}

export const limit = limitOf(25)

/** `description` says what is passed over, and in which order. */
export function offsetOf(description: string) {
  return documented(integer(0).default(0), { type: 'integer', minimum: 0, default: 0, description })
}

export const offset = offsetOf('entries to pass over, from the first of the list')

/** An absolute http or https URL, as it was written. Whether it may be called is for the engine to say. */
export const url = documented(
  z
    .string({ error: 'expected an http:// or https:// URL' })
    .refine(isHttpUrl, { error: 'expected an http:// or https:// URL' }),
  { type: 'string', format: 'uri' },
)

/** The same, where an empty text or null removes the URL. */
export const urlOrEmpty = documented(
  anyText.refine((value) => value === '' || isHttpUrl(value), {
    error: 'expected an http:// or https:// URL, or nothing',
  }),
  { type: 'string' },
)

function isHttpUrl(value: string): boolean {
  return isWhole(value) && value.length <= 2048 && /^https?:\/\/[^/?#\s]/i.test(value) && URL.canParse(value)
}

/** One address; only its outline is checked: mail servers decide. */
export const email = documented(
  z
    .string({ error: 'expected an email address' })
    .trim()
    .max(320)
    .regex(/^[^\s@]+@[^\s@]+$/, 'expected an email address')
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

/** What the two say together; undefined = every status. */
export function wantedStatus(query: {
  readonly status?: 'OK' | 'DISABLED' | undefined
  readonly status_ok?: boolean | undefined
}): 'OK' | 'DISABLED' | undefined {
  if (query.status !== undefined || query.status_ok === undefined) return query.status
  return query.status_ok ? 'OK' : 'DISABLED'
}

export const success = z.object({ success: z.boolean() })

/** `{success: true}` with the address of what was made or changed; `example` is one. */
export const successAt = (example: string) =>
  answer({ success: [z.boolean(), true], resource_url: [z.string(), example] })

/** An empty map is `[]` in addresses, person_info and list_headers. */
export const orEmptyList = <T extends z.ZodType>(map: T) => z.union([map, z.array(z.never())])
