/**
 * Checks of a URL that a caller wants to be called at, when it is registered. At delivery the connection is checked
 * again.
 */
import { AppError, badParameter, isAppError } from '../errors.ts'
import { resolveGuarded } from './address.ts'

const maxLength = 2048

/**
 * Rejects with `bad_request` (not an http or https URL, credentials in it, too long) or `private_address`, naming the
 * parameter. A host that does not resolve now is accepted: it may tomorrow.
 */
export async function checkUrl(parameter: string, url: string, allowPrivate: boolean): Promise<void> {
  const parsed = URL.parse(url)
  if (url.length > maxLength) throw badParameter(parameter, `longer than ${maxLength} characters`)
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:'))
    throw badParameter(parameter, 'expected an http:// or https:// URL')
  if (parsed.username !== '' || parsed.password !== '')
    throw badParameter(parameter, 'must not hold a user name or password')
  try {
    await resolveGuarded(parsed.hostname.replace(/^\[|\]$/g, ''), { allowPrivate })
  } catch (error) {
    if (!isAppError(error, 'private_address')) return
    throw new AppError('private_address', `${parameter}: ${error.message}`, { details: { parameter }, cause: error })
  }
}
