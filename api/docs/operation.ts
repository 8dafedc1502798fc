/** One operation of the reference: what it takes, what it answers, and the curl line. */
import type { Json } from '../openapi-schema.ts'
import { answerOf, type Operation } from '../openapi.ts'
import { bodySchema, curl, type Shown } from './curl.ts'
import { examplesOf } from './example.ts'
import { html, type Html } from './html.ts'
import { inline } from './prose.ts'
import { fieldRow, fieldTable, typeWords, type Schemas } from './schema-view.ts'

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
    ${operation.description !== undefined && html`<p>${inline(operation.description)}</p>`}
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

function bodyTable(operation: Operation, schemas: Schemas): Html | null {
  const schema = bodySchema(operation)
  const table = schema === null ? null : fieldTable(schema, schemas)
  return table === null
    ? null
    : html`<h4>Body <small>form, multipart or JSON</small></h4>
        ${table}`
}

function errorList(operation: Operation): Html {
  const { status: good, answer } = answerOf(operation)
  const statuses = Object.keys(operation.responses).filter((status) => status !== good)
  const headers = Object.keys(answer.headers ?? {})
  return html`<p class="errors">Errors: ${codes(statuses)}<br />Headers: ${codes(headers)}</p>`
}

function codes(words: readonly string[]): Html[] {
  return words.map((word) => html`<code>${word}</code> `)
}

function answer(operation: Operation, schemas: Schemas): Html {
  const content = (answerOf(operation).answer.content ?? {}) as Record<string, { readonly schema: Json }>
  const [type = '', media] = Object.entries(content)[0] ?? []
  if (media === undefined || type !== 'application/json') return html`<h4>Answer <small>${type}</small></h4>`
  const fields = fieldTable(media.schema, schemas)
  return html`<h4>Answer <small>${typeWords(media.schema, schemas)}</small></h4>
    ${examplesOf(media.schema, schemas).map((example) => html`<pre>${JSON.stringify(example, null, 2)}</pre>`)}
    ${
      fields !== null &&
      html`<details>
        <summary>Fields</summary>
        ${fields}
      </details>`
    }`
}
