/** An example of a value, from its JSON Schema. */
import type { Json } from '../openapi-schema.ts'
import { propertiesOf } from '../openapi.ts'
import { resolve, type Schemas } from './schema-view.ts'

/** Recursion ends here. */
const deepest = 6

/** All that the schema gives for itself, or one. */
export function examplesOf(schema: Json, schemas: Schemas): readonly unknown[] {
  const { examples } = resolve(schema, schemas)
  return Array.isArray(examples) && examples.length > 0 ? examples : [exampleOf(schema, schemas)]
}

/** The schema's own example, or one made of its fields. */
export function exampleOf(schema: Json, schemas: Schemas, depth = 0): unknown {
  const given = resolve(schema, schemas)
  if (Array.isArray(given.examples) && given.examples.length > 0) return given.examples[0]
  if (given.default !== undefined) return given.default
  if ('const' in given) return given.const
  if (Array.isArray(given.enum)) return given.enum[0]
  const choices = (given.anyOf ?? given.oneOf) as readonly Json[] | undefined
  if (choices?.[0] !== undefined) return exampleOf(choices[0], schemas, depth)
  if (given.type === 'array' && depth < deepest) return [exampleOf((given.items ?? {}) as Json, schemas, depth + 1)]
  if (given.type === 'object') return depth < deepest ? objectExample(given, schemas, depth) : {}
  return plainExample(given)
}

function objectExample(schema: Json, schemas: Schemas, depth: number): Record<string, unknown> {
  const fields = Object.entries(propertiesOf(schema).properties)
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field, schemas, depth + 1)]))
}

function plainExample(schema: Json): unknown {
  const type = jsType(schema)
  if (type === 'number') return 1
  if (type === 'boolean') return true
  if (type !== 'string') return null
  if (schema.format === 'uri') return 'https://app.example.com/mail'
  return schema.format === 'email' ? 'anna@example.com' : 'text'
}

/** As typeof says it. */
function jsType({ type }: Json): unknown {
  const first: unknown = Array.isArray(type) ? type[0] : type
  return first === 'integer' ? 'number' : first
}
