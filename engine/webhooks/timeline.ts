/** When a webhook was switched on and off and its filters were edited: what it was like when an event came. */
import type { WebhookRecord } from '../store/records.ts'

type Dated = Pick<WebhookRecord, 'switches' | 'editedAt'>
type Edit = Partial<Pick<WebhookRecord, (typeof judging)[number] | 'active'>>

/** The newest are kept. */
const mostSwitches = 20

/** What decides which messages match. */
const judging = ['filters', 'receiveAllChanges', 'receiveDrafts'] as const

/** What an edit adds to the record: nothing when it changes nothing of this. */
export function dated(before: WebhookRecord, patch: Edit, now: number): Dated {
  const edited = judging.some((key) => key in patch && JSON.stringify(patch[key]) !== JSON.stringify(before[key]))
  const switched = patch.active !== undefined && patch.active !== before.active
  const next = { active: patch.active ?? before.active, at: now }
  return {
    ...(edited ? { editedAt: now } : {}),
    ...(switched ? { switches: [...(before.switches ?? []), next].slice(-mostSwitches) } : {}),
  }
}

/** null = too long ago, not known any more. Switches alternate: what was before the first one is its opposite. */
export function activeAt({ switches = [], active }: WebhookRecord, at: number): boolean | null {
  const last = switches.findLast((one) => one.at <= at)
  if (last !== undefined) return last.active
  const [first] = switches
  if (first === undefined) return active
  return switches.length < mostSwitches ? !first.active : null
}
