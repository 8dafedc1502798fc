/**
 * NOTIFY (RFC 5465), which imapflow does not know: the session hears of all folders, while it is in IDLE too. Of the
 * open one it hears as ever; of others by STATUS; and by LIST that folders come, go, or change their names.
 */
import { AppError } from '../../errors.ts'
import { atom, type Argument, type Wire } from './below.ts'
import { orNull } from './line.ts'
import { reportedStatus } from './mailboxes.ts'
import type { Parts } from './parts.ts'

const events = ['MessageNew', 'MessageExpunge', 'FlagChange'].map(atom)
/** `delayed`: an EXPUNGE comes when no command is under way that names messages. */
const wanted: readonly Argument[] = [
  [atom('SELECTED-DELAYED'), events],
  [atom('PERSONAL'), [...events, atom('MailboxName')]],
]

/** false = the server has no NOTIFY, or refuses it, or there are folders that are not the user's own: it tells less. */
export async function subscribe(wire: Wire, { line, facts }: Parts): Promise<boolean> {
  if (!facts.offers('NOTIFY')) return false
  if ((await line.run((send) => orNull(send('NOTIFY', [atom('SET'), ...wanted])))) === null) return false
  facts.hearsAll = true
  wire.untaggedHandlers['STATUS'] = (response) => {
    const reported = reportedStatus(response)
    if (reported !== null) facts.emit({ type: 'status', ...reported })
  }
  wire.untaggedHandlers['LIST'] = () => facts.emit({ type: 'folders' })
  // RFC 5465 §5.8: the server reports no more changes. A new session lists all folders, and subscribes again.
  const overflow = new AppError('network', 'the mail server has too many changes to report: NOTIFICATIONOVERFLOW')
  wire.sectionHandlers['NOTIFICATIONOVERFLOW'] = () => facts.emit({ type: 'closed', error: overflow })
  const { other, shared } = wire.namespaces ?? {}
  return !other && !shared
}
