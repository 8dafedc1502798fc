/** Entries of the documentation: an operation, a callback, and the verification of a signature. */
import { html, type Html, inline, paragraphs } from '../html.ts'
import type { Callback } from '../lite/webhooks/callbacks.ts'
import { answerOf, type OpenApi, type Operation, propertiesOf } from '../openapi.ts'
import type { Json } from '../examples.ts'
import {
  bodySchema,
  curl,
  examplesOf,
  fieldRow,
  fieldTable,
  nameOf,
  type Schemas,
  type Shown,
  tableOf,
  typeWords,
} from './schema-view.ts'

/** `method` is '' where the entry is no operation. `words` are further text for the search. */
export type Entry = ReturnType<typeof operationEntry>
export type Group = ReturnType<typeof callbackGroup>

interface Page {
  readonly baseUrl: string
  readonly schemas: Schemas
  /** Id of the entry that shows a schema, by the schema's name or by its fields as JSON. A page shows each once. */
  readonly shown: Map<string, string>
}

type Parameters = Operation['parameters'] | Callback['parameters']

export const callbacksTag = 'Callbacks'

/** The reference of these tags. Operations with one summary, such as with and without a folder, are one entry. */
export function referenceOf(document: OpenApi, tags: readonly string[]) {
  const schemas = (document.components.schemas ?? {}) as Schemas
  const all = Object.entries(document.paths)
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    )
    .filter(({ operation }) => tags.includes(operation.tags[0] ?? ''))
  const merged = [...Map.groupBy(all, ({ operation }) => operation.summary).values()]
  const page = { baseUrl: document.servers[0]?.url ?? '', schemas, shown: new Map<string, string>() }
  const groups = tags.map((tag) => {
    if (tag === callbacksTag) return callbackGroup(document.webhooks, schemas)
    const entries = merged.filter(([first]) => first?.operation.tags[0] === tag)
    return { tag, entries: entries.map((same) => operationEntry(same, page)) }
  })
  const pathTable = parameterTable('In the paths', distinct(all, 'path'), schemas)
  return { pathTable, groups: groups.filter(({ entries }) => entries.length > 0) }
}

function distinct(all: readonly Shown[], where: 'path' | 'query'): Operation['parameters'] {
  const parameters = all.flatMap(({ operation }) => operation.parameters.filter((one) => one.in === where))
  return [...new Map(parameters.map((one) => [`${one.name} ${one.description ?? ''}`, one])).values()]
}

export function methodMark(method: string): Html {
  return html`<b class="${method.toLowerCase()}">${method}</b>`
}

function operationEntry(same: readonly Shown[], page: Page) {
  const [first] = same
  if (first === undefined) throw new Error('an entry without an operation')
  const { operationId: id, summary, security, deprecated = false } = first.operation
  const parameters = distinct(same, 'query')
  const descriptions = new Set(same.flatMap(({ operation }) => operation.description ?? []))
  const content = html`${same.map(({ method, path }) => html`<h3>${methodMark(method)}<code>${pathPieces(path)}</code></h3>`)}
    <p class="summary">${summary}${security.length === 0 && html`<span class="public">no signature</span>`}</p>
    ${[...descriptions].map((description) => html`<p>${inline(description)}</p>`)}
    ${columns(
      html`${parameterTable('Query', parameters, page.schemas)} ${body(first.operation, page)}
      ${errorList(first.operation)}`,
      html`<h4>Call</h4>
        <pre>${curl(first, page.baseUrl, page.schemas)}</pre>
        ${answer(first.operation, page)}`,
    )}`
  const fields = Object.keys(propertiesOf(bodySchema(first.operation) ?? {}).properties)
  const named = deprecated ? [] : [...parameters.map(({ name }) => name), ...fields]
  return { id, summary, method: first.method, words: [first.path, ...named].join(' '), content }
}

function columns(left: Html, right: Html): Html {
  return html`<div class="columns">
    <div>${left}</div>
    <div>${right}</div>
  </div>`
}

function pathPieces(path: string): Html[] {
  return path.split(/(\{\w+\})/).map((piece) => (piece.startsWith('{') ? html`<var>${piece}</var>` : html`${piece}`))
}

function parameterTable(title: string, parameters: Parameters, schemas: Schemas): Html | null {
  const rows = parameters.map(({ name, schema, required, description }) =>
    fieldRow(name, description === undefined ? schema : { ...schema, description }, schemas, required),
  )
  return titled(html`${title}`, tableOf(rows))
}

function bodyTable(schema: Json, type: string, schemas: Schemas): Html | null {
  return titled(html`Body <small>${type}</small>`, fieldTable(schema, schemas))
}

function titled(title: Html, table: Html | null): Html | null {
  const head = html`<h4>${title}</h4>`
  return table && html`${head} ${table}`
}

function body(operation: Operation, { schemas, shown }: Page): Html | null {
  const schema = bodySchema(operation) ?? {}
  const { properties, required } = propertiesOf(schema)
  const fields = JSON.stringify(properties)
  const known = shown.get(fields)
  if (known === undefined) {
    if (Object.keys(properties).length > 1) shown.set(fields, operation.operationId)
    return bodyTable(schema, 'form, multipart or JSON', schemas)
  }
  return shownAt(known, 'Body', 'these fields', required.length === 0 ? ', none of them required' : '')
}

