/** The Grafana dashboard and the Prometheus rules name metrics that there are, with labels that these have. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { createMetrics } from '../../engine/observe/metrics.ts'

const docs = join(import.meta.dirname, '../../docs')
const read = (name: string): string => readFileSync(join(docs, name), 'utf8')

interface Panel {
  readonly id: number
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const { panels } = JSON.parse(read('grafana.json')) as { panels: Panel[] }
const shown = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const))
const alerts = [...read('prometheus-rules.yml').matchAll(/- alert: (\w+)\n +expr: (.+)\n/g)].map(
  ([, name = '', expr = '']) => [name, expr] as const,
)

const { registry } = createMetrics({ ownsProcess: true })
const labelsOf = new Map(
  registry.getMetricsAsArray().map((metric) => {
    const { labelNames } = registry.getSingleMetric(metric.name) as unknown as { labelNames: readonly string[] }
    return [metric.name, labelNames] as const
  }),
)
/** What Prometheus itself adds. */
const added = ['job', 'instance', 'le']

function baseOf(name: string): string {
  return labelsOf.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '')
}

function check(expr: string): void {
  const used = [...expr.matchAll(/\b((?:mailroom|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)]
  assert(used.length > 0 || expr.startsWith('up{'), expr)
  const known = new Set(added)
  for (const [, name = '', selector = ''] of used) {
    const labels = labelsOf.get(baseOf(name))
    assert(labels !== undefined, `${name}: no such metric`)
    for (const label of labels) known.add(label)
    for (const [, label = ''] of selector.matchAll(/(\w+)\s*[=!]~?/g))
      assert([...labels, ...added].includes(label), `${name} has no label ${label}`)
  }
  for (const [, names = ''] of expr.matchAll(/\bby \(([^)]*)\)/g))
    for (const label of names.split(/, */)) assert(known.has(label), `by (${label}): none of ${expr} has it`)
}

suite('dashboard and alerts', () => {
  for (const [name, expr] of [...shown, ...alerts]) test(`${name}: ${expr}`, () => check(expr))

  test('a metric or label that is not there is noticed', () => {
    for (const expr of ['mailroom_none', 'sum by (tag) (mailroom_ready)', 'mailroom_ready{tag="ok"}'])
      assert.throws(() => check(expr), expr)
  })

  test('the dashboard shows every metric of ours, in panels with ids of their own', () => {
    const missing = [...labelsOf.keys()].filter(
      (name) => name.startsWith('mailroom_') && !shown.some(([, expr]) => expr.includes(name)),
    )
    assert.deepEqual(missing, [])
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  })

  test('one process of a job that serves is enough: another one may stand by', () => {
    const [, expr] = alerts.find(([name]) => name === 'MailroomNotReady') ?? []
    assert.equal(expr, 'max by (job) (mailroom_ready) == 0')
  })

  test('each alert is explained in operations.md, and nothing else is', () => {
    const explained = [...read('operations.md').matchAll(/^### (Mailroom\w+)$/gm)].map(([, name = '']) => name)
    assert(alerts.length > 10)
    assert.deepEqual(
      explained,
      alerts.map(([name]) => name),
    )
  })
})
