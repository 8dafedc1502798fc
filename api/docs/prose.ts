/** The little of CommonMark that descriptions are written in: paragraphs, `code` and **strong**. */
import { html, type Html } from './html.ts'

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
