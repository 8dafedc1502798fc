/** The OpenAPI document as pages that load nothing: /docs has quick start and all operations, /docs/<task> a part. */
import { basics, html, Html, pageHeaders, paragraphs, wholePage } from '../html.ts'
import type { OpenApi } from '../openapi.ts'
import { callbacksTag, type Entry, type Group, methodMark, referenceOf } from './entries.ts'
import { quickStart } from './quick-start.ts'

const style = `${basics}
a { color: inherit; text-decoration: none; }
nav { position: fixed; inset: 0 auto 0 0; width: 310px; overflow-y: auto; padding: 22px 16px; border-right: 1px solid var(--line); background: var(--panel); }
nav h1 { font-size: 19px; margin: 0 8px 2px; } nav p { margin: 0 8px 14px; color: var(--soft); font-size: 13px; }
nav input { width: 100%; padding: 8px 10px; margin-bottom: 10px; border: 1px solid var(--line); border-radius: 8px; font: inherit; color: inherit; background: var(--paper); }
nav h2 { margin: 16px 8px 4px; font-size: 11.5px; letter-spacing: .07em; text-transform: uppercase; color: var(--soft); }
nav li a { display: flex; gap: 8px; align-items: baseline; padding: 3px 8px; border-radius: 6px; font-size: 13.5px; }
nav li a:hover { background: var(--line); }
nav > ul > li > a { font-size: 15px; } nav [aria-current] { font-weight: 600; background: var(--line); } ul.links { margin: 0; padding: 0; list-style: none; }
main { overflow-wrap: anywhere; margin-left: 310px; padding: 34px 44px 120px; max-width: 1440px; }
main > header, .start { max-width: 760px; } main h1 { margin: 0 0 6px; font-size: 30px; letter-spacing: -.01em; }
.base { display: inline-block; padding: 3px 10px; border-radius: 6px; background: var(--panel); border: 1px solid var(--line); }
main h2 { margin: 54px 0 0; padding-bottom: 8px; font-size: 22px; border-bottom: 2px solid var(--line); }
.operation { padding: 26px 0 30px; border-bottom: 1px solid var(--line); }
.operation h3 { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; margin: 0 0 4px; font-weight: 500; }
.operation h3 code { min-width: 0; font-size: 15px; overflow-wrap: anywhere; } var { font-style: normal; color: var(--accent); }
.summary { margin: 0 0 6px; font-weight: 600; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 36px; }
h4 { margin: 18px 0 6px; font-size: 13px; } h4 small { font-weight: 400; color: var(--soft); }
b[class] { flex: none; font: 700 11px/1 ui-monospace, monospace; letter-spacing: .03em; padding: 5px 8px; border-radius: 5px; color: #fff; background: var(--soft); }
b.get { background: var(--get); } b.post { background: var(--post); } b.put { background: var(--put); } b.delete { background: var(--delete); }
@media (prefers-color-scheme: dark) { b[class] { color: #0b0e15; } }
nav b[class] { width: 46px; padding: 3px 0; font-size: 9.5px; text-align: center; }
.public { margin-left: 10px; padding: 2px 8px; border-radius: 99px; font-size: 12px; font-weight: 400; color: var(--soft); border: 1px solid var(--line); }
table.fields { width: 100%; table-layout: fixed; border-collapse: collapse; } .fields th, .fields td { padding: 6px 0; text-align: left; vertical-align: top; border-top: 1px solid var(--line); font-weight: 400; }
.fields th { width: 38%; padding-right: 14px; overflow-wrap: anywhere; font: 13px/1.75 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; } .fields p { margin: 2px 0 0; font-size: 13.5px; }
.fields i { font-size: 13px; font-style: normal; color: var(--soft); } .fields b { color: var(--delete); }
pre { margin: 0; padding: 12px 14px; white-space: pre-wrap; border-radius: 8px; color: var(--code-ink, #e6ebf5); background: var(--code); }
pre + pre { margin-top: 8px; } details { margin-top: 10px; } details summary { cursor: pointer; color: var(--soft); font-size: 13.5px; }
main ul.links a { display: flex; gap: 10px; align-items: baseline; padding: 4px 0; } main ul.links a:hover, main p a { text-decoration: underline; } main ul.links b { width: 60px; text-align: center; }
.start li { margin-top: 18px; } .start li p, .start > p { margin: 0 0 8px; } h3.task { margin: 26px 0 6px; font-size: 16px; } h3.task a { text-decoration: underline; }
.common { margin: 12px 0 0; color: var(--soft); font-size: 13px; } [hidden] { display: none !important; }
@media (max-width: 1100px) { .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } }
@media (max-width: 760px) { nav { position: static; width: auto; max-height: 45vh; border-right: 0; } main { margin: 0; padding: 24px 18px 80px; } }
`

