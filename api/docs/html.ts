/** HTML pages that need nothing from the network: escaping, the little CommonMark of descriptions, style, headers. */
import { createHash } from 'node:crypto'

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | readonly Html[] | string | number | null | undefined | false

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(strings.reduce((text, string, index) => text + show(pieces[index - 1]) + string))
}

function show(piece: Piece): string {
  if (piece === null || piece === undefined || piece === false) return ''
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map((part) => part.text).join('')
  return String(piece).replace(/[&<>"']/g, (sign) => entities[sign] ?? sign)
}

export function inline(text: string): Html {
  const pieces = text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (piece.startsWith('`')) return html`<code>${piece.slice(1, -1)}</code>`
    if (piece.startsWith('**')) return html`<strong>${piece.slice(2, -2)}</strong>`
    return html`${piece}`
  })
  return html`${pieces}`
}

export function paragraphs(text: string): Html[] {
  return text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)
}

const basics = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6678; --line: #e3e7ee; --paper: #fff; --panel: #f6f8fb; --accent: #2457d6;
  --code: #101828; --code-ink: #e6ebf5; --get: #0a7d55; --post: #2457d6; --put: #a05a00; --delete: #c0273d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f2; --soft: #9aa6ba; --line: #2a3242; --paper: #12161f; --panel: #181e2a;
  --accent: #86a8ff; --code: #0b0e15; --get: #3fc893; --post: #86a8ff; --put: #e6a957; --delete: #ff7d8e; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 16px; }
body { margin: 0; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink); background: var(--paper); }
code, pre { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
`

export const style = `${basics}
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

/** Of a page that says one thing. */
const smallStyle = `${basics}
body { display: grid; place-items: center; min-height: 100vh; padding: 24px; background: var(--panel); }
main { width: 100%; max-width: 560px; padding: 34px 40px; border: 1px solid var(--line); border-radius: 14px; background: var(--paper); }
h1 { margin: 0 0 6px; font-size: 26px; letter-spacing: -.01em; }
p { margin: 0 0 18px; color: var(--soft); } p:last-child { margin: 0; }
ul { margin: 0; padding: 0; list-style: none; }
li { border-top: 1px solid var(--line); }
li a { display: flex; justify-content: space-between; gap: 18px; padding: 11px 2px; text-decoration: none; color: var(--accent); }
li a:hover { text-decoration: underline; } li span { color: var(--soft); }
`

/** The filter of the list; without it the page is whole. */
export const script = `
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

export function pageHeaders(style: string, script?: string): Readonly<Record<string, string>> {
  const allowed = [
    `default-src 'none'`,
    `style-src '${hashOf(style)}'`,
    ...(script === undefined ? [] : [`script-src '${hashOf(script)}'`]),
    `base-uri 'none'`,
    `form-action 'none'`,
    `frame-ancestors 'none'`,
  ]
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': allowed.join('; '),
    'Referrer-Policy': 'no-referrer',
  }
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

export function wholePage(title: string, style: string, body: Html): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${new Html(`<style>${style}</style>`)}
      </head>
      <body>
        ${body}
      </body>
    </html>`
  return page.text
}

export const smallPageHeaders = pageHeaders(smallStyle)

/** A page that says one thing. */
export function renderSmallPage(title: string, content: Html): string {
  return wholePage(title, smallStyle, html`<main>${content}</main>`)
}
