/** Shows a JSON Schema as a table of fields and an example, and an operation as a curl line. */
import { html, type Html, inline } from '../html.ts'
import { type Operation, propertiesOf, sharedReference } from '../openapi.ts'
import type { Json } from '../examples.ts'

export type Schemas = Readonly<Record<string, Json>>

/** Levels of fields that a table shows. */
const deepest = 3

function resolve(schema: Json, schemas: Schemas): Json {
  const name = referenceName(schema)
  return name === null ? schema : (schemas[name] ?? {})
}

function referenceName(schema: Json): string | null {
  const { $ref } = schema
  return typeof $ref === 'string' && $ref.startsWith(sharedReference) ? $ref.slice(sharedReference.length) : null
}

/** The name of the schema, or of the schema of an array's entries; null = it has none. */
export function nameOf(schema: Json): string | null {
  return referenceName(schema.type === 'array' ? itemsOf(schema) : schema)
}

/** The type in words: 'array of User', 'integer, 0 to 100', '"asc" | "desc"'. */
export function typeWords(schema: Json, schemas: Schemas): string {
  const name = referenceName(schema)
  if (name !== null) return name
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if ('const' in schema) return JSON.stringify(schema.const)
  const choices = choicesOf(schema)
  if (choices.length > 0) return [...new Set(choices.map((choice) => typeWords(choice, schemas)))].join(' | ')
  if (schema.type === 'array' && 'not' in itemsOf(schema)) return 'empty array'
  if (schema.type === 'array') return `array of ${typeWords(itemsOf(schema), schemas)}`
  const { type = 'any' } = schema
  return (Array.isArray(type) ? type.join(' | ') : String(type)) + rangeWords(schema)
}

function choicesOf({ anyOf, oneOf }: Json): readonly Json[] {
  return (anyOf ?? oneOf ?? []) as readonly Json[]
}

function itemsOf({ items }: Json): Json {
  return (items ?? {}) as Json
}

function rangeWords({ minimum, maximum, format }: Json): string {
  const low = typeof minimum === 'number' ? minimum : null
  const high = typeof maximum === 'number' ? maximum : null
  if (low !== null && high !== null) return `, ${low} to ${high}`
  if (low !== null && low !== 0) return `, at least ${low}`
  return typeof format === 'string' ? ` (${format})` : ''
}

/** Rows of name, type and meaning. An answer's table has only fields with a description: its example has all. */
export function fieldTable(schema: Json, schemas: Schemas, isAnswer = false): Html | null {
  return tableOf(fieldRows(schema, schemas, '', isAnswer))
}

export function tableOf(rows: readonly Html[]): Html | null {
  if (rows.length === 0) return null
  return html`<table class="fields">
    <tbody>
      ${rows}
    </tbody>
  </table>`
}

function fieldRows(schema: Json, schemas: Schemas, prefix: string, isAnswer: boolean): Html[] {
  const { properties, required } = propertiesOf(objectOf(schema, schemas))
  const isLast = prefix.split('.').length >= deepest
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = prefix + name
    const row = fieldRow(path, field, schemas, !isAnswer && required.includes(name))
    const isShown = !isAnswer || field.description !== undefined
    const list = resolve(field, schemas).type === 'array' ? '[]' : ''
    return [...(isShown ? [row] : []), ...(isLast ? [] : fieldRows(field, schemas, `${path}${list}.`, isAnswer))]
  })
}

export function fieldRow(name: string, schema: Json, schemas: Schemas, required: boolean): Html {
  const { default: fallback, description } = schema
  return html`<tr>
    <th>${breakable(name)}${required && html` <b title="required">*</b>`}</th>
    <td>
      <i>${typeWords(schema, schemas)}${fallback !== undefined && ` · default ${JSON.stringify(fallback)}`}</i>
      ${typeof description === 'string' && html`<p>${inline(description)}</p>`}
    </td>
  </tr>`
}

/** A long name breaks behind a dot. */
function breakable(name: string): Html[] {
  return name.split(/(?<=\.)/).map((piece, index) => (index === 0 ? html`${piece}` : html`<wbr />${piece}`))
}

/** The schema itself, or that of an array's entries. */
function objectOf(schema: Json, schemas: Schemas): Json {
  const resolved = resolve(schema, schemas)
  return resolved.type === 'array' ? resolve(itemsOf(resolved), schemas) : resolved
}

/** The examples of the schema, or one made of its fields. */
export function examplesOf(schema: Json, schemas: Schemas): readonly unknown[] {
  const { examples } = resolve(schema, schemas)
  return Array.isArray(examples) && examples.length > 0 ? examples : [exampleOf(schema, schemas)]
}

/** Examples of types, for schemas without an example. */
const samples: Json = { integer: 1, number: 1, boolean: true, string: 'text' }

function exampleOf(schema: Json, schemas: Schemas): unknown {
  const given = resolve(schema, schemas)
  if (Array.isArray(given.examples) && given.examples.length > 0) return given.examples[0]
  if (Array.isArray(given.enum)) return given.enum[0]
  const [choice] = choicesOf(given)
  if (choice !== undefined) return exampleOf(choice, schemas)
  if (given.type === 'array') return [exampleOf(itemsOf(given), schemas)]
  if (given.type !== 'object') return samples[String(given.type)] ?? null
  const fields = Object.entries(propertiesOf(given).properties)
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field, schemas)]))
}

export interface Shown {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

function keyOf({ security: [first] }: Shown['operation']): string {
  if (first === undefined) return ''
  return 'admin' in first ? ' -H "Authorization: Bearer $TOKEN"' : ' -u "$KEY:$SECRET"'
}

export function curl({ method, path, operation }: Shown, baseUrl: string, schemas: Schemas): string {
  const verb = method === 'GET' ? '' : ` -X ${method}`
  const key = keyOf(operation)
  const lines = [`curl${verb}${key}`, `'${baseUrl}${filledPath(path, operation)}${requiredQuery(operation, schemas)}'`]
  const body = bodySchema(operation)
  const fields = body === null ? [] : Object.entries(bodyExample(body, schemas))
  return [...lines, ...fields.map(([name, value]) => `-d ${shellText(`${name}=${formText(value)}`)}`)].join(' \\\n  ')
}

export function bodySchema(operation: Operation): Json | null {
  return operation.requestBody?.content['application/json']?.schema ?? null
}

/** The example of the body, or its required parameters, or else its first two parameters. */
function bodyExample(schema: Json, schemas: Schemas): Record<string, unknown> {
  if (Array.isArray(schema.examples)) return schema.examples[0] as Record<string, unknown>
  const { properties, required } = propertiesOf(schema)
  const shown = required.length > 0 ? required : Object.keys(properties).slice(0, 2)
  return Object.fromEntries(shown.map((name) => [name, exampleOf(properties[name] ?? {}, schemas)]))
}

function filledPath(path: string, operation: Operation): string {
  return path.replaceAll(/\{(\w+)\}/g, (whole, name) => {
    const example = operation.parameters.find((one) => one.in === 'path' && one.name === name)?.example
    return typeof example === 'string' ? encodeURIComponent(example) : whole
  })
}

function requiredQuery(operation: Operation, schemas: Schemas): string {
  const pairs = operation.parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(({ name, schema }) => `${name}=${encodeURIComponent(plain(exampleOf(schema, schemas)))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A value for curl -d, which sends it unchanged: only the special characters of a form are encoded. */
function formText(value: unknown): string {
  return plain(value).replaceAll(/[%&+]/g, (sign) => encodeURIComponent(sign))
}

function shellText(text: string): string {
  return /^[\w@.:/=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