/** Shows the operations that have all words of the search. Without a script all operations are shown. */
const script = `
const box = document.querySelector('#search')
const list = document.querySelector('#operations')
const find = () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean)
  const has = (item) => words.every((word) => (item.dataset.search + item.textContent).toLowerCase().includes(word))
  for (const item of list.querySelectorAll('[data-search]')) item.hidden = !has(item)
  for (const group of list.querySelectorAll('[data-group]')) group.hidden = !group.querySelector('[data-search]:not([hidden])')
  for (const rest of document.querySelectorAll('[data-rest]')) rest.hidden = words.length > 0
  const found = list.querySelectorAll('[data-search]:not([hidden])').length
  document.querySelector('#found').textContent = words.length === 0 ? '' : found + (found === 1 ? ' operation' : ' operations')
}
box.value ||= new URLSearchParams(location.search).get('search') ?? ''
box.addEventListener('input', find)
find()
`

export const docsHeaders = pageHeaders(style, script, true)

/** The formatter must not add white space to the script: the CSP has its hash. */
const scriptElement = new Html(`<script>${script}</script>`)

/** `name`: the last segment of the page's path. */
type Task = ReturnType<typeof tasksOf>[number]

type TasksByName = Readonly<Record<string, readonly [title: string, ...tags: string[]]>>

/** Title and tags of each task, by name. Every other tag has a page of its own. */
const tasks: TasksByName = {
  mailboxes: ['Connect mailboxes', 'Users', 'Email accounts', 'Connect tokens', 'Discovery', 'OAuth providers'],
  messages: ['Read and change mail', 'Folders', 'Messages', 'Attachments', 'Contacts'],
  webhooks: ['Webhooks', 'Webhooks', 'Application webhooks'],
  callbacks: ['Callbacks and signatures', callbacksTag],
  changes: ['Changes, logs, status', 'Changes', 'Application'],
  operations: ['Operate the service', 'Admin', 'system'],
}

function tasksOf(document: OpenApi) {
  const tags = [...document.tags.map(({ name }) => name), callbacksTag]
  const known = new Set(Object.values(tasks).flatMap(([, ...those]) => those))
  const former = tags.filter((tag) => tag.startsWith('2.0 '))
  const others = tags.filter((tag) => !known.has(tag) && !former.includes(tag))
  const all: TasksByName = {
    ...tasks,
    ...Object.fromEntries(others.map((tag) => [tag.toLowerCase().replaceAll(' ', '-'), [tag, tag]])),
    '2.0': ['The 2.0 API', ...former],
  }
  return Object.entries(all)
    .map(([name, [title, ...those]]) => ({ name, title, ...referenceOf(document, those) }))
    .filter(({ groups }) => groups.length > 0)
}

