/**
 * What is limited over all nodes: each node counts for itself, and tells the others what it has counted, a few times a
 * second, all of it together and straight to them; nothing is written. Counts that a node misses, because it has just
 * started or does not answer, are lost to it. A process that has the store for itself tells nobody.
 */
import type { RequestListener } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Logger } from './observe/log.ts'
import type { Peers } from './net/peers.ts'
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

const usesPath = '/uses'
/** Between two tellings: for each node that is told, and at most. */
const everyMs = { node: 100, most: 1000 }
/** In one telling; what comes beyond is not told. */
const most = 10_000

interface Told {
  readonly from: string
  readonly uses: readonly (readonly [UseKind, string, number])[]
}

interface Deps {
  readonly nodes: Pick<Nodes, 'id' | 'has' | 'others'>
  readonly peers: Pick<Peers, 'tell'>
  readonly log: Logger
}

export function createUses({ nodes, peers, log }: Deps) {
  const listeners = new Map<UseKind, UseListener[]>()
  const untold = new Map<string, [UseKind, string, number]>()
  let timer: NodeJS.Timeout | null = null

  function flush(): void {
    timer = null
    const body = Buffer.from(JSON.stringify({ from: nodes.id, uses: [...untold.values()] } satisfies Told))
    untold.clear()
    for (const address of nodes.others()) void peers.tell(address, usesPath, body)
  }

  const uses: Uses = {
    nodes: () => nodes.others().length + 1,
    has: (id) => nodes.has(id),
    tell(kind, name, by = 1) {
      const others = nodes.others().length
      if (others === 0) return
      const key = `${kind} ${name}`
      const before = untold.get(key)?.[2] ?? 0
      if (untold.size < most || untold.has(key)) untold.set(key, [kind, name, kind === 'streams' ? by : before + by])
      timer ??= setTimeout(flush, Math.min(everyMs.most, everyMs.node * others)).unref()
    },
    hear: (kind, listener) => void listeners.set(kind, [...(listeners.get(kind) ?? []), listener]),
  }
  return {
    ...uses,
    /** Takes what other nodes tell; all else is the listener's. */
    before: (listener: RequestListener): RequestListener => {
      return (request, response) => {
        if (request.url !== usesPath) {
          listener(request, response)
          return
        }
        json(request)
          .then((told) => {
            const { from, uses: heard } = told as Told
            for (const [kind, name, by] of heard) for (const one of listeners.get(kind) ?? []) one(name, by, from)
            response.writeHead(204).end()
          })
          .catch((error: unknown) => {
            log.warn({ err: error }, 'what another node has counted was not understood')
            response.destroy()
          })
      }
    },
  }
}
