/** A state chart as nested boxes, drawn from the machine's own tree, with the active states lit. */
import type { ChartState } from '../../engine/index.ts'
import { html, type Html } from '../html.ts'
import type { Visit } from './frame.ts'
import { scrolling, table } from './parts.ts'

export function chartCard(root: ChartState, active: readonly string[], live: Visit['live']): Html {
  return html`<section class="card">
    <h2>Chart</h2>
    ${live('chart', chart(root, active))}
    <details>
      <summary>What leads on from here</summary>
      ${scrolling('Transitions', live('ways', waysOut(root, active)))}
    </details>
  </section>`
}

function chart(root: ChartState, active: readonly string[]): Html {
  const lit = litOf(active)
  return html`<div class="inner">${root.children.map((child) => box(child, lit))}</div>`
}

/** The active states and all that they are in. */
function litOf(active: readonly string[]): ReadonlySet<string> {
  return new Set(
    active.flatMap((path) => path.split('.').map((_part, index, parts) => parts.slice(0, index + 1).join('.'))),
  )
}

function box({ path, type, children }: ChartState, lit: ReadonlySet<string>): Html {
  const on = lit.has(path) ? 'on' : ''
  const leaf = children.length === 0 ? 'leaf' : ''
  return html`<div class="state ${type} ${on} ${leaf}" data-state="${path}">
    ${nameOf(path)}${on !== '' && html`<span class="away">, active</span>`}
    ${children.length > 0 && html`<div class="inner">${children.map((child) => box(child, lit))}</div>`}
  </div>`
}

function nameOf(path: string): string {
  return path.split('.').at(-1) ?? path
}

/** What may happen now: the transitions of the states that are active. */
function waysOut(root: ChartState, active: readonly string[]): Html {
  const lit = litOf(active)
  const rows = allOf(root)
    .filter(({ path }) => lit.has(path))
    .flatMap(({ path, transitions }) =>
      transitions
        .filter(({ targets }) => targets.length > 0)
        .map(({ event, targets, guard }) => [
          html`<code>${nameOf(path)}</code>`,
          html`<code>${event === '' ? 'at once' : event}</code>${guard !== null && html` <small>if ${guard}</small>`}`,
          html`<code>${targets.map((target) => withoutTrunk(target)).join(', ')}</code>`,
        ]),
    )
  return table(['In', 'When', 'It goes to'], rows, 'Nothing leads on from here.')
}

function withoutTrunk(path: string): string {
  return path.replace(/^running\./, '')
}

function allOf(node: ChartState): ChartState[] {
  return [node, ...node.children.flatMap(allOf)]
}

export const statesOf = (root: ChartState): string[] => root.children.flatMap(allOf).map(({ path }) => path)
