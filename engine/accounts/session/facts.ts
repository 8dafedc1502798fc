/** What one session knows of its server: what it offers, what it refused although it offers it, and the open mailbox. */
import type { SelectedMailbox, SessionCapabilities } from '../session-types.ts'

/** Optional parts of commands that a server may answer with BAD although it advertises them. */
export type Optional = 'modseq' | 'identity' | 'listReturn' | 'esearch'

export interface Facts {
  offers(capability: string): boolean
  refused(kind: Optional): boolean
  refuse(kind: Optional): void
  readonly selected: SelectedMailbox | null
  select(mailbox: SelectedMailbox, noModseq: boolean): void
  /** MODSEQ may be asked of the open mailbox. */
  readonly modseqs: boolean
  deselect(): void
  /** Answers the open mailbox with it. */
  learnUidNext(uidNext: number | null): void
  /** The number of messages, as EXISTS and EXPUNGE tell it. */
  count(messages: number): void
}

export function createFacts(capabilities: ReadonlyMap<string, unknown>): Facts {
  const refused = new Set<Optional>()
  let selected: SelectedMailbox | null = null
  let withModseqs = false
  return {
    offers: (capability) => capabilities.has(capability),
    refused: (kind) => refused.has(kind),
    refuse: (kind) => void refused.add(kind),
    get selected() {
      return selected
    },
    select(mailbox, noModseq) {
      selected = mailbox
      withModseqs = !noModseq
    },
    get modseqs() {
      return withModseqs && capabilities.has('CONDSTORE') && !refused.has('modseq')
    },
    deselect() {
      selected = null
    },
    learnUidNext(uidNext) {
      if (selected) selected = { ...selected, uidNext }
    },
    count(messages) {
      if (selected) selected = { ...selected, exists: messages }
    },
  }
}

export function capabilitiesOf(facts: Facts, idle: boolean): SessionCapabilities {
  const identity = facts.offers('X-GM-EXT-1') ? 'gmail' : facts.offers('OBJECTID') ? 'objectid' : null
  return {
    idle,
    condstore: facts.offers('CONDSTORE') && !facts.refused('modseq'),
    qresync: facts.offers('QRESYNC'),
    listStatus: facts.offers('LIST-STATUS') && !facts.refused('listReturn'),
    move: facts.offers('MOVE'),
    uidPlus: facts.offers('UIDPLUS'),
    notify: facts.offers('NOTIFY'),
    identity,
  }
}
