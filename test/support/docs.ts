/**
 * The parts of the documents that are made from the code: the table of settings and the pictures of the state
 * charts. `npm run docs` writes them between their markers; test/support/docs.test.ts fails when the two differ.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configTable } from '../../engine/config.ts'
import { charts, type ChartState } from '../../machines/view.ts'

export interface Section {
  readonly file: string
  /** Of its markers. */
  readonly name: string
  readonly text: string
}

/** Everything that is made from the code. */
export function sections(): Section[] {
  return [
    { file: 'docs/configuration.md', name: 'settings', text: settings() },
    { file: 'docs/architecture.md', name: 'account', text: picture('account') },
    { file: 'docs/architecture.md', name: 'webhook', text: picture('webhook') },
    { file: 'docs/architecture.md', name: 'connectToken', text: picture('connectToken') },
  ]
}

/** What stands between the markers of a section now. */
export function textInDocument(section: Section): string {
  const { text, from, to } = placeOf(section)
  return text.slice(from, to)
}

function placeOf({ file, name }: Section) {
  const text = readFileSync(pathOf(file), 'utf8')
  const begin = `<!-- begin ${name}: written by npm run docs -->\n<!-- prettier-ignore-start -->\n`
  const from = text.indexOf(begin) + begin.length
  const to = text.indexOf(`<!-- prettier-ignore-end -->\n<!-- end ${name} -->`, from)
  if (from < begin.length || to < 0) throw new Error(`${file}: the markers of ${name} are gone`)
  return { text, from, to }
}

function pathOf(file: string): string {
  return join(import.meta.dirname, '../..', file)
}

function settings(): string {
  const rows = configTable().map(({ name, fallback, meaning }) => {
    const shown = fallback === '' ? '' : `\`${fallback}\``
    return `| \`${name}\` | ${shown} | ${meaning.replaceAll('|', '\\|')} |`
  })
  return ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n') + '\n'
}

/** A Mermaid state diagram: every state and every transition of the chart. */
function picture(name: keyof typeof charts): string {
  const lines = childrenOf(name, charts[name], '  ')
  const arrows = arrowsOf(name, charts[name]).map((arrow) => `  ${arrow}`)
  return ['```mermaid', 'stateDiagram-v2', ...lines, ...new Set(arrows), '```', ''].join('\n')
}

function childrenOf(name: string, { type, children }: ChartState, indent: string): string[] {
  return children.flatMap((child, index) => {
    const state = `${indent}state "${child.path.split('.').at(-1) ?? ''}" as ${idOf(name, child.path)}`
    const inside = child.children.length === 0 ? [] : [...childrenOf(name, child, `${indent}  `), `${indent}}`]
    return [
      ...(type === 'parallel' && index > 0 ? [`${indent}--`] : []),
      inside.length === 0 ? state : `${state} {`,
      ...inside,
    ]
  })
}

function arrowsOf(name: string, { path, transitions, children }: ChartState): string[] {
  const own = transitions.flatMap(({ event, targets }) =>
    targets.map((to) => `${idOf(name, path)} --> ${idOf(name, to)}${event === '' ? '' : ` : ${event}`}`),
  )
  return [...own, ...children.flatMap((child) => arrowsOf(name, child))]
}

function idOf(name: string, path: string): string {
  return [name, ...path.split('.')].join('_')
}

if (import.meta.main) {
  for (const section of sections()) {
    const { text, from, to } = placeOf(section)
    writeFileSync(pathOf(section.file), text.slice(0, from) + section.text + text.slice(to))
  }
}
