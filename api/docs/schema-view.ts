/** JSON Schema as people read it: a table of fields, and an example. */
import type { Json } from '../openapi-schema.ts'
import { propertiesOf } from '../openapi.ts'
import { html, type Html } from './html.ts'
import { inline } from './prose.ts'

/** Resolves '#/components/schemas/Name'. */
export type Schemas = Readonly<Record<string, Json>>

const sharedReference = '#/components/schemas/'
/** Deeper fields are shown by their type alone. */
const deepest = 3

export function resolve(schema: Json, schemas: Schemas): Json {
  const name = referenceName(schema)
  return name === null ? schema : (schemas[name] ?? {})
}

function referenceName(schema: Json): string | null {
  const { $ref } = schema
  return typeof $ref === 'string' && $ref.startsWith(sharedReference) ? $ref.slice(sharedReference.length) : null
}

/** 'array of User', 'integer, 0 to 100', '"asc" | "desc"'. */
export function typeWords(schema: Json, schemas: Schemas): string {
  const name = referenceName(schema)
  if (name !== null) return name
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if ('const' in schema) return JSON.stringify(schema.const)
  const choices = (schema.anyOf ?? schema.oneOf) as readonly Json[] | undefined
  if (choices !== undefined) return [...new Set(choices.map((choice) => typeWords(choice, schemas)))].join(' | ')
  if (schema.type === 'array' && 'not' in ((schema.items ?? {}) as Json)) return 'empty array'
  if (schema.type === 'array') return `array of ${typeWords((schema.items ?? {}) as Json, schemas)}`
  const type = Array.isArray(schema.type)
    ? schema.type.join(' | ')
    : typeof schema.type === 'string'
      ? schema.type
      : 'any'
  return type + rangeWords(schema)
}

function rangeWords({ minimum, maximum, format }: Json): string {
  const low = typeof minimum === 'number' ? minimum : null
  const high = typeof maximum === 'number' ? maximum : null
  if (low !== null && high !== null) return `, ${low} to ${high}`
  if (low !== null && low !== 0) return `, at least ${low}`
  return typeof format === 'string' ? ` (${format})` : ''
}

/** Rows of name, type and meaning; fields of objects indented below them. */
export function fieldTable(schema: Json, schemas: Schemas): Html | null {
  const rows = fieldRows(schema, schemas, '', 0)
  if (rows.length === 0) return null
  return html`<table class="fields">
    <tbody>
      ${rows}
    </tbody>
  </table>`
}

function fieldRows(schema: Json, schemas: Schemas, prefix: string, depth: number): Html[] {
  const { properties, required } = propertiesOf(objectOf(schema, schemas))
  return Object.entries(properties).flatMap(([name, field]) => [
    fieldRow(prefix + name, field, schemas, required.includes(name)),
    ...(depth + 1 < deepest
      ? fieldRows(field, schemas, `${prefix}${name}${isArray(field, schemas) ? '[]' : ''}.`, depth + 1)
      : []),
  ])
}

export function fieldRow(name: string, schema: Json, schemas: Schemas, required: boolean): Html {
  const fallback =
    schema.default === undefined ? null : html`<span class="default">default ${JSON.stringify(schema.default)}</span>`
  const description = typeof schema.description === 'string' ? html`<p>${inline(schema.description)}</p>` : null
  return html`<tr>
    <th><code>${breakable(name)}</code>${required && html`<span class="required" title="required">*</span>`}</th>
    <td><span class="type">${typeWords(schema, schemas)}</span>${fallback}${description}</td>
  </tr>`
}

/** A long name breaks behind a dot. */
function breakable(name: string): Html[] {
  return name.split(/(?<=\.)/).map((piece, index) => (index === 0 ? html`${piece}` : html`<wbr />${piece}`))
}

function isArray(schema: Json, schemas: Schemas): boolean {
  return resolve(schema, schemas).type === 'array'
}

/** The object itself, or that of an array's entries. */
function objectOf(schema: Json, schemas: Schemas): Json {
  const resolved = resolve(schema, schemas)
  return resolved.type === 'array' ? resolve((resolved.items ?? {}) as Json, schemas) : resolved
}
