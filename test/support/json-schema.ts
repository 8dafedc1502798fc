/**
 * A validator for the JSON Schema that our OpenAPI document is written in (2020-12, the keywords that occur in it). Not
 * the library that wrote the document: the two are checked against each other. A keyword that it does not know is an
 * error.
 */
type Json = Readonly<Record<string, unknown>>

/** What is wrong, with its path, or null. */
export type Problem = string | null

type Check = (schema: Json, value: unknown, at: string, document: Json) => Problem

/** `document` is where references like '#/components/schemas/User' lead. */
export function validate(schema: unknown, value: unknown, document: Json, at = 'answer'): Problem {
  if (schema === true) return null
  if (schema === false) return `${at} must not be there`
  const rules = schema as Json
  for (const keyword of Object.keys(rules)) {
    if (ignored.has(keyword)) continue
    const check = checks[keyword]
    if (check === undefined) throw new Error(`keyword ${keyword} at ${at} is not known here`)
    const problem = check(rules, value, at, document)
    if (problem !== null) return problem
  }
  return null
}

const ignored = new Set(['description', 'examples', 'default', 'id', 'title', 'format', '$schema', 'deprecated'])

const typeTests: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => typeof value === 'number' && Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right)

const checks: Readonly<Record<string, Check>> = {
  type(schema, value, at) {
    const types = [schema['type']].flat() as string[]
    return types.some((type) => typeTests[type]?.(value)) ? null : `${at} is no ${types.join(' or ')}: ${shown(value)}`
  },
  enum: (schema, value, at) =>
    (schema['enum'] as unknown[]).some((one) => same(one, value))
      ? null
      : `${at} is none of the values: ${shown(value)}`,
  const: (schema, value, at) => (same(schema['const'], value) ? null : `${at} is not ${shown(schema['const'])}`),
  minimum: (schema, value, at) =>
    typeof value === 'number' && value < Number(schema['minimum']) ? `${at} is too small: ${value}` : null,
  maximum: (schema, value, at) =>
    typeof value === 'number' && value > Number(schema['maximum']) ? `${at} is too large: ${value}` : null,
  minLength: (schema, value, at) =>
    typeof value === 'string' && value.length < Number(schema['minLength']) ? `${at} is too short` : null,
  maxLength: (schema, value, at) =>
    typeof value === 'string' && value.length > Number(schema['maxLength']) ? `${at} is too long` : null,
  pattern: (schema, value, at) =>
    typeof value === 'string' && !new RegExp(String(schema['pattern']), 'u').test(value)
      ? `${at} does not match`
      : null,
  required(schema, value, at) {
    if (!isObject(value)) return null
    const missing = (schema['required'] as string[]).find((name) => !(name in value))
    return missing === undefined ? null : `${at}.${missing} is missing`
  },
  properties(schema, value, at, document) {
    if (!isObject(value)) return null
    return first(Object.entries(schema['properties'] as Json), ([name, rules]) =>
      name in value ? validate(rules, value[name], document, `${at}.${name}`) : null,
    )
  },
  additionalProperties(schema, value, at, document) {
    if (!isObject(value)) return null
    const known = (schema['properties'] ?? {}) as Json
    return first(Object.entries(value), ([name, inner]) =>
      name in known ? null : validate(schema['additionalProperties'], inner, document, `${at}.${name}`),
    )
  },
  propertyNames(schema, value, at, document) {
    if (!isObject(value)) return null
    return first(Object.keys(value), (name) => validate(schema['propertyNames'], name, document, `${at}{${name}}`))
  },
  items(schema, value, at, document) {
    if (!Array.isArray(value)) return null
    return first([...(value as unknown[]).entries()], ([index, item]) =>
      validate(schema['items'], item, document, `${at}[${index}]`),
    )
  },
  anyOf(schema, value, at, document) {
    const problems = (schema['anyOf'] as unknown[]).map((one) => validate(one, value, document, at))
    return problems.includes(null) ? null : `${at} fits nothing of: ${problems.join('; ')}`
  },
  not: (schema, value, at, document) =>
    validate(schema['not'], value, document, at) === null ? `${at} fits what it must not` : null,
  $ref(schema, value, at, document) {
    const steps = String(schema['$ref']).replace('#/', '').split('/')
    const target = steps.reduce<unknown>((inner, step) => (isObject(inner) ? inner[step] : undefined), document)
    if (target === undefined) throw new Error(`${String(schema['$ref'])} leads nowhere`)
    return validate(target, value, document, at)
  },
}

function first<T>(items: readonly T[], check: (item: T) => Problem): Problem {
  for (const item of items) {
    const problem = check(item)
    if (problem !== null) return problem
  }
  return null
}

function shown(value: unknown): string {
  return (JSON.stringify(value) as string | undefined)?.slice(0, 200) ?? 'undefined'
}
