/**
 * Virtual time for a whole process: timers and the clock stand still until a test lets time pass, and then the clock
 * jumps from timer to timer as soon as the process has nothing else to do. Sockets and databases are real. The process
 * has nothing to do when several turns of the event loop in a row bring no activity: what a test reports with
 * `active()`, work between `begin` and its end, everybody's setImmediate, and bytes on their way between two sockets of
 * the process.
 *
 * performance.now() stays real: it measures processor time.
 */
import { subscribe } from 'node:diagnostics_channel'
import { syncBuiltinESMExports } from 'node:module'
import type { Socket } from 'node:net'
import timers from 'node:timers/promises'

interface Timer {
  readonly at: number
  readonly order: number
  readonly everyMs: number | null
  readonly run: () => void
}

export interface VirtualTime {
  now(): number
  /** Something happened: the process is not idle. */
  active(): void
  /** Work of which the event loop sees nothing. Answers its end. */
  begin(): () => void
  /** Until the process has nothing to do. Time stands still. */
  settle(): Promise<void>
  /** Lets this much time pass. */
  pass(ms: number): Promise<void>
  /** Lets time pass until the work ends, at most so much. */
  passUntil<T>(work: Promise<T>, mostMs: number): Promise<T>
  /** Forgets all timers: what they belonged to is over. */
  clear(): void
}

/** Bytes that are not read for longer than this, in real time, wait for something else. */
const onTheWayMs = 100

/** Of this process, while they are open. */
function trackSockets(): { readonly areQuiet: () => boolean } {
  const [clients, servers] = [new Set<Socket>(), new Set<Socket>()]
  for (const [name, all] of [
    ['net.client.socket', clients],
    ['net.server.socket', servers],
  ] as const)
    subscribe(name, (message) => {
      const { socket } = message as { readonly socket: Socket }
      all.add(socket)
      socket.once('close', () => all.delete(socket))
    })
  return {
    areQuiet() {
      const byPort = new Map(Array.from(servers, (socket) => [socket.remotePort, socket]))
      return clients.values().every((client) => {
        if (client.connecting) return false
        const server = byPort.get(client.localPort)
        if (server === undefined) return client.destroyed
        return client.bytesWritten === server.bytesRead && server.bytesWritten === client.bytesRead
      })
    },
  }
}

/** Turns of the event loop without activity after which the process counts as idle. */
const idleTurns = 4

/** For the rest of the process's life: no test of another file may run in it. */
export function installVirtualTime(start: number): VirtualTime {
  const realImmediate = globalThis.setImmediate
  const RealDate = globalThis.Date
  let now = start
  let order = 0
  let activity = 0
  let underWay = 0
  const pending = new Map<object, Timer>()
  const sockets = trackSockets()

  function add(run: () => void, ms: number, everyMs: number | null, key: object): object {
    order += 1
    pending.set(key, { at: now + Math.max(1, Math.ceil(ms)), order, everyMs, run })
    return key
  }

  function handle(): NodeJS.Timeout {
    const key = {
      ref: () => key,
      unref: () => key,
      hasRef: () => true,
      refresh() {
        const timer = pending.get(key)
        if (timer !== undefined) pending.set(key, { ...timer, at: now + (timer.everyMs ?? 1) })
        return key
      },
      close: () => void pending.delete(key),
      [Symbol.toPrimitive]: () => order,
      [Symbol.dispose]: () => void pending.delete(key),
    }
    return key as unknown as NodeJS.Timeout
  }

  const later = (work: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    add(() => work(...args), ms, null, handle())
  const every = (work: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    add(() => work(...args), ms, Math.max(1, ms), handle())
  const forget = (key?: object): void => void pending.delete(key ?? {})

  function sleep<T>(ms = 0, value?: T, options: { readonly signal?: AbortSignal } = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      const { signal } = options
      if (signal?.aborted) {
        reject(signal.reason as Error)
        return
      }
      const key = later(() => resolve(value as T), ms)
      signal?.addEventListener('abort', () => {
        forget(key)
        reject(signal.reason as Error)
      })
    })
  }

  /** Everybody's but ours. */
  function immediate(work: (...args: unknown[]) => void, ...args: unknown[]): NodeJS.Immediate {
    activity += 1
    return realImmediate(() => {
      activity += 1
      work(...args)
    })
  }

  class VirtualDate extends RealDate {
    constructor(...args: readonly unknown[]) {
      super(...((args.length === 0 ? [now] : args) as [number]))
    }
    static override now(): number {
      return now
    }
  }

  function timeout(ms: number): AbortSignal {
    const over = new AbortController()
    later(() => over.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms)
    return over.signal
  }

  Object.assign(globalThis, { setTimeout: later, setInterval: every, clearTimeout: forget, clearInterval: forget })
  Object.assign(globalThis, { setImmediate: immediate, Date: VirtualDate })
  Object.assign(timers, { setTimeout: sleep })
  Object.assign(AbortSignal, { timeout })
  syncBuiltinESMExports()

  const turn = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve))

  async function settle(): Promise<void> {
    let busyAt = performance.now()
    for (let quiet = 0; quiet < idleTurns;) {
      const before = activity
      await turn()
      if (activity !== before || underWay > 0) busyAt = performance.now()
      const isQuiet = sockets.areQuiet() || performance.now() - busyAt > onTheWayMs
      quiet = activity === before && underWay === 0 && isQuiet ? quiet + 1 : 0
    }
  }

  function first(): [object, Timer] | null {
    let found: [object, Timer] | null = null
    for (const one of pending) {
      const [, timer] = one
      if (found === null || timer.at < found[1].at || (timer.at === found[1].at && timer.order < found[1].order))
        found = one
    }
    return found
  }

  /** Runs the first timer, when it is due by then. */
  function runFirst(until: number): boolean {
    const next = first()
    if (next === null || next[1].at > until) return false
    const [key, timer] = next
    now = Math.max(now, timer.at)
    if (timer.everyMs === null) pending.delete(key)
    else pending.set(key, { ...timer, at: now + timer.everyMs })
    timer.run()
    return true
  }

  return {
    now: () => now,
    active: () => void (activity += 1),
    begin() {
      underWay += 1
      let isOver = false
      return () => {
        if (!isOver) underWay -= 1
        isOver = true
        activity += 1
      }
    },
    settle,
    async pass(ms) {
      const until = now + ms
      await settle()
      while (runFirst(until)) await settle()
      now = until
    },
    async passUntil(work, mostMs) {
      const over = new AbortController()
      const end = (): void => over.abort()
      work.then(end, end)
      const until = now + mostMs
      await settle()
      while (!over.signal.aborted && runFirst(until)) await settle()
      if (!over.signal.aborted) throw new Error(`not over within ${mostMs} ms`)
      return work
    },
    clear: () => pending.clear(),
  }
}
