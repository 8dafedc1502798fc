/** The curl line of an operation: whole, with parameters that belong together, so that it can be run with a real key and real ids. */
import type { Json } from '../openapi-schema.ts'
import { propertiesOf, type Operation } from '../openapi.ts'
import { exampleOf } from './example.ts'
import type { Schemas } from './schema-view.ts'

export interface Shown {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export function curl({ method, path, operation }: Shown, baseUrl: string, schemas: Schemas): string {
  const verb = method === 'GET' ? '' : ` -X ${method}`
  const key = operation.security.length > 0 ? ' -u "$KEY:$SECRET"' : ''
  const lines = [`curl${verb}${key}`, `'${baseUrl}${filledPath(path, operation)}${requiredQuery(operation, schemas)}'`]
  const body = bodySchema(operation)
  const fields = body === null ? [] : Object.entries(bodyExample(body, schemas))
  return [...lines, ...fields.map(([name, value]) => `-d ${shellText(`${name}=${formText(value)}`)}`)].join(' \\\n  ')
}

export function bodySchema(operation: Operation): Json | null {
  return operation.requestBody?.content['application/json']?.schema ?? null
}

/** The body's own example, or what it requires, or else its first two parameters. */
function bodyExample(schema: Json, schemas: Schemas): Record<string, unknown> {
  if (Array.isArray(schema.examples)) return schema.examples[0] as Record<string, unknown>
  const { properties, required } = propertiesOf(schema)
  const shown = required.length > 0 ? required : Object.keys(properties).slice(0, 2)
  return Object.fromEntries(shown.map((name) => [name, exampleOf(properties[name] ?? {}, schemas)]))
}

function filledPath(path: string, operation: Operation): string {
  return path.replaceAll(/\{(\w+)\}/g, (whole, name) => {
    const example = operation.parameters.find(
      (parameter) => parameter.in === 'path' && parameter.name === name,
    )?.example
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

/** `-d` sends what it is given: only what a form takes for something else is encoded. */
function formText(value: unknown): string {
  return plain(value).replaceAll(/[%&+]/g, (sign) => encodeURIComponent(sign))
}

function shellText(text: string): string {
  return /^[\w@.:/=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
