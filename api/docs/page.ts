/** The HTML reference at /docs: the OpenAPI document as one page that needs nothing from the network. */
import { basics, html, Html, inline, pageHeaders, paragraphs, wholePage } from '../html.ts'
import type { Callback } from '../lite/webhooks/callbacks.ts'
import { answerOf, type Json, type OpenApi, type Operation } from '../openapi.ts'
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

const style = `${basics}
a { color: inherit; text-decoration: none; }
nav { position: fixed; inset: 0 auto 0 0; width: 310px; overflow-y: auto; padding: 22px 16px; border-right: 1px solid var(--line); background: var(--panel); }
nav h1 { font-size: 19px; margin: 0 8px 2px; } nav p { margin: 0 8px 14px; color: var(--soft); font-size: 13px; }
nav input { width: 100%; padding: 8px 10px; margin-bottom: 10px; border: 1px solid var(--line); border-radius: 8px; font: inherit; color: inherit; background: var(--paper); }
nav h2 { margin: 16px 8px 4px; font-size: 11.5px; letter-spacing: .07em; text-transform: uppercase; color: var(--soft); }
nav div a { display: flex; gap: 8px; align-items: baseline; padding: 3px 8px; border-radius: 6px; font-size: 13.5px; }
nav div a:hover { background: var(--line); } nav div a span:last-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
main { overflow-wrap: anywhere; margin-left: 310px; padding: 34px 44px 120px; max-width: 1440px; }
main > header { max-width: 760px; } main > header h1 { margin: 0 0 6px; font-size: 30px; letter-spacing: -.01em; }
.base { display: inline-block; padding: 3px 10px; border-radius: 6px; background: var(--panel); border: 1px solid var(--line); }
main h2 { margin: 54px 0 0; padding-bottom: 8px; font-size: 22px; border-bottom: 2px solid var(--line); }
.operation { padding: 26px 0 30px; border-bottom: 1px solid var(--line); }
.operation h3 { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; margin: 0 0 4px; font-weight: 500; }
.operation h3 code { min-width: 0; font-size: 15px; overflow-wrap: anywhere; } var { font-style: normal; color: var(--accent); }
.summary { margin: 0 0 6px; font-weight: 600; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 36px; }
h4 { margin: 18px 0 6px; font-size: 13px; } h4 small { font-weight: 400; color: var(--soft); }
.method { font: 700 11px/1 ui-monospace, monospace; letter-spacing: .03em; padding: 5px 8px; border-radius: 5px; color: #fff; background: var(--soft); }
.method.get { background: var(--get); } .method.post { background: var(--post); } .method.put { background: var(--put); } .method.delete { background: var(--delete); }
@media (prefers-color-scheme: dark) { .method { color: #0b0e15; } }
nav .method { flex: none; width: 46px; padding: 3px 0; font-size: 9.5px; text-align: center; }
.public { margin-left: 10px; padding: 2px 8px; border-radius: 99px; font-size: 12px; font-weight: 400; color: var(--soft); border: 1px solid var(--line); }
table.fields { width: 100%; table-layout: fixed; border-collapse: collapse; } .fields th, .fields td { padding: 6px 0; text-align: left; vertical-align: top; border-top: 1px solid var(--line); font-weight: 400; }
.fields th { width: 38%; padding-right: 14px; overflow-wrap: anywhere; } .fields p { margin: 2px 0 0; font-size: 13.5px; } .type, .default { font-size: 13px; color: var(--soft); }
.default::before { content: " · "; } .required { margin-left: 3px; color: var(--delete); }
pre { margin: 0; padding: 12px 14px; overflow-x: auto; max-height: 420px; border-radius: 8px; color: var(--code-ink, #e6ebf5); background: var(--code); }
pre + pre { margin-top: 8px; } details { margin-top: 10px; } details summary { cursor: pointer; color: var(--soft); font-size: 13.5px; }
.errors { color: var(--soft); font-size: 13px; } [hidden] { display: none !important; }
@media (max-width: 1100px) { .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } }
@media (max-width: 760px) { nav { position: static; width: auto; max-height: 45vh; border-right: 0; } main { margin: 0; padding: 24px 18px 80px; } }
`

/** The filter of the list; without it the page is whole. */
const script = `
const box = document.querySelector('nav input')
box.addEventListener('input', () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean)
  for (const item of document.querySelectorAll('[data-search]')) {
    item.hidden = !words.every((word) => item.dataset.search.includes(word))
  }
  for (const group of document.querySelectorAll('[data-group]')) {
    group.hidden = !group.querySelector('[data-search]:not([hidden])')
  }
})
`

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
