/** One operation of the reference: what it takes, what it answers, and the curl line. */
import type { Json } from '../openapi-schema.ts'
import { propertiesOf, type Operation } from '../openapi.ts'
import { exampleOf } from './example.ts'
import { html, type Html } from './html.ts'
import { fieldRow, fieldTable, typeWords, type Schemas } from './schema-view.ts'

export interface Shown {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

export function operationSection({ method, path, operation }: Shown, baseUrl: string, schemas: Schemas): Html {
  return html`<section
    class="operation"
    id="${operation.operationId}"
    data-search="${`${method} ${path} ${operation.summary}`.toLowerCase()}"
  >
    <h3><span class="method ${method.toLowerCase()}">${method}</span><code>${pathPieces(path)}</code></h3>
    <p class="summary">
      ${operation.summary}${operation.security.length === 0 && html`<span class="public">no signature</span>`}
    </p>
    ${operation.description !== undefined && html`<p>${operation.description}</p>`}
    <div class="columns">
      <div>${parameterTables(operation, schemas)} ${bodyTable(operation, schemas)} ${errorList(operation)}</div>
      <div>
        <h4>Call</h4>
        <pre>${curl({ method, path, operation }, baseUrl, schemas)}</pre>
        ${answer(operation, schemas)}
      </div>
    </div>
  </section>`
}

function pathPieces(path: string): Html[] {
  return path.split(/(\{\w+\})/).map((piece) => (piece.startsWith('{') ? html`<var>${piece}</var>` : html`${piece}`))
}

function parameterTables(operation: Operation, schemas: Schemas): Html[] {
  return (['path', 'query'] as const).flatMap((where) => {
    const rows = operation.parameters
      .filter((parameter) => parameter.in === where)
      .map(({ name, schema, required, description }) =>
        fieldRow(name, description === undefined ? schema : { ...schema, description }, schemas, required),
      )
    if (rows.length === 0) return []
    return [
      html`<h4>${where === 'path' ? 'Path' : 'Query'}</h4>
        <table class="fields">
          <tbody>
            ${rows}
          </tbody>
        </table>`,
    ]
  })
}

function bodySchema(operation: Operation): Json | null {
  return operation.requestBody?.content['application/json']?.schema ?? null
}

function bodyTable(operation: Operation, schemas: Schemas): Html | null {
  const schema = bodySchema(operation)
  const table = schema === null ? null : fieldTable(schema, schemas)
  return table === null
    ? null
    : html`<h4>Body <small>form, multipart or JSON</small></h4>
        ${table}`
}

function errorList(operation: Operation): Html {
  const statuses = Object.keys(operation.responses).filter((status) => status !== '200')
  return html`<p class="errors">Errors: ${statuses.map((status) => html`<code>${status}</code> `)}</p>`
}

function curl({ method, path, operation }: Shown, baseUrl: string, schemas: Schemas): string {
  const lines = [
    `curl${method === 'GET' ? '' : ` -X ${method}`}${operation.security.length > 0 ? ' -u "$KEY:$SECRET"' : ''}`,
  ]
  lines.push(`'${baseUrl}${filledPath(path, operation)}${requiredQuery(operation, schemas)}'`)
  const schema = bodySchema(operation)
  if (schema !== null) {
    const { properties, required } = propertiesOf(schema)
    const shown = required.length > 0 ? required : Object.keys(properties).slice(0, 2)
    for (const name of shown) lines.push(`-d ${name}=${shellText(exampleOf(properties[name] ?? {}, schemas, name))}`)
  }
  return lines.join(' \\\n  ')
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
    .map(({ name, schema }) => `${name}=${encodeURIComponent(plain(exampleOf(schema, schemas, name)))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function shellText(value: unknown): string {
  const text = plain(value)
  return /^[\w@.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function answer(operation: Operation, schemas: Schemas): Html {
  const content = (operation.responses['200']?.content ?? {}) as Record<string, { readonly schema: Json }>
  const [type = '', media] = Object.entries(content)[0] ?? []
  if (media === undefined || type !== 'application/json') return html`<h4>Answer <small>${type}</small></h4>`
  const fields = fieldTable(media.schema, schemas)
  return html`<h4>Answer <small>${typeWords(media.schema, schemas)}</small></h4>
    <pre>${JSON.stringify(exampleOf(media.schema, schemas), null, 2)}</pre>
    ${
      fields !== null &&
      html`<details>
        <summary>Fields</summary>
        ${fields}
      </details>`
    }`
}
