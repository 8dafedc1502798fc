/** The HTML reference at /docs: the OpenAPI document as one page that needs nothing from the network. */
import { html, Html, inline, pageHeaders, paragraphs, wholePage } from '../html.ts'
import type { Callback } from '../lite/webhooks/callbacks.ts'
import { answerOf, type Json, type OpenApi, type Operation } from '../openapi.ts'
import { script, style } from './look.ts'
import {
  bodySchema,
  curl,
  examplesOf,
  fieldRow,
  fieldTable,
  type Schemas,
  type Shown,
  tableOf,
  typeWords,
} from './schema-view.ts'

export const docsHeaders = pageHeaders(style, script)

/** A whole element, so that no white space gets between the hash and the text. */
const scriptElement = new Html(`<script>${script}</script>`)

export function renderDocs(document: OpenApi): string {
  const baseUrl = document.servers[0]?.url ?? ''
  const schemas = (document.components.schemas ?? {}) as Schemas
  const groups = [...groupsOf(document, baseUrl, schemas), callbackGroup(document.webhooks, schemas)]
  const body = html`<nav aria-label="Operations">
      <h1>${document.info.title}</h1>
      <p>
        API reference · <a href="/openapi.json"><u>openapi.json</u></a>
      </p>
      <input type="search" placeholder="Filter" aria-label="Filter operations" />
      ${groups.map(({ tag, entries }) => groupOf(html`<h2>${tag}</h2>`, entries.map(link)))}
    </nav>
    <main>
      <header>
        <h1>${document.info.title} API</h1>
        ${paragraphs(document.info.description)}
        <p>Base URL: <code class="base">${baseUrl}</code></p>
      </header>
      ${groups.map(({ tag, entries }) => groupOf(html`<h2 id="${idOf(tag)}">${tag}</h2>`, entries.map(section)))}
    </main>
    ${scriptElement}`
  return wholePage(`${document.info.title} API`, style, body)
}

/** What the page shows of one operation, of one callback, or of how to verify a signature. */
interface Entry {
  readonly id: string
  readonly summary: string
  readonly method: string
  /** Of the link. */
  readonly title: string
  /** What the filter looks in. */
  readonly words: string
  readonly content: Html
}

interface Group {
  readonly tag: string
  readonly entries: readonly Entry[]
}

const idOf = (tag: string): string => tag.toLowerCase().replaceAll(' ', '-')

function groupOf(heading: Html, content: readonly Html[]): Html {
  return html`<div data-group>${heading} ${content}</div>`
}

function link({ id, method, title, words, summary }: Entry): Html {
  return html`<a href="#${id}" title="${title}" data-search="${words}"
    >${method !== '' && methodMark(method)}<span>${summary}</span></a
  >`
}

function section({ id, words, content }: Entry): Html {
  return html`<section class="operation" id="${id}" data-search="${words}">${content}</section>`
}

function methodMark(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`
}

function groupsOf(document: OpenApi, baseUrl: string, schemas: Schemas): Group[] {
  const all = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  return document.tags.map(({ name }) => ({
    tag: name,
    entries: all
      .filter(({ operation }) => operation.tags.includes(name))
      .map((shown) => operationEntry(shown, baseUrl, schemas)),
  }))
}

function operationEntry({ method, path, operation }: Shown, baseUrl: string, schemas: Schemas): Entry {
  const { operationId: id, summary, description, security } = operation
  const content = html`<h3>${methodMark(method)}<code>${pathPieces(path)}</code></h3>
    <p class="summary">${summary}${security.length === 0 && html`<span class="public">no signature</span>`}</p>
    ${description !== undefined && html`<p>${inline(description)}</p>`}
    <div class="columns">
      <div>
        ${parameterTables(operation.parameters, schemas)}
        ${bodyTable(bodySchema(operation), 'form, multipart or JSON', schemas)} ${errorList(operation)}
      </div>
      <div>
        <h4>Call</h4>
        <pre>${curl({ method, path, operation }, baseUrl, schemas)}</pre>
        ${answer(operation, schemas)}
      </div>
    </div>`
  return { id, summary, method, title: path, words: `${method} ${path} ${summary}`.toLowerCase(), content }
}

function pathPieces(path: string): Html[] {
  return path.split(/(\{\w+\})/).map((piece) => (piece.startsWith('{') ? html`<var>${piece}</var>` : html`${piece}`))
}

const tables = { path: 'Path', query: 'Query', header: 'Headers' }

function parameterTables(parameters: Operation['parameters'] | Callback['parameters'], schemas: Schemas): Html[] {
  return Object.entries(tables).flatMap(([where, title]) => {
    const rows = parameters
      .filter((parameter) => parameter.in === where)
      .map(({ name, schema, required, description }) =>
        fieldRow(name, description === undefined ? schema : { ...schema, description }, schemas, required),
      )
    return rows.length === 0 ? [] : [html`<h4>${title}</h4>`, tableOf(rows)]
  })
}

function bodyTable(schema: Json | null, type: string, schemas: Schemas): Html | null {
  const table = schema === null ? null : fieldTable(schema, schemas)
  return table === null
    ? null
    : html`<h4>Body <small>${type}</small></h4>
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
    ${exampleBlocks(media.schema, schemas)}
    ${
      fields !== null &&
      html`<details>
        <summary>Fields</summary>
        ${fields}
      </details>`
    }`
}

type Callbacks = Readonly<Record<string, { readonly post: Callback }>>

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

function callbackGroup(callbacks: Callbacks, schemas: Schemas): Group {
  const verify = html`<h3>Verify a signature</h3>
    ${paragraphs(howToVerify)}
    <h4>Node.js</h4>
    <pre>${verification}</pre>`
  const summary = 'Verify a signature'
  return {
    tag: 'Callbacks',
    entries: [
      { id: 'verify', summary, method: '', title: summary, words: 'callbacks verify signature', content: verify },
      ...Object.values(callbacks).map(({ post }) => callbackEntry(post, schemas)),
    ],
  }
}

function callbackEntry(callback: Callback, schemas: Schemas): Entry {
  const { operationId: id, summary, description, parameters, requestBody } = callback
  const { schema } = requestBody.content['application/json']
  const content = html`<h3>${methodMark('POST')}<code>${id}</code></h3>
    <p class="summary">${summary}</p>
    <p>${inline(description)}</p>
    <div class="columns">
      <div>${parameterTables(parameters, schemas)} ${bodyTable(schema, typeWords(schema, schemas), schemas)}</div>
      <div>
        <h4>Body</h4>
        ${exampleBlocks(schema, schemas)}
      </div>
    </div>`
  return { id, summary, method: 'POST', title: summary, words: `callbacks ${id} ${summary}`.toLowerCase(), content }
}

function exampleBlocks(schema: Json, schemas: Schemas): Html[] {
  return examplesOf(schema, schemas).map((example) => html`<pre>${JSON.stringify(example, null, 2)}</pre>`)
}

/** How a receiver checks a callback, as a module that runs as it is: the tests run it on real callbacks. */
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
