/** Makes HTML pages that load nothing: escaping, the little CommonMark of descriptions, style, headers. */
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

/** The beginning of every page's style. */
export const basics = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6678; --line: #e3e7ee; --paper: #fff; --panel: #f6f8fb; --accent: #2457d6;
  --code: #101828; --code-ink: #e6ebf5; --get: #0a7d55; --post: #2457d6; --put: #a05a00; --delete: #c0273d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9f2; --soft: #9aa6ba; --line: #2a3242; --paper: #12161f; --panel: #181e2a;
  --accent: #86a8ff; --code: #0b0e15; --get: #3fc893; --post: #86a8ff; --put: #e6a957; --delete: #ff7d8e; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 16px; }
body { margin: 0; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink); background: var(--paper); }
code, pre { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
`

/** Style of a page with one message. */
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

/**
 * `forms`: the page sends forms to this service and hears its events. `pictures`: their source in the form of CSP; null
 * = the page has none.
 */
export function pageHeaders(
  style: string,
  script?: string,
  forms = false,
  pictures: string | null = null,
): Readonly<Record<string, string>> {
  const allowed = [
    `default-src 'none'`,
    `style-src '${hashOf(style)}'`,
    ...(script === undefined ? [] : [`script-src '${hashOf(script)}'`]),
    ...(pictures === null ? [] : [`img-src ${pictures}`]),
    `base-uri 'none'`,
    ...(forms ? [`connect-src 'self'`, `form-action 'self'`] : [`form-action 'none'`]),
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

interface Head {
  readonly language?: string
  readonly more?: Html
}

export function wholePage(title: string, style: string, body: Html, { language = 'en', more }: Head = {}): string {
  const page = html`<!doctype html>
    <html lang="${language}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${new Html(`<style>${style}</style>`)} ${more}
      </head>
      <body>
        ${body}
      </body>
    </html>`
  return page.text
}

export const smallPageHeaders = pageHeaders(smallStyle)

/** A page with one message. */
export function renderSmallPage(title: string, content: Html): string {
  return wholePage(title, smallStyle, html`<main>${content}</main>`)
}
