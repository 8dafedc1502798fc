/** What the server says unasked: EXISTS, EXPUNGE, FETCH FLAGS, VANISHED, BYE. Accepted at any time, in any state. */
import type { SessionEvent } from '../session-types.ts'
import type { Wire } from './client.ts'
import type { Facts } from './facts.ts'
import { readFetch, type FetchItems } from './fetched.ts'
import { sequence, statusText, text, type StatusText } from './tokens.ts'

export interface Events {
  listen(listener: (event: SessionEvent) => void): void
  emit(event: SessionEvent): void
  /** A FETCH that no command asked for. */
  flagsTold(items: FetchItems): void
  /** Told of every message that leaves the open mailbox; answers how to stop being told. */
  onExpunge(listener: () => void): () => void
}

/** A VANISHED that names more than this says "read anew" just as well. */
const mostVanished = 100_000

function* expand(set: string): Generator<number> {
  let count = 0
  for (const part of set.split(',')) {
    const match = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(part)
    if (!match) continue
    const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])]
    for (let uid = Math.min(from, to); uid <= Math.max(from, to) && count < mostVanished; uid += 1) {
      count += 1
      yield uid
    }
  }
}

export function createEvents(facts: Facts): Events {
  let listener: ((event: SessionEvent) => void) | null = null
  const expungeListeners = new Set<() => void>()

  function emit(event: SessionEvent): void {
    if (event.type === 'expunge') for (const told of [...expungeListeners]) told()
    listener?.(event)
  }

  return {
    listen(next) {
      listener = next
    },
    emit,
    flagsTold({ uid, flags, modseq }) {
      if (flags !== null && facts.selected) emit({ type: 'flags', uid, flags, modseq })
    },
    onExpunge(told) {
      expungeListeners.add(told)
      return () => expungeListeners.delete(told)
    },
  }
}

/** Takes over imapflow's handlers: after the login nothing but this speaks for the server. */
export function installHandlers(wire: Wire, facts: Facts, events: Events, onBye: (said: StatusText) => void): void {
  const handlers = wire.untaggedHandlers
  handlers['EXISTS'] = (response) => {
    const count = sequence(response)
    if (count === null || !facts.selected) return
    // Some servers repeat it with every NOOP.
    if (count === facts.selected.exists) return
    facts.count(count)
    events.emit({ type: 'exists', count })
  }
  handlers['EXPUNGE'] = (response) => {
    if (sequence(response) === null || !facts.selected) return
    facts.count(Math.max(0, facts.selected.exists - 1))
    events.emit({ type: 'expunge', uid: null })
  }
  handlers['VANISHED'] = ({ attributes = [] }) => {
    const earlier = Array.isArray(attributes[0])
    for (const uid of expand(text(attributes[earlier ? 1 : 0]) ?? '')) {
      if (!facts.selected) return
      if (!earlier) facts.count(Math.max(0, facts.selected.exists - 1))
      events.emit({ type: 'expunge', uid })
    }
  }
  handlers['FETCH'] = (response) => events.flagsTold(readFetch(response))
  handlers['BYE'] = (response) => onBye(statusText(response))
}
