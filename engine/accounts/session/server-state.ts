/**
 * One session's knowledge of its server: offered capabilities, those refused all the same, and the open mailbox. Takes
 * unsolicited responses (EXISTS, EXPUNGE, FETCH FLAGS, VANISHED, BYE) at any time, in any state.
 */
import type { SelectedMailbox, SessionCapabilities, SessionEvent } from '../session-types.ts'
import type { Wire } from './below.ts'
import { createNamed, readVanished } from './qresync.ts'
import { readFetch, type FetchItems, sequence, statusText, type StatusText } from './responses.ts'
import { countOf } from './uids.ts'

/** Commands and items that a server may refuse although it advertises them. */
type Optional = 'modseq' | 'vanished' | 'identity' | 'listReturn' | 'move'

export type Facts = ReturnType<typeof createFacts>

export function createFacts(capabilities: ReadonlyMap<string, unknown>) {
  const refused = new Set<Optional>()
  let listener: ((event: SessionEvent) => void) | null = null
  let selected: SelectedMailbox | null = null
  let withModseqs = false
  let expunged = 0
  const vanished = createNamed()

  function emit(event: SessionEvent): void {
    if (event.type === 'expunge') expunged += 1
    listener?.(event)
  }

  return {
    offers: (capability: string): boolean => capabilities.has(capability),
    refused: (kind: Optional): boolean => refused.has(kind),
    refuse: (kind: Optional): void => void refused.add(kind),
    /**
     * 'UID MOVE Archive': the last one was answered with COPYUID. So if the next one is not, there was no such message.
     */
    toldPlaces: new Set<string>(),
    /** NOTIFY is on: an unsolicited STATUS of any folder may come. */
    hearsAll: false,
    get selected(): SelectedMailbox | null {
      return selected
    },
    select(mailbox: SelectedMailbox, noModseq: boolean): void {
      selected = mailbox
      withModseqs = !noModseq
    },
    get modseqs(): boolean {
      return withModseqs && capabilities.has('CONDSTORE') && !refused.has('modseq')
    },
    /** UIDs that have vanished from the open mailbox (QRESYNC). */
    vanished,
    get namesVanished(): boolean {
      return capabilities.has('QRESYNC') && capabilities.has('ENABLE') && !refused.has('vanished')
    },
    deselect(): void {
      selected = null
      vanished.clear()
    },
    learn(of: Partial<Pick<SelectedMailbox, 'uidNext' | 'exists'>>): void {
      if (selected) selected = { ...selected, ...of }
    },
    listen(next: (event: SessionEvent) => void): void {
      listener = next
    },
    emit,
    /** Reports a FETCH response that no command asked for. */
    flagsReported({ flags }: Pick<FetchItems, 'flags'>): void {
      if (flags !== null && selected) emit({ type: 'flags' })
    },
    /** The number of times that messages have left an open mailbox so far. */
    get expunged(): number {
      return expunged
    },
  }
}

/** The kind of message ids that the server has, and has not refused to tell. */
export function identityKind(facts: Facts): SessionCapabilities['identity'] {
  if (facts.refused('identity')) return null
  return facts.offers('X-GM-EXT-1') ? 'gmail' : facts.offers('OBJECTID') ? 'objectid' : null
}

export function capabilitiesOf(facts: Facts, idle: boolean): SessionCapabilities {
  return {
    idle,
    condstore: facts.offers('CONDSTORE') && !facts.refused('modseq'),
    listStatus: facts.offers('LIST-STATUS') && !facts.refused('listReturn'),
    identity: identityKind(facts),
  }
}

/** Replaces imapflow's handlers: after the login only these read unsolicited responses. */
export function installHandlers(wire: Wire, facts: Facts, onBye: (said: StatusText) => void): void {
  const handlers = wire.untaggedHandlers
  handlers['EXISTS'] = (response) => {
    const count = sequence(response)
    // Some servers repeat it with every NOOP.
    if (count === null || !facts.selected || count === facts.selected.exists) return
    facts.learn({ exists: count })
    facts.emit({ type: 'exists' })
  }
  const left = (messages: number): void => {
    if (!facts.selected) return
    facts.learn({ exists: Math.max(0, facts.selected.exists - messages) })
    facts.emit({ type: 'expunge' })
  }
  handlers['EXPUNGE'] = (response) => {
    if (sequence(response) !== null) left(1)
  }
  // One event, however many UIDs the response names.
  handlers['VANISHED'] = (response) => {
    const named = readVanished(response)
    if (named === null || !facts.selected) return
    facts.vanished.add(named.set)
    if (!named.isEarlier) left(countOf(named.set, null))
  }
  handlers['FETCH'] = (response) => facts.flagsReported(readFetch(response))
  // imapflow would add each response to a list that nothing reads.
  handlers['CAPABILITY'] = wire.sectionHandlers['CAPABILITY'] = null
  handlers['BYE'] = (response) => onBye(statusText(response))
}
