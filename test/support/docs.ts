/**
 * The parts of the documents that are made from the code: the table of settings and the pictures of the two state
 * charts. `npm run docs` writes them between their markers; test/support/docs.test.ts fails when the two differ.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnyStateMachine, AnyStateNode } from 'xstate'
import { toDirectedGraph, type DirectedGraphNode } from 'xstate/graph'
import { configTable } from '../../engine/config.ts'
import { accountMachine } from '../../machines/account.machine.ts'
import { webhookMachine } from '../../machines/webhook.machine.ts'

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
    { file: 'docs/architecture.md', name: 'account', text: picture(accountMachine) },
    { file: 'docs/architecture.md', name: 'webhook', text: picture(webhookMachine) },
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

/** A Mermaid state diagram: every state and every transition of the machine. */
function picture(machine: AnyStateMachine): string {
  const lines = childrenOf(toDirectedGraph(machine), '  ')
  const arrows = arrowsOf(machine.root).map((arrow) => `  ${arrow}`)
  return ['```mermaid', 'stateDiagram-v2', ...lines, ...new Set(arrows), '```', ''].join('\n')
}

function childrenOf({ children, stateNode }: DirectedGraphNode, indent: string): string[] {
  const parallel = stateNode.type === 'parallel'
  return children.flatMap((child, index) => [
    ...(parallel && index > 0 ? [`${indent}--`] : []),
    ...(child.children.length === 0
      ? [`${indent}state "${child.stateNode.key}" as ${idOf(child.stateNode)}`]
      : [
          `${indent}state "${child.stateNode.key}" as ${idOf(child.stateNode)} {`,
          ...childrenOf(child, `${indent}  `),
          `${indent}}`,
        ]),
  ])
}

function arrowsOf(node: AnyStateNode): string[] {
  const transitions = [...node.transitions.values(), node.always ?? []].flat()
  const own = transitions.flatMap((transition) =>
    (transition.target ?? []).map((target: AnyStateNode) => `${idOf(node)} --> ${idOf(target)}${labelOf(transition)}`),
  )
  return [...own, ...Object.values(node.states).flatMap(arrowsOf)]
}

/** `xstate.after.wait.account.running` → `after wait`, `xstate.done.actor.connect` → `connect done`. */
function labelOf({ eventType }: { readonly eventType: string }): string {
  const [, kind, ...rest] = eventType.split('.')
  if (eventType === '') return ''
  if (!eventType.startsWith('xstate.')) return ` : ${eventType}`
  return kind === 'after' ? ` : after ${rest[0] ?? ''}` : ` : ${rest[1] ?? ''} ${kind === 'done' ? 'done' : 'failed'}`
}

function idOf({ path, machine }: AnyStateNode): string {
  return [machine.id, ...path].join('_')
}

if (import.meta.main) {
  for (const section of sections()) {
    const { text, from, to } = placeOf(section)
    writeFileSync(pathOf(section.file), text.slice(0, from) + section.text + text.slice(to))
  }
}
