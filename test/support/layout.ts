/**
 * Where the states and arrows of a chart lie, by the Eclipse Layout Kernel. Regions beside each other are laid out on
 * their own: the first one above, the others in a row below it.
 */
import ELK, { type ElkExtendedEdge, type ElkNode, type ElkPoint } from 'elkjs/lib/elk.bundled.js'
import { type Arrow, arrowsOf, type ArrowPlace, eventsOf, type Layout } from '../../machines/drawing.ts'
import type { ChartState } from '../../machines/view.ts'

const elk = new ELK.default()

/** The kernel reads them at each state that has others inside. */
const spacing = {
  'elk.spacing.nodeNode': '20',
  'elk.layered.spacing.nodeNodeBetweenLayers': '22',
  'elk.spacing.edgeNode': '12',
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.spacing.edgeEdge': '9',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '9',
  'elk.spacing.edgeLabel': '3',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.thoroughness': '80',
  'elk.layered.edgeLabels.centerLabelPlacementStrategy': 'TAIL_LAYER',
}
const whole = (direction: 'DOWN' | 'RIGHT') => ({
  ...spacing,
  'elk.algorithm': 'layered',
  'elk.direction': direction,
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.json.edgeCoords': 'ROOT',
  'elk.json.shapeCoords': 'ROOT',
  'elk.padding': '[top=1,left=1,bottom=1,right=1]',
})
/** Of a state that has others inside: its name stands at the top. */
const [top, side] = [32, 12]
const inside = { ...spacing, 'elk.padding': `[top=${top},left=${side},bottom=${side},right=${side}]` }

/** Widths of a character, as the style of the drawing has them at most. */
const [nameWidth, eventWidth, eventHeight] = [7.2, 6.4, 13]

interface Part {
  readonly width: number
  readonly height: number
  readonly nodes: readonly ElkNode[]
  readonly edges: readonly ElkExtendedEdge[]
}

export async function layoutOf(chart: ChartState): Promise<Layout> {
  const arrows = arrowsOf(chart)
  const split = chart.children.find(({ type }) => type === 'parallel')
  if (split === undefined) return placed([await laidOut(chart.children, arrows, 'DOWN')])
  const [first, ...others] = await Promise.all(
    split.children.map((region, index) => {
      const own = arrows.filter(({ from }) => `${from}.`.startsWith(`${region.path}.`))
      return laidOut([region], own, index === 0 ? 'DOWN' : 'RIGHT')
    }),
  )
  if (first === undefined) throw new Error(`${split.path} has no regions`)
  const below = top + first.height + side
  const row = others.map((part, index) => {
    const before = others.slice(0, index).reduce((sum, { width }) => sum + width + side, 0)
    return { part, left: side + before }
  })
  const right = Math.max(side + first.width, ...row.map(({ part, left }) => left + part.width)) + side
  const bottom = below + Math.max(0, ...others.map(({ height }) => height + side))
  const outer = arrows.filter(({ from }) => !from.includes('.'))
  const frame = await laidOut(chart.children, outer, 'DOWN', { id: split.path, width: right, height: bottom })
  const { x = 0, y = 0 } = frame.nodes.find(({ id }) => id === split.path) ?? {}
  const inner = [moved(first, x + side, y + top), ...row.map(({ part, left }) => moved(part, x + left, y + below))]
  return placed([frame, ...inner])
}

/** `closed`: a state whose inside is left out. */
async function laidOut(
  states: readonly ChartState[],
  arrows: readonly Arrow[],
  direction: 'DOWN' | 'RIGHT',
  closed?: ElkNode,
): Promise<Part> {
  const children = states.map((state) => (state.path === closed?.id ? closed : nodeOf(state)))
  const graph: ElkNode = { id: '', layoutOptions: whole(direction), children, edges: arrows.map(edgeOf) }
  const { width = 0, height = 0, children: nodes = [], edges = [] } = await elk.layout(graph)
  return { width, height, nodes: nodes.flatMap(allOf), edges }
}

