/**
 * Counts for limits that hold over all nodes. A node sends its new counts straight to the other nodes, a few times a
 * second and all together; the store is not used. A node that is starting or does not answer loses these counts.
 */
import type { Nodes } from './store/slots.ts'

/**
 * Names are developers, addresses, addresses with keys, or hosts. `streams` is the number of open ones.
 */
export type UseKind = 'calls' | 'forms' | 'wrong key' | 'right key' | 'login' | 'streams'

/** `from`: id of the counting node. */
type UseListener = (name: string, by: number, from: string) => void

export type Uses = ReturnType<typeof createUses>

/** The counts of a process without other nodes. */
export const ownUses = createUses({
  nodes: { id: '', has: () => false, others: () => [] },
  tellAll: () => Promise.resolve(true),
})

/** Time between two tellings: per other node, and at most. */
const everyMs = { node: 100, most: 1000 }
/** Counts in one telling; further ones are dropped. */
const most = 10_000

export interface ToldUses {
  readonly from: string
  readonly uses: readonly (readonly [UseKind, string, number])[]
}

interface Deps {
  readonly nodes: Pick<Nodes, 'id' | 'has' | 'others'>
  /** Tells the other nodes. Returns whether all have answered. */
  readonly tellAll: (told: ToldUses) => Promise<boolean>
}

export function createUses({ nodes, tellAll }: Deps) {
  const listeners = new Map<UseKind, UseListener[]>()
  const untold = new Map<string, [UseKind, string, number]>()
  let timer: NodeJS.Timeout | null = null

  /** Tellings run one after the other, so that an older number of `streams` never comes after a newer one. */
  async function flush(): Promise<void> {
    const told = [...untold]
    untold.clear()
    const isHeard = await tellAll({ from: nodes.id, uses: told.map(([, use]) => use) })
    timer = null
    // A number of `streams` is valid until the next one, so a lost one is told again unless a newer one waits.
    for (const [key, use] of isHeard ? [] : told) if (use[0] === 'streams' && !untold.has(key)) untold.set(key, use)
    if (untold.size > 0) plan()
  }

  function plan(): void {
    timer ??= setTimeout(() => void flush(), Math.min(everyMs.most, everyMs.node * nodes.others().length)).unref()
  }

  /** Sends a count of this node to the other nodes. */
  function tell(kind: UseKind, name: string, by = 1): void {
    if (nodes.others().length === 0) return
    const key = `${kind} ${name}`
    const before = untold.get(key)?.[2] ?? 0
    if (untold.size < most || untold.has(key)) untold.set(key, [kind, name, kind === 'streams' ? by : before + by])
    plan()
  }

  return {
    /** Number of nodes, this one included. */
    nodes: () => nodes.others().length + 1,
    /** Whether the node of this id is there. */
    has: (id: string) => nodes.has(id),
    tell,
    /** Calls `listener` with the counts of other nodes. */
    hear: (kind: UseKind, listener: UseListener): void =>
      void listeners.set(kind, [...(listeners.get(kind) ?? []), listener]),
    /** Takes the counts of another node. */
    heard({ from, uses }: ToldUses): void {
      for (const [kind, name, by] of uses) for (const one of listeners.get(kind) ?? []) one(name, by, from)
    },
  }
}
