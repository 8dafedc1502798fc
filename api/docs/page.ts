/** The HTML reference at /docs: the OpenAPI document as one page that needs nothing from the network. */
import type { Callback } from '../lite/webhooks/callbacks.ts'
import { answerOf, type Json, type OpenApi, type Operation } from '../openapi.ts'
import { html, Html, inline, pageHeaders, paragraphs, script, style, wholePage } from './html.ts'
import {
  bodySchema,
  curl,
  examplesOf,
  fieldRow,
  fieldTable,
  type Schemas,
  type Shown,
  typeWords,
} from './schema-view.ts'

export const docsHeaders = pageHeaders(style, script)

/** A whole element, so that no white space gets between the hash and the text. */
const scriptElement = new Html(`<script>${script}</script>`)

export function renderDocs(document: OpenApi): string {
  const groups = groupsOf(document)
  const body = html`${navigation(document, groups)} ${reference(document, groups)} ${scriptElement}`
  return wholePage(`${document.info.title} API`, style, body)
}

function navigation(document: OpenApi, groups: readonly Group[]): Html {
  const lists = groups.map(
    ({ tag, shown }) =>
      html`<div data-group>
        <h2>${tag}</h2>
        ${shown.map(link)}
      </div>`,
  )
  return html`<nav aria-label="Operations">
    <h1>${document.info.title}</h1>
    <p>
      API reference · <a href="/openapi.json"><u>openapi.json</u></a>
    </p>
    <input type="search" placeholder="Filter" aria-label="Filter operations" />
    ${lists} ${callbackLinks(document.webhooks)}
  </nav>`
}

function reference(document: OpenApi, groups: readonly Group[]): Html {
  const baseUrl = document.servers[0]?.url ?? ''
  const schemas = (document.components.schemas ?? {}) as Schemas
  const sections = groups.map(
    ({ tag, shown }) =>
      html`<div data-group>
        <h2>${tag}</h2>
        ${shown.map((one) => operationSection(one, baseUrl, schemas))}
      </div>`,
  )
  return html`<main>
    <header>
      <h1>${document.info.title} API</h1>
      ${paragraphs(document.info.description)}
      <p>Base URL: <code class="base">${baseUrl}</code></p>
    </header>
    ${sections} ${callbackSection(document.webhooks, schemas)}
  </main>`
}

interface Group {
  readonly tag: string
  readonly shown: readonly Shown[]
}

function groupsOf(document: OpenApi): Group[] {
  const all = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  return document.tags.map(({ name }) => ({
    tag: name,
    shown: all.filter(({ operation }) => operation.tags.includes(name)),
  }))
}

function link({ method, path, operation }: Shown): Html {
  return html`<a
    href="#${operation.operationId}"
    title="${path}"
    data-search="${`${method} ${path} ${operation.summary}`.toLowerCase()}"
    ><span class="method ${method.toLowerCase()}">${method}</span><span>${operation.summary}</span></a
  >`
}

function operationSection({ method, path, operation }: Shown, baseUrl: string, schemas: Schemas): Html {
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

function callbackSection(callbacks: Callbacks, schemas: Schemas): Html {
  return html`<div data-group>
    <h2 id="callbacks">Callbacks</h2>
    <section class="operation" id="verify" data-search="callbacks verify signature">
      <h3>Verify a signature</h3>
      ${paragraphs(howToVerify)}
      <h4>Node.js</h4>
      <pre>${verification}</pre>
    </section>
    ${Object.values(callbacks).map(({ post }) => oneCallback(post, schemas))}
  </div>`
}

function callbackLinks(callbacks: Callbacks): Html {
  return html`<div data-group>
    <h2>Callbacks</h2>
    ${callbackLink('verify', '', 'Verify a signature', 'callbacks verify signature')}
    ${Object.values(callbacks).map(({ post }) => callbackLink(post.operationId, 'POST', post.summary, searchWords(post)))}
  </div>`
}

function callbackLink(id: string, method: string, summary: string, search: string): Html {
  return html`<a href="#${id}" title="${summary}" data-search="${search}"
    >${method !== '' && html`<span class="method ${method.toLowerCase()}">${method}</span>`}<span>${summary}</span></a
  >`
}

function searchWords({ summary, operationId }: Callback): string {
  return `callbacks ${operationId} ${summary}`.toLowerCase()
}

function oneCallback(callback: Callback, schemas: Schemas): Html {
  const { schema } = callback.requestBody.content['application/json']
  return html`<section class="operation" id="${callback.operationId}" data-search="${searchWords(callback)}">
    <h3><span class="method post">POST</span><code>${callback.operationId}</code></h3>
    <p class="summary">${callback.summary}</p>
    <p>${inline(callback.description)}</p>
    <div class="columns">
      <div>
        <h4>Headers</h4>
        <table class="fields">
          <tbody>
            ${callback.parameters.map(({ name, description, ...one }) => fieldRow(name, { ...one.schema, description }, schemas, true))}
          </tbody>
        </table>
        <h4>Body <small>${typeWords(schema, schemas)}</small></h4>
        ${fieldTable(schema, schemas)}
      </div>
      <div>
        <h4>Body</h4>
        ${examplesOf(schema, schemas).map((example) => html`<pre>${JSON.stringify(example, null, 2)}</pre>`)}
      </div>
    </div>
  </section>`
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
