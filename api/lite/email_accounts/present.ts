/** Email accounts from records to the wire. */
import type { z } from 'zod'
import type { AccountRecord, ConnectFailure } from '../../../engine/index.ts'
import type { LiteUrls } from '../urls.ts'
import type { emailAccountView } from './schema.ts'

export function presentAccount(account: AccountRecord, urls: LiteUrls): z.input<typeof emailAccountView> {
  return {
    server: account.server,
    label: account.label,
    username: account.username,
    port: account.port,
    use_ssl: account.useSsl,
    type: 'imap',
    authentication_type: account.authType,
    status: account.status,
    status_message: statusMessage(account),
    status_callback_url: account.statusCallbackUrl,
    resource_url: urls.account(account),
  }
}

/** Why, and when the next try is. */
export function statusMessage({ statusMessage: why, resume }: AccountRecord): string | null {
  if (why === null || resume.retryAt === null || resume.retryAt <= Date.now()) return why
  const [date = '', time = ''] = new Date(resume.retryAt).toISOString().split('T')
  return `${why}${/[.!?]$/.test(why) ? '' : '.'} Next try at ${date} ${time.slice(0, 8)} UTC.`
}

/** The mail server said no: a 200 that says so, and nothing was created. */
export function presentFailure({ failure, message, log }: ConnectFailure) {
  return {
    success: false,
    feedback_code: feedbackCode(failure),
    feedback: message,
    connection_log: log,
    connectionLog: log,
  }
}

/** The failure class in the words that clients of the original know. */
function feedbackCode(failure: ConnectFailure['failure']): string {
  return failure === 'auth_rejected' ? 'invalid_credentials' : failure
}
