/** What the server says unasked: EXISTS, EXPUNGE, FETCH FLAGS, VANISHED, BYE. Accepted at any time, in any state. */
import type { SessionEvent } from '../session-types.ts'
import type { Wire } from './client.ts'
import type { Facts } from './facts.ts'
import { readFetch, type FetchItems } from './fetched.ts'
import { countOf } from './sets.ts'
import { sequence, statusText, text, type StatusText } from './tokens.ts'

export interface Events {
  listen(listener: (event: SessionEvent) => void): void
  emit(event: SessionEvent): void
  /** A FETCH that no command asked for. */
  flagsTold(items: FetchItems): void
  /** Told of every message that leaves the open mailbox; answers how to stop being told. */
  onExpunge(listener: () => void): () => void
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

/** Of `3:5,9`; 0 when it is no such set. */
function vanishedCount(set: string): number {
  return /^\d{1,10}(?::\d{1,10})?(?:,\d{1,10}(?::\d{1,10})?)*$/.test(set) ? countOf(set, null) : 0
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
  // However many it names: one fact. Nobody asks for EARLIER, which QRESYNC would tell.
  handlers['VANISHED'] = ({ attributes = [] }) => {
    const gone = vanishedCount(text(attributes[0]) ?? '')
    if (gone === 0 || !facts.selected) return
    facts.count(Math.max(0, facts.selected.exists - gone))
    events.emit({ type: 'expunge', uid: null })
  }
  handlers['FETCH'] = (response) => events.flagsTold(readFetch(response))
  // imapflow would add each to a list that nobody reads.
  handlers['CAPABILITY'] = wire.sectionHandlers['CAPABILITY'] = null
  handlers['BYE'] = (response) => onBye(statusText(response))
}
