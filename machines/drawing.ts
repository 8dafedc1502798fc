/**
 * How a chart is drawn: the arrows that stand for its transitions, and where states and arrows lie. The places are in
 * layout.json, which `npm run docs` writes.
 */
import layouts from './layout.json' with { type: 'json' }
import { charts, type ChartState, type ChartTransition } from './view.ts'

export interface Arrow {
  /** Paths of states. */
  readonly from: string
  readonly to: string
  /** Transitions of `from`, and of states inside of it. */
  readonly transitions: readonly (Pick<ChartTransition, 'event'> & { readonly from: string })[]
}

/** In pixels, from the upper left corner. */
export interface Layout {
  readonly width: number
  readonly height: number
  /** By path: left, top, width, height. */
  readonly states: Readonly<Record<string, readonly number[]>>
  /** By 'from>to'. `label`: left and top. */
  readonly arrows: Readonly<Record<string, ArrowPlace>>
}

export interface ArrowPlace {
  /** Path data of SVG. */
  readonly line: string
  readonly head: string
  readonly label: readonly number[]
}

export type Drawing = ReturnType<typeof drawingOf>

const known: Readonly<Record<string, Layout>> = layouts

export const drawings = Object.fromEntries(
  Object.entries(charts).map(([name, chart]) => [name, drawingOf(chart, known[name])]),
) as Readonly<Record<keyof typeof charts, Drawing>>

const noLayout: Layout = { width: 0, height: 0, states: {}, arrows: {} }

export function drawingOf(chart: ChartState, layout = noLayout) {
  return { chart, arrows: arrowsOf(chart), layout }
}

/** The events of an arrow, each once; those without a name are left out. */
export function eventsOf({ transitions }: Arrow): string[] {
  return [...new Set(transitions.map(({ event }) => event))].filter((event) => event !== '')
}

export function statesOf(node: ChartState): ChartState[] {
  return [node, ...node.children.flatMap(statesOf)]
}

/** One arrow from a state to another one, whatever the events are. */
export function arrowsOf(chart: ChartState): Arrow[] {
  const states = new Map(statesOf(chart).map((state) => [state.path, state]))
  const transitions = [...states.values()].flatMap(({ path, transitions: own }) =>
    own.flatMap(({ event, targets }) => targets.map((to) => ({ from: path, event, to }))),
  )
  const arrows = Map.groupBy(transitions, ({ from, to }) => `${startOf(states, from, to)}>${to}`)
  return Array.from(arrows, ([key, all]) => {
    const [from = '', to = ''] = key.split('>')
    return { from, to, transitions: all.map(({ from, event }) => ({ from, event })) }
  })
}

/** A parent whose children all lead to the same state, or which leads there itself, has the arrow in their place. */
function startOf(states: ReadonlyMap<string, ChartState>, from: string, to: string): string {
  const above = from.split('.').slice(0, -1).join('.')
  const parent = states.get(above)
  if (above === '' || parent === undefined || isIn(to, above) || !leadsTo(parent, to)) return from
  return startOf(states, above, to)
}

function leadsTo({ type, transitions, children }: ChartState, to: string): boolean {
  if (transitions.some(({ targets }) => targets.includes(to))) return true
  return children.length > 0 && type !== 'parallel' && children.every((child) => leadsTo(child, to))
}

function isIn(path: string, outer: string): boolean {
  return `${path}.`.startsWith(`${outer}.`)
}