/** The text of each page, by name; '' is the first page. */
export function renderDocs(document: OpenApi): ReadonlyMap<string, string> {
  const all = tasksOf(document)
  const base = document.servers[0]?.url ?? ''
  const root = `${base === '' ? '' : new URL(base).pathname.replace(/\/$/, '')}/docs`
  const page = (name: string, title: string, content: Html): [string, string] => {
    const body = html`${navigation(root, all, name)}
      <main>${content}</main>
      ${name === '' && scriptElement}`
    return [name, compact(wholePage(`${title} · ${document.info.title}`, style, body))]
  }
  return new Map([
    page('', 'Documentation', firstPage(document, base, root, all)),
    ...all.map((task) => page(task.name, task.title, taskPage(task))),
  ])
}

function firstPage({ info }: OpenApi, base: string, root: string, all: readonly Task[]): Html {
  return html`<header data-rest>
      <h1>${info.title} API</h1>
      <p>${info.description.split('\n\n', 1)[0]} Base URL: <code class="base">${base}</code></p>
    </header>
    ${quickStart(base, root)}
    <section id="operations">
      <h2 id="reference">Reference by task</h2>
      <p id="found" role="status"></p>
      ${all.map(
        ({ name, title, groups }) =>
          html`<div data-group>
            <h3 class="task"><a href="${root}/${name}">${title}</a></h3>
            <ul class="links">
              ${groups.flatMap(({ entries }) => entries.map((entry) => link(entry, `${root}/${name}`)))}
            </ul>
          </div>`,
      )}
    </section>
    <section class="start" data-rest>
      <h2 id="rules">Rules of all calls</h2>
      ${paragraphs(info.description.split('\n\n').slice(1).join('\n\n'))}
    </section>`
}

function taskPage({ title, pathTable, groups }: Task): Html {
  const sections = groups.map(
    ({ tag, entries }) =>
      html`<h2>${tag}</h2>
        ${entries.map(({ id, content }) => html`<section class="operation" id="${id}">${content}</section>`)}`,
  )
  return html`<h1>${title}</h1>
    ${pathTable} ${sections}`
}

function navigation(root: string, all: readonly Task[], current: string): Html {
  const here = (name: string) => name === current && new Html('aria-current="page"')
  return html`<nav aria-label="Documentation">
    <h1>Mailroom</h1>
    <p>
      <a href="${root.slice(0, -'docs'.length)}openapi.json"><u>openapi.json</u></a>
    </p>
    <form action="${root}" role="search">
      <input type="search" id="search" name="search" placeholder="Search" aria-label="Search the operations" />
    </form>
    <ul class="links">
      <li><a href="${root}" ${here('')}>Quick start</a></li>
      ${all.map(
        ({ name, title, groups }) =>
          html`<li>
            <a href="${root}/${name}" ${here(name)}>${title}</a>
            ${name === current && groups.map(operationsOf)}
          </li>`,
      )}
    </ul>
  </nav>`
}

function operationsOf({ tag, entries }: Group): Html {
  return html`<h2>${tag}</h2>
    <ul class="links">
      ${entries.map((entry) => link(entry, ''))}
    </ul>`
}

/** A link to an entry; on the first page (`page` is not '') with the words for the search. */
function link({ id, method, words, summary }: Entry, page: string): Html {
  const search = page !== '' && html` data-search="${words}"`
  return html`<li${search}><a href="${page}#${id}">${method !== '' && methodMark(method)}${summary}</a></li>`
}

/** Removes white space, closing tags and escapes that a page does not need. */
function compact(page: string): string {
  const pieces = page.split(/(?=<(?:pre|style|script))|(?<=<\/(?:pre|style|script)>)/)
  return pieces.map(shortOf).join('')
}

function shortOf(piece: string): string {
  if (piece.startsWith('<pre')) return piece.replaceAll('&quot;', '"').replaceAll('&#39;', "'")
  if (/^<s(?:tyle|cript)/.test(piece)) return piece
  const lines = piece.replaceAll(/<\/(?:li|td|th|tr)>/g, '').replaceAll(/\n\s*/g, '\n')
  return lines.replaceAll('>\n<', '><')
}
