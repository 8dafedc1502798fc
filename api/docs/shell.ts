/** What every HTML page is in: the document around its body, and the headers that let it run its own style and script alone. */
import { createHash } from 'node:crypto'
import { html, Html } from './html.ts'
import { smallStyle } from './style.ts'

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
