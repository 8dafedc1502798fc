/** Settings that operators change while the service runs: the pace of a host, and retention times. They are stored. */
import { createExclusive } from './scheduling.ts'
import type { Config, ConfigKey } from './config.ts'
import type { Store } from './store/port.ts'

export const retentionKeys = {
  changes: 'MAILROOM_CHANGE_RETENTION',
  deliveries: 'MAILROOM_DELIVERY_RETENTION',
  calls: 'MAILROOM_CALL_LOG_RETENTION',
  audit: 'MAILROOM_AUDIT_RETENTION',
} as const satisfies Readonly<Record<string, ConfigKey>>

export type Kept = keyof typeof retentionKeys
export const keptNames = Object.keys(retentionKeys) as readonly Kept[]

const paceOf = 'pace:'

/** The configuration; the values of operators replace those of the environment. */
export function settableConfig(config: Config, values: ReadonlyMap<string, number>): Config {
  const settable = Object.values(retentionKeys).map((key) => [
    key,
    { enumerable: true, get: () => values.get(key) ?? config[key] },
  ])
  return Object.defineProperties({ ...config }, Object.fromEntries(settable) as PropertyDescriptorMap)
}

export type Settings = ReturnType<typeof createSettings>

interface Deps {
  readonly store: Pick<Store, 'settings' | 'nodes'>
  /** Values of retention times, by setting. */
  readonly values: Map<string, number>
  /** Logins a minute at a host; null = as configured. */
  readonly setPace: (host: string, pace: number | null) => void
}

export function createSettings({ store: { settings, nodes }, values, setPace }: Deps) {
  const inForce = new Set<string>()
  /** In order, so that an older read of the settings never wins over a newer one. */
  const inOrder = createExclusive()
  function apply(id: string, value: number | null): void {
    if (value === null) inForce.delete(id)
    else inForce.add(id)
    if (id.startsWith(paceOf)) setPace(id.slice(paceOf.length), value)
    else if (value === null) values.delete(id)
    else values.set(id, value)
  }
  async function set(id: string, value: number | null): Promise<void> {
    await inOrder(async () => {
      await (value === null ? settings.remove(id) : settings.put({ id, value, setAt: Date.now() }))
      apply(id, value)
    })
    await nodes.tell({ what: 'settings', id })
  }
  return {
    /** Applies the stored settings, at start and after a change by another node. */
    load: (): Promise<void> =>
      inOrder(async () => {
        const stored = new Map((await settings.list()).map(({ id, value }) => [id, value]))
        for (const id of inForce) if (!stored.has(id)) apply(id, null)
        for (const [id, value] of stored) apply(id, value)
      }),
    /** Sets the logins a minute of a host: 0 = none, null = as configured. */
    pace: (host: string, pace: number | null) => set(paceOf + host, pace),
    /** Sets a retention time; null = as configured. A shorter time removes rows for good. */
    keep: (what: Kept, ms: number | null) => set(retentionKeys[what], ms),
    /** Whether an operator has set this retention time. */
    isSet: (what: Kept): boolean => values.has(retentionKeys[what]),
  }
}
