/** The HTML reference at /docs: the OpenAPI document as one page that needs nothing from the network. */
import type { OpenApi } from '../openapi.ts'
import { callbackLinks, callbackSection } from './callbacks.ts'
import type { Shown } from './curl.ts'
import { html, Html } from './html.ts'
import { operationSection } from './operation.ts'
import { paragraphs } from './prose.ts'
import type { Schemas } from './schema-view.ts'
import { pageHeaders, wholePage } from './shell.ts'
import { script, style } from './style.ts'

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
