/** docs/kubernetes.yaml: Kubernetes knows every field and takes every value, and the parts fit each other. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { validate as deployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment'
import { validate as autoscaler } from 'kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler'
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service'
import { validate as policy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy'
import { validate as budget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../engine/config.ts'
import { createMetrics } from '../../engine/observe/metrics.ts'

interface Validator {
  (data: unknown): boolean
  errors?: readonly { readonly instancePath: string; readonly message?: string; readonly keyword: string }[] | null
}

const validators = new Map(
  Object.entries({
    Deployment: deployment,
    HorizontalPodAutoscaler: autoscaler,
    NetworkPolicy: policy,
    PodDisruptionBudget: budget,
    Service: service,
  }) as [string, Validator][],
)

/** The value, and the paths of fields that nobody has read of it. */
function watched(value: unknown, at: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  const parts = Object.entries(value).map(([name, part]) => [name, watched(part, `${at}.${name}`, unread)] as const)
  if (!Array.isArray(value)) for (const [name] of parts) unread.add(`${at}.${name}`)
  const copy: object = Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts)
  return new Proxy(copy, {
    get(target, name) {
      unread.delete(`${at}.${String(name)}`)
      return Reflect.get(target, name) as unknown
    },
  })
}

/** A validator reads the fields that it knows: the others are mistakes, which the cluster would leave out or refuse. */
function problems(document: { readonly kind?: unknown }): string[] {
  const kind = String(document.kind)
  const validate = validators.get(kind)
  assert(validate !== undefined, `no schema for ${kind}`)
  const unread = new Set<string>()
  const isValid = validate(watched(document, kind, unread))
  const wrong = isValid ? [] : (validate.errors ?? []).map(({ instancePath, keyword }) => `${instancePath} ${keyword}`)
  return [...wrong, ...[...unread].map((path) => `${path} is not known`)]
}

const text = readFileSync(join(import.meta.dirname, '../../docs/kubernetes.yaml'), 'utf8')

interface Port {
  readonly name: string
  readonly containerPort: number
}
interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly ports: readonly Port[]
}
interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: Record<string, never> & {
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] }
    }
  }
}

const manifests = (): Manifest[] => parseAllDocuments(text).map((document) => document.toJS() as Manifest)
const one = (kind: string): Manifest => {
  const found = manifests().find((manifest) => manifest.kind === kind)
  assert(found !== undefined, kind)
  return found
}

suite('docs/kubernetes.yaml', () => {
  for (const manifest of manifests())
    test(`${manifest.kind} is valid, without a field that Kubernetes does not know`, () => {
      assert.deepEqual(problems(manifest), [])
    })

  for (const [name, from, to] of [
    ['a wrong value', 'replicas: 3', 'replicas: three'],
    ['a misspelt field', 'readinessProbe:', 'readynessProbe:'],
    [
      'a field in the wrong place',
      '  minReadySeconds: 15\n',
      '  minReadySeconds: 15\n  terminationGracePeriodSeconds: 60\n',
    ],
  ] as const)
    test(`${name} would be found`, () => {
      const [changed] = parseAllDocuments(text.replace(from, to))
      assert.notDeepEqual(problems(changed?.toJS() as Manifest), [])
    })

  test('names settings that there are, and gives the end the time that it may take', () => {
    const { terminationGracePeriodSeconds, containers } = one('Deployment').spec.template.spec
    const [{ env, ports }] = containers
    const given = Object.fromEntries(env.map(({ name, value }) => [name, value ?? '10.0.0.1']))
    const config = readConfig(given)
    for (const name of Object.keys(given)) assert(name in config, name)
    const endMs = config.MAILROOM_DRAIN_WAIT + 2000 + 3 * config.MAILROOM_SHUTDOWN_TIMEOUT
    assert(terminationGracePeriodSeconds * 1000 > endMs, `${endMs} ms`)
    const portOf = (name: string) => ports.find((port) => port.name === name)?.containerPort
    assert.deepEqual(
      [portOf('api'), portOf('admin'), portOf('nodes')],
      [config.MAILROOM_PORT, config.MAILROOM_ADMIN_PORT, config.MAILROOM_NODE_PORT],
    )
  })

  test('scales by a metric that there is, to as many pods as the plan of docs/scale.md has', async () => {
    const { metrics, maxReplicas } = one('HorizontalPodAutoscaler').spec as unknown as {
      readonly maxReplicas: number
      readonly metrics: readonly { readonly pods?: { readonly metric: { readonly name: string } } }[]
    }
    const name = metrics.flatMap(({ pods }) => pods?.metric.name ?? [])[0]
    assert(name !== undefined)
    const plan = readFileSync(join(import.meta.dirname, '../../docs/scale.md'), 'utf8')
    const planned = Number(/start with (\d+)/.exec(plan)?.[1])
    assert(maxReplicas >= planned, `${planned} pods`)
    const exposed = await createMetrics({ accountTags: () => new Map() }).registry.metrics()
    assert.match(exposed, new RegExp(`^# TYPE ${name} gauge$`, 'm'))
  })
})
