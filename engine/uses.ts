/**
 * What is limited over all nodes: each node counts for itself, and tells the others what it has counted, a few times a
 * second, all of it together and straight to them; nothing is written. Counts that a node misses, because it has just
 * started or does not answer, are lost to it. A process that has the store for itself tells nobody.
 */
import type { Nodes } from './store/slots.ts'

/** By developer, address, address and key, or developer and host. Of `streams` the number is how many are open. */
export type UseKind = 'calls' | 'forms' | 'wrong key' | 'right key' | 'login' | 'check' | 'streams'

/** `from`: id of the node that has counted. */
type UseListener = (name: string, by: number, from: string) => void

export interface Uses {
  /** How many nodes there are, this one included. */
  nodes(): number
  /** Whether the node of this id is there. */
  has(id: string): boolean
  /** Tells other nodes what this node has counted. */
  tell(kind: UseKind, name: string, by?: number): void
  /** Calls back with what others have counted. */
  hear(kind: UseKind, listener: UseListener): void
}

export const ownUses: Uses = { nodes: () => 1, has: () => false, tell: () => undefined, hear: () => undefined }

/** Between two tellings: for each node that is told, and at most. */
const everyMs = { node: 100, most: 1000 }
/** In one telling; what comes beyond is not told. */
const most = 10_000

export interface ToldUses {
  readonly from: string
  readonly uses: readonly (readonly [UseKind, string, number])[]
}

export interface SharedUses extends Uses {
  /** Takes the counts of another node. */
  heard(told: ToldUses): void
}

interface Deps {
  readonly nodes: Pick<Nodes, 'id' | 'has' | 'others'>
  /** The other nodes. false: one of them did not answer. */
  readonly tellAll: (told: ToldUses) => Promise<boolean>
}

export function createUses({ nodes, tellAll }: Deps): SharedUses {
  const listeners = new Map<UseKind, UseListener[]>()
  const untold = new Map<string, [UseKind, string, number]>()
  let timer: NodeJS.Timeout | null = null

  /** Tellings go one after the other: an old number must not come after a newer one. */
  async function flush(): Promise<void> {
    const told = [...untold]
    untold.clear()
    const isHeard = await tellAll({ from: nodes.id, uses: told.map(([, use]) => use) })
    timer = null
    // A number stands until the next one: it is told once more, unless there is a newer one.
    for (const [key, use] of isHeard ? [] : told) if (use[0] === 'streams' && !untold.has(key)) untold.set(key, use)
    if (untold.size > 0) plan()
  }

  function plan(): void {
    timer ??= setTimeout(() => void flush(), Math.min(everyMs.most, everyMs.node * nodes.others().length)).unref()
  }

  function tell(kind: UseKind, name: string, by = 1): void {
    if (nodes.others().length === 0) return
    const key = `${kind} ${name}`
    const before = untold.get(key)?.[2] ?? 0
    if (untold.size < most || untold.has(key)) untold.set(key, [kind, name, kind === 'streams' ? by : before + by])
    plan()
  }

  return {
    nodes: () => nodes.others().length + 1,
    has: (id) => nodes.has(id),
    tell,
    hear: (kind, listener) => void listeners.set(kind, [...(listeners.get(kind) ?? []), listener]),
    heard({ from, uses }) {
      for (const [kind, name, by] of uses) for (const one of listeners.get(kind) ?? []) one(name, by, from)
    },
  }
}