function nodeOf({ path, children }: ChartState): ElkNode {
  const name = path.split('.').at(-1) ?? ''
  if (children.length > 0) return { id: path, layoutOptions: inside, children: children.map(nodeOf) }
  return { id: path, width: Math.max(60, Math.ceil(name.length * nameWidth) + 22), height: 28 }
}

function allOf(node: ElkNode): ElkNode[] {
  return [node, ...(node.children ?? []).flatMap(allOf)]
}

function edgeOf(arrow: Arrow): ElkExtendedEdge {
  const events = eventsOf(arrow)
  const width = Math.max(...events.map((event) => event.length * eventWidth)) + 6
  const labels = events.length === 0 ? [] : [{ text: '-', width, height: events.length * eventHeight + 2 }]
  return { id: `${arrow.from}>${arrow.to}`, sources: [arrow.from], targets: [arrow.to], labels }
}

function moved({ nodes, edges, ...size }: Part, x: number, y: number): Part {
  const at = <T extends { x?: number; y?: number }>(one: T): T => ({ ...one, x: (one.x ?? 0) + x, y: (one.y ?? 0) + y })
  return {
    ...size,
    nodes: nodes.map(at),
    edges: edges.map((edge) => ({
      ...edge,
      labels: (edge.labels ?? []).map(at),
      sections: (edge.sections ?? []).map((section) => ({
        ...section,
        startPoint: at(section.startPoint),
        bendPoints: (section.bendPoints ?? []).map(at),
        endPoint: at(section.endPoint),
      })),
    })),
  }
}

function placed(parts: readonly Part[]): Layout {
  const [{ width, height } = { width: 0, height: 0 }] = parts
  const boxes = parts.flatMap(({ nodes }) => nodes)
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    states: Object.fromEntries(
      boxes.map(({ id, x = 0, y = 0, width: w = 0, height: h = 0 }) => [id, [x, y, w, h].map(half)]),
    ),
    arrows: Object.fromEntries(parts.flatMap(({ edges }) => edges).map((edge) => [edge.id, arrowPlace(edge)])),
  }
}

function arrowPlace({ sections = [], labels = [] }: ElkExtendedEdge): ArrowPlace {
  const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [startPoint, ...bendPoints, endPoint])
  const { x = 0, y = 0 } = labels[0] ?? {}
  return { line: lineOf(points), head: headOf(points), label: labels.length === 0 ? [] : [x, y].map(half) }
}

const radius = 6

/** With round corners. */
function lineOf(points: readonly ElkPoint[]): string {
  return points
    .map((point, index) => {
      const [before, after] = [points[index - 1], points[index + 1]]
      if (before === undefined) return `M${spelled(point)}`
      if (after === undefined) return `L${spelled(point)}`
      return `L${spelled(towards(point, before))}Q${spelled(point)} ${spelled(towards(point, after))}`
    })
    .join('')
}

/** A point on the way to another one, at most half of it. */
function towards(from: ElkPoint, to: ElkPoint, by = radius): ElkPoint {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1
  const share = Math.min(by, length / 2) / length
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

const [headLength, headHalf] = [8, 3.5]

function headOf(points: readonly ElkPoint[]): string {
  const [before, end] = points.slice(-2)
  if (before === undefined || end === undefined) return ''
  const length = Math.hypot(end.x - before.x, end.y - before.y) || 1
  const [dx, dy] = [(end.x - before.x) / length, (end.y - before.y) / length]
  const corner = (turn: number): ElkPoint => ({
    x: end.x - dx * headLength + dy * headHalf * turn,
    y: end.y - dy * headLength - dx * headHalf * turn,
  })
  return `M${spelled(end)}L${spelled(corner(1))}L${spelled(corner(-1))}Z`
}

const half = (value: number): number => Math.round(value * 2) / 2
const spelled = ({ x, y }: ElkPoint): string => `${half(x)} ${half(y)}`
