/** Draws the state chart of a machine. Active states, last transitions and running timers of an actor are marked. */
import { type Arrow, type Drawing, eventsOf, statesOf } from '../../engine/index.ts'
import type { AccountDetail } from '../admin/account.ts'
import { html, type Html } from '../html.ts'
import type { Visit } from './frame.ts'
import { card, scrolling, table } from './parts.ts'

type Marks = Pick<AccountDetail, 'active' | 'last' | 'timers'>

/** The chart, and a table of the transitions that are possible now. */
export function chartCard(title: string, drawing: Drawing, marks: Marks, live: Visit['live']): Html {
  const legend = html`<p class="soft legend">
    <b class="on">Active states</b> <b class="lit">Last transition of each region</b> <b class="runs">Running timers</b>
  </p>`
  const ways = html`<details>
    <summary>Transitions from here</summary>
    ${scrolling('Transitions', live('ways', waysOut(drawing, litOf(marks.active))))}
  </details>`
  const chart = scrolling('Chart', live('chart', chartSvg(title, drawing, marks)), 'wide')
  return card('Chart', html`${legend} ${chart} ${ways}`)
}

function waysOut({ chart }: Drawing, lit: ReadonlySet<string>): Html {
  const ways = statesOf(chart)
    .filter(({ path }) => lit.has(path))
    .flatMap(({ path, transitions }) => transitions.map((transition) => ({ path, ...transition })))
    .filter(({ targets }) => targets.length > 0)
  return table(ways, 'There is no transition from here.', {
    State: ({ path }) => html`<code>${nameOf(path)}</code>`,
    Event: ({ event, guard }) =>
      html`<code>${event === '' ? 'at once' : event}</code>${guard !== null && html` <small>if ${guard}</small>`}`,
    'Next state': ({ targets }) =>
      html`<code>${targets.map((path) => path.replace(/^running\./, '')).join(', ')}</code>`,
  })
}

const nothing: Marks = { active: [], last: [], timers: [] }

export function chartSvg(title: string, { chart, arrows, layout }: Drawing, marks: Marks = nothing): Html {
  const lit = litOf(marks.active)
  const drawn = arrows.flatMap((arrow) => {
    const place = layout.arrows[`${arrow.from}>${arrow.to}`]
    return place === undefined ? [] : [{ place, ...marksOf(arrow, marks) }]
  })
  // SVG draws in this order: marked arrows last, so that no other arrow crosses them.
  const lines = drawn.toSorted((one, other) => one.name.length - other.name.length).map(line)
  const states = statesOf(chart).flatMap(({ path, children }) => {
    const place = layout.states[path]
    return place === undefined ? [] : [box(path, place, children.length === 0, lit.has(path))]
  })
  return html`<svg class="chart" viewBox="0 0 ${layout.width} ${layout.height}" width="${layout.width}" role="img">
    <title>${title}</title>
    <desc>${descriptionOf(marks)}</desc>
    ${lines} ${states} ${drawn.map(labels)}
  </svg>`
}

/** Paths of the active states and of their parent states. */
function litOf(active: readonly string[]): ReadonlySet<string> {
  const upwards = (path: string): string[] =>
    path.split('.').map((_, index, parts) => parts.slice(0, index + 1).join('.'))
  return new Set(active.flatMap(upwards))
}

function nameOf(path: string): string {
  return path.split('.').at(-1) ?? path
}

function descriptionOf({ active, last }: Marks): string {
  const ways = last.map(
    ({ from, event, to }) => `${nameOf(from)} to ${nameOf(to)}${event === '' ? '' : ` by ${event}`}`,
  )
  return `Active: ${active.map(nameOf).join(', ') || 'none'}. Last transitions: ${ways.join(', ') || 'none'}.`
}

function marksOf(arrow: Arrow, { last, timers }: Marks) {
  const { to, transitions } = arrow
  const is = (one: { readonly from: string; readonly event: string }): boolean =>
    transitions.some(({ from, event }) => from === one.from && event === one.event)
  const taken = last.find((one) => one.to === to && is(one))
  const timer = timers.find(is)
  return { arrow, taken, timer, name: [taken && 'lit', timer && 'runs'].filter(Boolean).join(' ') }
}

type Drawn = ReturnType<typeof marksOf> & { readonly place: Drawing['layout']['arrows'][string] }

function line({ arrow: { from, to }, place, name }: Drawn): Html {
  return html`<g class="${name}" data-arrow="${from}>${to}"
    ><path d="${place.line}" /><path class="head" d="${place.head}"
  /></g>`
}

function labels({ arrow, place: { label }, taken, timer }: Drawn): Html {
  const [left = 0, top = 0] = label
  const rows = eventsOf(arrow).map((event, index) => {
    const at = timer?.event === event && html` <tspan data-until="${timer.at}">${hour(timer.at)}</tspan>`
    const name = taken?.event === event ? 'lit' : at !== false && 'runs'
    return html`<tspan class="${name}" x="${left + 3}" y="${top + 11 + index * 13}">${event}${at}</tspan>`
  })
  return html`<text class="label">${rows}</text>`
}

const hour = (at: number): string => new Date(at * 1000).toISOString().slice(11, 19)

function box(path: string, place: readonly number[], isLeaf: boolean, isOn: boolean): Html {
  const [left = 0, top = 0, width = 0, height = 0] = place
  const [x, y] = isLeaf ? [left + width / 2, top + height / 2 + 4.5] : [left + 12, top + 20]
  return html`<g class="${isLeaf ? 'leaf' : 'outer'}${isOn && ' on'}" data-state="${path}">
    <rect x="${left}" y="${top}" width="${width}" height="${height}" rx="8" /><text x="${x}" y="${y}"
      >${nameOf(path)}</text
    >
  </g>`
}
