/** An example of a value, from its JSON Schema. */
import type { Json } from '../openapi-schema.ts'
import { propertiesOf } from '../openapi.ts'
import { resolve, type Schemas } from './schema-view.ts'

/** What a field of this name usually holds. */
const usual: Readonly<Record<string, string | number>> = {
  id: '5f3c8a2b9d4e1f6a7b8c9d0e',
  server: 'imap.example.com',
  username: 'anna@example.com',
  password: 'secret',
  port: 993,
  use_ssl: 1,
  label: 'anna::gmail',
  email: 'anna@example.com',
  first_name: 'Anna',
  last_name: 'Berg',
  name: 'Anna Berg',
  subject: 'Hello',
  created: 1_700_000_000,
  resource_url: 'https://mail.example.com/…',
}

/** Recursion ends here. */
const deepest = 6

/** The schema's own example, what a field of this name usually holds, or one made of its fields. */
export function exampleOf(schema: Json, schemas: Schemas, name = '', depth = 0): unknown {
  const given = resolve(schema, schemas)
  if (Array.isArray(given.examples) && given.examples.length > 0) return given.examples[0]
  if (given.default !== undefined) return given.default
  if ('const' in given) return given.const
  if (typeof usual[name] === jsType(given)) return usual[name]
  if (Array.isArray(given.enum)) return given.enum[0]
  const choices = (given.anyOf ?? given.oneOf) as readonly Json[] | undefined
  if (choices?.[0] !== undefined) return exampleOf(choices[0], schemas, name, depth)
  if (given.type === 'array' && depth < deepest) return [exampleOf((given.items ?? {}) as Json, schemas, '', depth + 1)]
  if (given.type === 'object') return depth < deepest ? objectExample(given, schemas, depth) : {}
  return plainExample(given)
}

function objectExample(schema: Json, schemas: Schemas, depth: number): Record<string, unknown> {
  const fields = Object.entries(propertiesOf(schema).properties)
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field, schemas, name, depth + 1)]))
}

function plainExample(schema: Json): unknown {
  const type = jsType(schema)
  if (type === 'number') return 1
  if (type === 'boolean') return true
  if (type !== 'string') return null
  if (schema.format === 'uri') return 'https://example.com/callback'
  return schema.format === 'email' ? 'anna@example.com' : 'text'
}

/** As typeof says it. */
function jsType({ type }: Json): unknown {
  const first: unknown = Array.isArray(type) ? type[0] : type
  return first === 'integer' ? 'number' : first
}
