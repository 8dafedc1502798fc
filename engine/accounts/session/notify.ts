/**
 * NOTIFY (RFC 5465), which imapflow does not know: the server reports changes of all folders, in IDLE too. The open
 * folder is reported as before, others by STATUS; LIST reports that folders come, go or change their names.
 */
import { AppError } from '../../errors.ts'
import { atom, type Argument, type Wire } from './below.ts'
import { orNull } from './line.ts'
import { reportedStatus } from './mailboxes.ts'
import type { Parts } from './parts.ts'

const events = ['MessageNew', 'MessageExpunge', 'FlagChange'].map(atom)
/** DELAYED: no EXPUNGE comes during a command that names messages by their sequence numbers. */
const wanted: readonly Argument[] = [
  [atom('SELECTED-DELAYED'), events],
  [atom('PERSONAL'), [...events, atom('MailboxName')]],
]

/** false = the server has no NOTIFY, refuses it, or has folders of others too, which it does not report. */
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
