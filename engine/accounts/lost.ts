/** A folder that is not there any more, as servers say it. */
import { type AppError, isAppError } from '../errors.ts'

/** Dovecot, of a folder that another client has renamed or removed, open or not, mostly without a code. */
const lostTexts =
  /mailbox (?:was|has been) (?:deleted|renamed|removed)|mailbox does(?:n't| not) exist|state is inconsistent/i

/** Answered to STATUS or SELECT: the server's own word that there is no such folder, not only that a list of its name lacks it. */
export function saysGone(error: unknown): boolean {
  const said = isAppError(error, 'not_found') && isAppError(error.cause) ? error.cause : error
  return tellsLost(said) && said.code !== 'network'
}

/** Answered to a command on a folder: the folder is lost, or another one has its name. */
export function tellsLost(error: unknown): error is AppError {
  return isAppError(error) && (error.code === 'not_found' || lostTexts.test(String(error.details['response'])))
}
