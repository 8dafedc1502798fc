/** Runs one scenario: a mailbox, what happens to it, and a quiet point at the end. */
import { fullCapabilities, plainCapabilities } from '../../../support/imap-server/index.ts'
import type { Store } from '../../../../engine/store/port.ts'
import type { VirtualTime } from '../../../support/virtual-time.ts'
import { letter, take } from './deeds.ts'
import type { Scenario } from './steps.ts'
import { openWorld } from './world.ts'

const capabilitiesOf: Record<Scenario['server'], readonly string[]> = {
  all: fullCapabilities,
  gmail: [...fullCapabilities, 'X-GM-EXT-1'],
  notify: [...fullCapabilities, 'NOTIFY'],
  'no uidplus': fullCapabilities.filter((name) => name !== 'UIDPLUS'),
  idle: [...plainCapabilities, 'IDLE'],
  plain: plainCapabilities,
}

const settingsOf: Record<Scenario['reading'], Readonly<Record<string, string>>> = {
  'at once': {},
  paged: { MAILROOM_SYNC_BATCH: '2' },
  slow: { MAILROOM_SYNC_BATCH: '1', MAILROOM_BACKFILL_PAUSE: '50s' },
}

export async function run(store: Store, time: VirtualTime, scenario: Scenario): Promise<void> {
  const world = await openWorld({
    time,
    store,
    capabilities: capabilitiesOf[scenario.server],
    settings: settingsOf[scenario.reading],
  })
  try {
    const { server, truth } = world
    for (const [path, count] of [
      ['INBOX', scenario.inbox],
      ['Archive', scenario.archive],
    ] as const)
      for (let n = 1; n <= count; n += 1) {
        const at = time.now() - 86_400_000 + n * 1000
        server.append('ann', path, letter(`${path.slice(0, 1)}${n}`, at), [], new Date(at))
      }
    world.begin()
    if (scenario.synced) await world.quiet()
    for (const [number, { step, after, wait }] of scenario.steps.entries()) {
      if (after === null) await take(world, step, number)
      else world.after(after, () => take(world, step, number))
      truth.see()
      if (wait) await time.settle()
    }
    await world.quiet()
    // What is not told again.
    await time.pass(200_000)
    await world.quiet()
  } finally {
    await world.close()
  }
}
