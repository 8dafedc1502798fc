/** An email account in words: why it is in its state, since when, what happens next, and what would change it. */
import type { z } from 'zod'
import type { AccountRecord, ActorView } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { noActor, utc } from './rows.ts'
import type { explanationView } from './views.ts'

type Explanation = z.input<typeof explanationView>

/** What helps against a failure of this class. */
const remedies: Readonly<Record<string, string>> = {
  auth_rejected: 'The user gives another password, or edits the one at the mail server back.',
  auth_unavailable: 'The login service of the mail server, or of the provider, works again.',
  consent_lost: 'The user gives the consent at the provider again.',
  permission: 'The mail server allows this login again: IMAP may be switched off for the mailbox.',
  throttled: 'The time that the mail server asked for is over.',
  connection_limit: 'Other programs close connections to this mailbox, or the mail server allows more.',
  network: 'The mail server can be reached again.',
  tls: 'The mail server shows a valid certificate, or the settings of the account name another host or port.',
  protocol: 'The mail server answers as IMAP asks for.',
  set_aside: 'Someone edits the account, or asks for a status check.',
}

const states: Readonly<Record<string, string>> = {
  [noActor]: 'It has no actor: the service is starting or ending.',
  dead: 'Its actor ended by a fault of the service and is started again.',
  paused: 'An operator has paused it.',
  queued: 'It waits for its turn to log in at the mail server.',
  connecting: 'It is logging in at the mail server.',
  syncing: 'It is reading its mailbox.',
  watching: 'It is connected and hears of new mail.',
}

export function explainAccount(account: AccountRecord, view: ActorView | null): Explanation {
  const state = view?.state ?? noActor
  const lastError = (view ?? account.resume).lastError
  const attempt = view?.attempt ?? account.resume.attempt
  const failed = lastError === null ? [] : [failureOf(account, lastError, attempt)]
  const held = account.status === 'DISABLED' ? ['The account is DISABLED.'] : []
  const own = states[state]
  return {
    why: [...(own === undefined ? [] : [own]), ...held, ...failed].join(' ') || 'Nothing is known yet.',
    since: seconds(view?.since ?? account.createdAt),
    next: nextOf(view, state),
    would_change: changesOf(account, state, lastError?.class ?? null),
  }
}

function failureOf(
  { server }: AccountRecord,
  { class: failure, message, at }: NonNullable<ActorView['lastError']>,
  attempt: number,
): string {
  const times = attempt > 1 ? `, for the ${ordinal(attempt)} time in a row` : ''
  return `The last failure at ${server} was at ${utc(at)} (${failure})${times}: ${message}.`
}

function nextOf(view: ActorView | null, state: string): string {
  if (view?.next) return `It ${view.next.what} at ${utc(view.next.at)}.`
  if (state === 'watching') return 'It stays connected.'
  if (state === 'queued') return 'It logs in when the pace of logins to its host allows it.'
  if (state === 'paused') return 'Nothing, until it is resumed.'
  return 'Nothing by itself.'
}

function changesOf({ id }: AccountRecord, state: string, failure: string | null): string[] {
  const way = (action: string): string => `(POST /admin/accounts/${id}/${action})`
  if (state === 'paused') return [`Resume connects it again ${way('resume')}.`]
  const remedy = failure === null ? undefined : remedies[failure]
  const now = ['waiting', 'disabled'].includes(state) ? [`Reconnect tries at once ${way('reconnect')}.`] : []
  const check = failure === null ? [] : [`Check status tries a login beside it ${way('check')}.`]
  return [...(remedy === undefined ? [] : [remedy]), ...now, ...check]
}

function ordinal(number: number): string {
  const teen = number % 100 > 10 && number % 100 < 14
  const ending = teen ? undefined : (['th', 'st', 'nd', 'rd'] as const)[number % 10]
  return `${number}${ending ?? 'th'}`
}
