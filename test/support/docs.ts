/**
 * The parts of the documents that are made from the code: the table of settings between its markers, the
 * pictures of the state charts, and where their parts lie. `npm run docs` writes them; test/support/docs.test.ts fails
 * when they differ from the code.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configTable } from '../../engine/config.ts'
import { drawingOf, type Layout } from '../../machines/drawing.ts'
import { charts } from '../../machines/view.ts'
import { chartSvg } from '../../api/console/chart.ts'
import { chartStyle } from '../../api/console/look.ts'
import { basics } from '../../api/html.ts'
import { layoutOf } from './layout.ts'

export interface Section {
  readonly file: string
  /** Of its markers; null = it is the whole file. */
  readonly name: string | null
  readonly text: string
}

/** Everything that is made from the code. */
export async function sections(): Promise<Section[]> {
  const names = Object.keys(charts) as (keyof typeof charts)[]
  const layouts = await Promise.all(names.map(async (name) => [name, await layoutOf(charts[name])] as const))
  return [
    { file: 'docs/configuration.md', name: 'settings', text: settings() },
    { file: 'machines/layout.json', name: null, text: json(Object.fromEntries(layouts)) },
    ...layouts.map(([name, layout]) => ({ file: `docs/${name}.svg`, name: null, text: picture(name, layout) })),
  ]
}

/** What stands between the markers of a section now. */
export function textInDocument(section: Section): string {
  const { text, from, to } = placeOf(section)
  return text.slice(from, to)
}

function placeOf({ file, name }: Section) {
  const text = existsSync(pathOf(file)) ? readFileSync(pathOf(file), 'utf8') : ''
  if (name === null) return { text, from: 0, to: text.length }
  const begin = `<!-- begin ${name}: written by npm run docs -->\n<!-- prettier-ignore-start -->\n`
  const from = text.indexOf(begin) + begin.length
  const to = text.indexOf(`<!-- prettier-ignore-end -->\n<!-- end ${name} -->`, from)
  if (from < begin.length || to < 0) throw new Error(`${file}: the markers of ${name} are gone`)
  return { text, from, to }
}

function pathOf(file: string): string {
  return join(import.meta.dirname, '../..', file)
}

/** Names and defaults are those of the code. A meaning is written into the document by hand, and kept. */
function settings(): string {
  const written = readFileSync(pathOf('docs/configuration.md'), 'utf8').matchAll(/^\| `(\w+)` \|[^|]*\| (.+) \|$/gm)
  const meanings = new Map(Array.from(written, ([, name, meaning]) => [name, meaning]))
  const rows = configTable().map(({ name, fallback }) => {
    const shown = fallback === '' ? '' : `\`${fallback}\``
    return `| \`${name}\` | ${shown} | ${meanings.get(name) ?? 'TODO'} |`
  })
  return ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n') + '\n'
}

/** The roots of the pages' style. */
const colours = `${basics.slice(0, basics.indexOf('* {'))}svg { background: var(--paper); }`

/** As the console draws it, with the colours of the viewer. */
function picture(name: keyof typeof charts, layout: Layout): string {
  const title = `State chart: ${name}`
  const svg = chartSvg(title, drawingOf(charts[name], layout)).text.replace(
    '<svg',
    '<svg xmlns="http://www.w3.org/2000/svg"',
  )
  const at = svg.indexOf('<title>')
  return `${svg.slice(0, at)}<style>${colours}${chartStyle}</style>\n${svg.slice(at)}\n`
}

/** A state or an arrow a line. */
function json(layouts: Readonly<Record<string, Layout>>): string {
  const rows = (values: object): string =>
    Object.entries(values)
      .map(([key, value]) => `\n      ${JSON.stringify(key)}: ${JSON.stringify(value)}`)
      .join(',')
  const text = Object.entries(layouts).map(([name, { width, height, states, arrows }]) => {
    const size = `"width": ${width},\n    "height": ${height}`
    return `  "${name}": {\n    ${size},\n    "states": {${rows(states)}\n    },\n    "arrows": {${rows(arrows)}\n    }\n  }`
  })
  return `{\n${text.join(',\n')}\n}\n`
}

if (import.meta.main) {
  for (const section of await sections()) {
    const { text, from, to } = placeOf(section)
    writeFileSync(pathOf(section.file), text.slice(0, from) + section.text + text.slice(to))
  }
}
