/**
 * Sessions over imapflow: the only folder that imports it. index.ts puts the parts together; below.ts holds all that is
 * below imapflow's documented API; connect.ts opens; line.ts keeps commands one after the other, with deadlines; the
 * rest speak the commands.
 */
import { AppError } from '../../errors.ts'
import { withinTime } from '../../waits.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { SelectedMailbox, SessionCapabilities, SessionOptions } from '../session-types.ts'
import type { Wire } from './below.ts'
import { connect } from './connect.ts'
import { capabilitiesOf, createFacts, installHandlers, type Facts } from './server-state.ts'
import { createFetcher } from './fetch.ts'
import { createIdler, createLine, type Life, type Line, type Unparsed } from './line.ts'
import { createMailboxes } from './mailboxes.ts'
import { createMessages } from './messages.ts'
import { createNames } from './names.ts'
import { createSections } from './sections.ts'
import type { StatusText } from './tokens.ts'

/** A LOGOUT is a courtesy: it is not waited for longer. */
const logoutMs = 1000
/** More than this is not worth asking again line by line: the whole range is. */
const mostUnparsed = 1000

function createLife(wire: Wire, facts: Facts): Life {
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
      facts.emit({ type: 'closed', error })
    },
  }
}

/** BYE, socket errors and the end of the socket: from here on they end the session, whatever is under way. */
function watchEnd(wire: Wire, facts: Facts, life: Life, leaving: () => boolean): void {
  let bye: AppError | null = null
  const onBye = ({ code, text }: StatusText): void => {
    if (leaving()) return
    const expired = code === 'ACCESSTOKENEXPIRED' || /access ?token ?(?:is )?expired/i.test(text)
    bye = serverFailure({ status: 'BYE', code, text, phase: 'command' })
    if (expired) bye = tokenExpired(bye)
    // The tagged answer that may stand in the same packet says more: it is read first.
    setImmediate(() => life.end(bye))
  }
  installHandlers(wire, facts, onBye)
  wire.on('error', (error) => life.end(bye ?? connectionFailure(error)))
  const gone = (): void => life.end(bye ?? new AppError('network', 'the mail server closed the connection'))
  wire.on('close', gone)
  // It may have been lost between the login and these listeners; the caller sees that with its first command.
  if (!wire.socket || wire.socket.destroyed) gone()
}

/** Not a failure, only the end of the token; details.reason says so. */
function tokenExpired({ details }: AppError): AppError {
  return new AppError('network', 'the mail server ended the session with its access token', {
    details: { ...details, reason: 'token_expired' },
  })
}

async function logout(line: Line): Promise<void> {
  const bye = line.run((send) => send('LOGOUT'))
  await withinTime(
    logoutMs,
    bye.catch(() => undefined),
  )
}

/** Of FETCH responses that could not be parsed or were left out: their UIDs, until the fetcher asks for them. */
function createUnparsed(): Unparsed {
  const uids: number[] = []
  return {
    add(line) {
      if (uids.length >= mostUnparsed || !/^\0*\* \d+ FETCH/i.test(line)) return
      uids.push(Number(/[( ]UID (\d{1,10})\b/i.exec(line)?.[1] ?? 0))
    },
    take: () => uids.splice(0),
  }
}

/**
 * Connects, upgrades (STARTTLS where it is offered without useSsl), logs in, sends ID. Rejects with an AppError of a
 * failure class. Every method of the session has a deadline on progress (MAILROOM_COMMAND_TIMEOUT) and rejects with a
 * failure class, `timeout`, `server_refused` (NO or BAD, its text in details.response), `not_found` or `conflict`; any
 * but the last three has closed the session. A socket error never escapes as an unhandled event.
 */
export async function openSession(options: SessionOptions, signal: AbortSignal) {
  const unparsed = createUnparsed()
  const wire = await connect(options, signal, unparsed.add)
  const facts = createFacts(wire.capabilities)
  const life = createLife(wire, facts)
  let closing: Promise<void> | null = null
  watchEnd(wire, facts, life, () => closing !== null)
  const { commandTimeoutMs, onCommand } = options
  const line = createLine({ wire, life, commandTimeoutMs, onCommand })
  const parts = { line, facts, unparsed, names: createNames() }
  const idler = createIdler({ wire, life, line, offered: facts.offers('IDLE') })
  const { closed } = life
  return {
    ...createMailboxes(parts),
    ...createFetcher(parts),
    ...createSections(parts),
    ...createMessages(parts),
    idle: idler.idle,
    get capabilities(): SessionCapabilities {
      return capabilitiesOf(facts, idler.useful)
    },
    /** As the server advertises them after the login, for people. */
    capabilityNames: (): string[] => [...wire.capabilities.keys()],
    get selected(): SelectedMailbox | null {
      return facts.selected
    },
    get closed(): boolean {
      return closed.aborted
    },
    listen: facts.listen,
    noop: (): Promise<void> => line.run((send) => send('NOOP')).then(() => undefined),
    /** LOGOUT with a short deadline, then the socket is destroyed. Never rejects. */
    close: (): Promise<void> =>
      (closing ??= (closed.aborted ? Promise.resolve() : logout(line)).then(() => life.end(null))),
  }
}
