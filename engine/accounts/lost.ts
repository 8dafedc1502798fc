/** A folder that is not there any more, as servers say it. */
import { type AppError, isAppError } from '../errors.ts'

/** Dovecot, of a folder that another client has renamed or removed, open or not, mostly without a code. */
const lostTexts =
  /mailbox (?:was|has been) (?:deleted|renamed|removed)|mailbox does(?:n't| not) exist|state is inconsistent/i

/** Answered to a command on a folder: the folder is lost, or another one has its name. */
export function tellsLost(error: unknown): error is AppError {
  return isAppError(error) && (error.code === 'not_found' || lostTexts.test(String(error.details['response'])))
}
