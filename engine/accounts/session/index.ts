/**
 * Sessions over imapflow: the only folder that imports it. index.ts puts the parts together; connect.ts opens, line.ts keeps
 * commands one after the other with deadlines, idle.ts waits for news, the rest speak the commands.
 */
import { AppError } from '../../errors.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { OpenSession, Session } from '../session-types.ts'
import type { Wire } from './client.ts'
import { connect } from './connect.ts'
import { createEvents, installHandlers, type Events } from './events.ts'
import { capabilitiesOf, createFacts, type Facts } from './facts.ts'
import { createFetcher, type Unparsed } from './fetch.ts'
import { createIdler } from './idle.ts'
import { createLine, type Line } from './line.ts'
import { createMailboxes } from './mailboxes.ts'
import { createMessages } from './messages.ts'
import { createNames } from './names.ts'
import { createSections } from './sections.ts'
import type { StatusText } from './tokens.ts'

/** A LOGOUT is a courtesy: it is not waited for longer. */
const logoutMs = 1000
/** More than this is not worth asking again line by line: the whole range is. */
const mostUnparsed = 1000

/** The one place that knows whether the session lives, and ends it once. */
interface Life {
  readonly ended: () => AppError | null
  readonly closed: AbortSignal
  /** Ends the session with an error, or on purpose with null. */
  readonly end: (error: AppError | null) => void
}

function createLife(wire: Wire, events: Events): Life {
  const over = new AbortController()
  let reason: AppError | null = null
  return {
    ended: () => reason,
    closed: over.signal,
    end(error) {
      if (over.signal.aborted) return
      reason = error ?? new AppError('network', 'the session is closed')
      over.abort()
      wire.close()
      events.emit({ type: 'closed', error })
    },
  }
}

/** BYE, socket errors and the end of the socket: from here on they end the session, whatever is under way. */
function watchEnd(wire: Wire, facts: Facts, events: Events, life: Life, leaving: () => boolean): void {
  let bye: AppError | null = null
  const onBye = ({ code, text }: StatusText): void => {
    if (leaving()) return
    const expired = code === 'ACCESSTOKENEXPIRED' || /access ?token ?(?:is )?expired/i.test(text)
    bye = serverFailure({ status: 'BYE', code, text, phase: 'command' })
    if (expired) bye = tokenExpired(bye)
    // The tagged answer that may stand in the same packet says more: it is read first.
    setImmediate(() => life.end(bye))
  }
  installHandlers(wire, facts, events, onBye)
  wire.on('error', (error) => life.end(bye ?? connectionFailure(error)))
  const gone = (): void => life.end(bye ?? new AppError('network', 'the mail server closed the connection'))
  wire.on('close', gone)
  // It may have been lost between the login and these listeners; the caller sees that with its first command.
  if (!wire.socket || wire.socket.destroyed) gone()
}

/** Row 1: not a failure, only the end of the token; details.reason says so. */
function tokenExpired({ details }: AppError): AppError {
  return new AppError('network', 'the mail server ended the session with its access token', {
    details: { ...details, reason: 'token_expired' },
  })
}

async function logout(line: Line): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, logoutMs)))
  const bye = line
    .run((send) => send('LOGOUT'))
    .then(
      () => undefined,
      () => undefined,
    )
  await Promise.race([bye, late])
  clearTimeout(timer)
}

/** Of FETCH responses that could not be parsed or were left out: their UIDs, until the fetcher asks for them; 0 = it is not told. */
function createUnparsed() {
  const uids: number[] = []
  return {
    add: (line: string): void => {
      if (uids.length >= mostUnparsed || !/^\0*\* \d+ FETCH/i.test(line)) return
      uids.push(Number(/[( ]UID (\d{1,10})\b/i.exec(line)?.[1] ?? 0))
    },
    take: (): number[] => uids.splice(0),
  }
}

/** Connects, upgrades, logs in, sends ID: see OpenSession. */
export const openSession: OpenSession = async (options, signal) => {
  const unparsed = createUnparsed()
  const wire = await connect(options, signal, unparsed.add)
  const facts = createFacts(wire.capabilities)
  const events = createEvents(facts)
  const life = createLife(wire, events)
  return assemble({
    wire,
    facts,
    events,
    life,
    unparsed,
    commandTimeoutMs: options.commandTimeoutMs,
  })
}

interface Parts {
  readonly wire: Wire
  readonly facts: Facts
  readonly events: Events
  readonly life: Life
  readonly unparsed: Unparsed
  readonly commandTimeoutMs: number
}

function assemble(parts: Parts): Session {
  const { wire, facts, events, life, commandTimeoutMs } = parts
  const { end: fail, ended, closed } = life
  let closing: Promise<void> | null = null
  watchEnd(wire, facts, events, life, () => closing !== null)
  const line = createLine({ wire, commandTimeoutMs, fail, ended })
  const shared = { ...parts, line, names: createNames() }
  const mailboxes = createMailboxes(shared)
  const idler = createIdler({ wire, line, offered: facts.offers('IDLE'), fail, ended, closed })
  return {
    ...createFetcher(shared),
    ...createSections(shared),
    ...createMessages(shared),
    get capabilities() {
      return capabilitiesOf(facts, idler.useful)
    },
    capabilityNames: () => [...wire.capabilities.keys()],
    namespace: { prefix: wire.namespace?.prefix ?? '', delimiter: wire.namespace?.delimiter ?? '' },
    get selected() {
      return facts.selected
    },
    get closed() {
      return closed.aborted
    },
    listen: (listener) => events.listen(listener),
    list: (wanted) => mailboxes.list(wanted),
    select: (path, wanted) => mailboxes.select(path, wanted?.refresh === true),
    status: (path) => mailboxes.status(path),
    createMailbox: (path) => mailboxes.create(path),
    deleteMailbox: (path) => mailboxes.delete(path),
    idle: (renewMs, signal) => idler.idle(renewMs, signal),
    noop: () => line.run((send) => send('NOOP')).then(() => undefined),
    close: () => (closing ??= (closed.aborted ? Promise.resolve() : logout(line)).then(() => life.end(null))),
  }
}
