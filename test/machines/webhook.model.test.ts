/**
 * Random lives of a webhook. The reference counts in its own words: a failing period begins with the third failed round
 * in a row (or a permanent failure) and ends with a success or ACTIVATE; each is announced exactly once, and again when
 * it has lasted for abandonMs, and when the receiver answers 410. One failure tells at most one thing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { settle } from './rig.ts'
import { settings as usual, webhookRig, type WebhookRig } from './webhook-rig.ts'

/** Short enough for these lives to get there. */
const settings = { ...usual, abandonMs: 2 * 3_600_000 }

const failures = fc.record({
  retryAfterMs: fc.option(fc.nat(7_200_000)),
  jitter: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  permanent: fc.oneof(
    { weight: 15, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom('gone' as const, 'redirect' as const) },
  ),
})

const steps = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('fail' as const), failure: failures, patient: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('fail row' as const), failure: failures }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(2_400_000) }) },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'deliver' as const,
        'nothing' as const,
        'until probe' as const,
        'until probe' as const,
        'WAKE' as const,
        'ACTIVATE' as const,
        'DEACTIVATE' as const,
        'stray delivery' as const,
        'probe breaks' as const,
      ),
    }),
  },
)

type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never
type Told =
  { kind: 'success' | 'cleared' } | { kind: 'failure'; permanent: FailureStep['permanent']; at: number } | null

/** Does the step, and says what the webhook was told about its receiver. */
async function take(rig: WebhookRig, step: Step): Promise<Told> {
  // Patient: a webhook that waits is let to try first.
  if (step.do === 'fail' && step.patient) await rig.untilProbe()
  const told = tell(rig, step)
  if (step.do === 'pass') await rig.pass(step.ms)
  if (step.do === 'until probe') await rig.untilProbe()
  await settle()
  return told
}

function tell(rig: WebhookRig, step: Step): Told {
  const at = rig.now()
  const { tags } = rig.actor.getSnapshot()
  switch (step.do) {
    case 'fail':
      return fail(rig, step.failure)
    case 'fail row':
      if (!tags.has('draining')) return null
      rig.drain.last().sendBack({ type: 'row.failed', failure: rig.failure(plain(step.failure)) })
      return { kind: 'failure', permanent: step.failure.permanent, at }
    case 'deliver':
      if (tags.has('draining')) rig.drain.last().sendBack({ type: 'delivered', at })
      else if (tags.has('probing')) rig.probe.last().resolve({ delivered: true, at })
      else return null
      return { kind: 'success' }
    case 'nothing':
      if (tags.has('draining')) rig.drain.last().sendBack({ type: 'idle', at })
      else if (tags.has('probing')) rig.probe.last().resolve({ delivered: null, at })
      return null
    case 'probe breaks':
      rig.probe.calls.at(-1)?.reject(new Error('the store is away'))
      return null
    case 'WAKE':
    case 'DEACTIVATE':
      rig.actor.send({ type: step.do })
      return null
    case 'ACTIVATE':
      rig.actor.send({ type: 'ACTIVATE', now: at, jitter: 0.5 })
      return { kind: 'cleared' }
    case 'stray delivery':
      rig.actor.send({ type: 'delivered', at })
      return tags.has('active') ? { kind: 'success' } : null
    case 'pass':
    case 'until probe':
      return null
  }
}

type FailureStep = Extract<Step, { do: 'fail' }>['failure']

function plain({ permanent, ...rest }: FailureStep) {
  return permanent === undefined ? rest : { ...rest, permanent }
}

function fail(rig: WebhookRig, failure: FailureStep): Told {
  const { tags } = rig.actor.getSnapshot()
  const told: Told = { kind: 'failure', permanent: failure.permanent, at: rig.now() }
  if (tags.has('draining')) {
    rig.drain.last().sendBack({ type: 'delivery.failed', failure: rig.failure(plain(failure)) })
    return told
  }
  if (!tags.has('probing')) return null
  rig.probe.last().resolve({ delivered: false, failure: rig.failure(plain(failure)) })
  return told
}

const healths = ['healthy', 'retrying', 'failed'] as const
const works = ['draining', 'waiting', 'probing', 'resting', 'recovering', 'paused'] as const

function assertTagged(rig: WebhookRig): void {
  const { tags } = rig.actor.getSnapshot()
  const exactlyOne = (names: readonly string[]) => names.filter((name) => tags.has(name as never)).length === 1
  assert.ok(exactlyOne(healths) && exactlyOne(works) && exactlyOne(['active', 'paused']), rig.tags())
  assert.equal(tags.has('failed'), rig.health().failure)
  assert.equal(tags.has('active'), rig.context().active)
  assert.equal(rig.drain.runs.filter(({ stopped }) => !stopped).length, tags.has('draining') ? 1 : 0)
}

test('whatever happens, the promises hold', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 60 }), async (life) => {
      const rig = webhookRig({ input: { settings } })
      let row = 0
      let failing = false
      let periods = 0
      let since: number | null = null
      let abandoned = false
      let told = 0
      for (const step of life) {
        const probes = rig.probe.calls.length
        const { retryAt } = rig.health()
        const { tags } = rig.actor.getSnapshot()
        const waited = tags.has('waiting')
        const heard = await take(rig, step)
        if (heard?.kind === 'failure') {
          row += 1
          since ??= heard.at
          const tooLong: boolean = heard.at - since >= settings.abandonMs
          const begins: boolean =
            !failing && (heard.permanent !== undefined || tooLong || row >= settings.announceAfter)
          if (begins) periods += 1
          failing ||= begins
          if (begins || heard.permanent === 'gone' || (tooLong && !abandoned)) told += 1
          abandoned ||= tooLong
        } else if (heard) {
          row = 0
          since = null
          failing = false
          abandoned = false
        }
        assertTagged(rig)
        assert.equal(rig.health().failure, failing)
        assert.equal(rig.announced().length, periods, 'one announcement for each failing period')
        assert.equal(rig.health().failureVersion, told)
        assert.equal(rig.health().abandonedAt !== null, abandoned)
        assert.equal(rig.health().consecutiveFailures, row)
        if (waited && rig.probe.calls.length > probes) {
          assert.ok((rig.probe.calls[probes]?.at ?? 0) >= (retryAt ?? 0), 'no try before its time')
        }
      }
      const announced = rig.report.calls.flatMap(({ input }) => input.announcements.map(({ version }) => version))
      assert.deepEqual(
        announced,
        Array.from({ length: told }, (_, index) => index + 1),
        'each stored once',
      )
      assert.deepEqual(rig.errors, [])
      rig.actor.send({ type: 'STOP' })
      await settle()
      assert.equal(rig.actor.getSnapshot().status, 'done')
    }),
    { numRuns: 200 },
  )
})