function shownAt(id: string, part: string, link: string, more = ''): Html {
  return html`<h4>
    ${part}
    <small
      ><a href="#${id}"><u>${link}</u></a
      >${more}</small
    >
  </h4>`
}

/** Statuses that any call may answer. The first page explains them. */
const usualErrors = new Set(['400', '401', '403', '404', '413', '429', '431', '500', '503', '504'])

function errorList(operation: Operation): Html | null {
  const { status: good } = answerOf(operation)
  const own = Object.keys(operation.responses).filter((status) => status !== good && !usualErrors.has(status))
  return own.length === 0 ? null : html`<p class="common">Errors of its own: ${own.join(', ')}</p>`
}

function answer(operation: Operation, { schemas, shown }: Page): Html {
  const content = (answerOf(operation).answer.content ?? {}) as Record<string, { readonly schema: Json }>
  const [type = '', media] = Object.entries(content)[0] ?? []
  if (media === undefined || type !== 'application/json') return html`<h4>Answer <small>${type}</small></h4>`
  const words = typeWords(media.schema, schemas)
  const name = nameOf(media.schema)
  const known = name === null ? undefined : shown.get(name)
  if (known !== undefined) return shownAt(known, 'Answer', words)
  if (operation.deprecated) return html`<h4>Answer <small>${words}</small></h4>`
  if (name !== null) shown.set(name, operation.operationId)
  const fields = fieldTable(media.schema, schemas, true)
  return html`<h4>Answer <small>${words}</small></h4>
    ${exampleBlocks(media.schema, schemas)}
    ${
      fields !== null &&
      html`<details>
        <summary>Fields</summary>
        ${fields}
      </details>`
    }`
}

const howToVerify =
  'Two signatures stand beside each other. The body has `timestamp`, `token` and `signature`: the signature is ' +
  'the hex HMAC-SHA256 of the digits of the timestamp right followed by the token, keyed with your API secret. It says who sent it, not ' +
  'that the rest of the body is unchanged. The headers follow Standard Webhooks and cover the whole body, so check these where you can: `webhook-signature` has one ' +
  '`v1,<base64>` per valid key, with a space between, of `<webhook-id>.<webhook-timestamp>.<body>`, the body as the bytes that came. The ' +
  'keys are the secret of the webhook (`GET …/webhooks/{webhook_id}/secret`; what follows `whsec_`, decoded from base64), after a rotation ' +
  'the old one too, and last your API secret. Status and sync callbacks belong to no webhook: the API secret alone signs them. Refuse what ' +
  'is signed with none of your keys, or whose timestamp is minutes away from your clock.\n\n' +
  'Answer 2xx at once and work afterwards. Anything else is tried again by the retry schedule, under the same `webhook-id`; 410 makes the ' +
  'webhook inactive.'

function callbackGroup(callbacks: OpenApi['webhooks'], schemas: Schemas) {
  const summary = 'Verify a signature'
  const content = html`<h3>${summary}</h3>
    ${paragraphs(howToVerify)}
    <h4>Node.js</h4>
    <pre>${verification}</pre>`
  const verify = { id: 'verify', summary, method: '', words: 'signature callback', content }
  const entries = Object.values(callbacks).map(({ post }) => callbackEntry(post, schemas))
  return { tag: callbacksTag, entries: [verify, ...entries] }
}

function callbackEntry(callback: Callback, schemas: Schemas): Entry {
  const { operationId: id, summary, description, parameters, requestBody } = callback
  const { schema } = requestBody.content['application/json']
  const content = html`<h3>${methodMark('POST')}<code>${id}</code></h3>
    <p class="summary">${summary}</p>
    <p>${inline(description)}</p>
    ${columns(
      html`${parameterTable('Headers', parameters, schemas)} ${bodyTable(schema, typeWords(schema, schemas), schemas)}`,
      html`<h4>Body</h4>
        ${exampleBlocks(schema, schemas)}`,
    )}`
  return { id, summary, method: 'POST', words: `callback ${id}`, content }
}

function exampleBlocks(schema: Json, schemas: Schemas): Html[] {
  return examplesOf(schema, schemas).map((example) => html`<pre>${JSON.stringify(example, null, 2)}</pre>`)
}

/** A module that verifies callbacks. The tests run it on real callbacks. */
export const verification = `import { createHmac, timingSafeEqual } from 'node:crypto'

function same(left, right) {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** timestamp, token and signature of the parsed body. */
export function bodyIsSigned({ timestamp, token, signature }, apiSecret) {
  const digest = createHmac('sha256', apiSecret).update(\`\${timestamp}\${token}\`).digest('hex')
  return same(digest, String(signature))
}

/** Standard Webhooks. secret: 'whsec_…' of the webhook, or your API secret. */
export function headersAreSigned(headers, rawBody, secret) {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret
  const signed = \`\${headers['webhook-id']}.\${headers['webhook-timestamp']}.\${rawBody}\`
  const digest = createHmac('sha256', key).update(signed).digest('base64')
  return String(headers['webhook-signature']).split(' ').some((one) => same(one, \`v1,\${digest}\`))
}`
