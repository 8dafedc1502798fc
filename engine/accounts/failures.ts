/**
 * A failure of an IMAP connection becomes an AppError of a failure class, by response codes (RFC 5530) and error
 * codes; where servers leave nothing but text, by the one table of texts below.
 */
import { AppError, errnoOf, isAppError, isTlsCode, shortageOf, type ErrorCode, type FailureClass } from '../errors.ts'
import { own } from '../own-property.ts'

/** The phase of the failure decides what a bare NO means. */
type Phase = 'connect' | 'login' | 'command'

interface ServerSaid {
  readonly status: 'NO' | 'BAD' | 'BYE'
  /** RFC 5530 response code in capitals, or null. */
  readonly code: string | null
  readonly text: string
  readonly phase: Phase
}

type Verdict = Extract<ErrorCode, FailureClass | 'timeout' | 'server_refused' | 'not_found' | 'conflict'>

/** Codes that leave no doubt, whatever the text says. */
const decisiveCodes: Readonly<Record<string, Verdict>> = {
  AUTHENTICATIONFAILED: 'auth_rejected',
  AUTHORIZATIONFAILED: 'permission',
  EXPIRED: 'auth_rejected',
  WEBALERT: 'auth_rejected',
  PRIVACYREQUIRED: 'tls',
  CONTACTADMIN: 'permission',
  THROTTLED: 'throttled',
  NONEXISTENT: 'not_found',
  TRYCREATE: 'not_found',
  ALREADYEXISTS: 'conflict',
}

/** Codes that the text may sharpen; where they are given during a login. */
const loginCodes: Readonly<Record<string, Verdict>> = {
  UNAVAILABLE: 'auth_unavailable',
  SERVERBUG: 'auth_unavailable',
  INUSE: 'auth_unavailable',
  LIMIT: 'throttled',
  NOPERM: 'permission',
}

/**
 * Where servers send no code, or one that says less. The first that fits decides. `always`: also on ordinary
 * commands, where anything else is a plain refusal.
 */
const serverTexts: readonly { readonly pattern: RegExp; readonly verdict: Verdict; readonly always?: true }[] = [
  // Exchange Online: wrong mailbox, scope or licence, or too many connects: ambiguous, so not "bad password".
  { pattern: /user is authenticated but not connected/i, verdict: 'permission', always: true },
  // Exchange Online; Yahoo; Gmail's quota of bytes and commands.
  { pattern: /request is throttled|suggested back-?off/i, verdict: 'throttled', always: true },
  { pattern: /exceeded (?:command or )?bandwidth|bandwidth limit/i, verdict: 'throttled', always: true },
  { pattern: /rate limit|too many (?:login|auth|failed|request|command)/i, verdict: 'throttled', always: true },
  // Gmail, Dovecot, Courier, Cyrus, hosts of shared mail.
  {
    pattern: /too many (?:simultaneous |concurrent |open )?(?:imap )?(?:connections|sessions)/i,
    verdict: 'connection_limit',
    always: true,
  },
  {
    pattern:
      /maximum number of connections|connection limit|connections? (?:from|per) (?:your|this|user)[^.]*exceeded/i,
    verdict: 'connection_limit',
    always: true,
  },
  { pattern: /access ?token ?(?:is )?expired|session (?:is )?expired/i, verdict: 'network', always: true },
  { pattern: /imap (?:access )?is (?:disabled|not enabled)|not enabled for imap|enable imap/i, verdict: 'permission' },
  // Many ask a person to try again.
  { pattern: /(?:invalid|incorrect|wrong|bad) (?:user|login|password|credential)/i, verdict: 'auth_rejected' },
  {
    pattern: /temporar(?:y|ily)|try again|unavailable|internal (?:server )?error|server busy|system error/i,
    verdict: 'auth_unavailable',
  },
]

/** 'Suggested Backoff Time: 92415 milliseconds', 'try again in 5 minutes' → ms. */
const hints: readonly RegExp[] = [
  /back-?off(?:\s+time)?[\s:=]*(\d{1,9})\s*(milliseconds?|ms|seconds?|s|minutes?|min|hours?|h)?\b/i,
  /(?:again|retry)\s+(?:in|after)\s+(\d{1,9})\s*(milliseconds?|ms|seconds?|s|minutes?|min|hours?|h)\b/i,
]
const unitMs: readonly (readonly [RegExp, number])[] = [
  [/^(?:ms|milli)/i, 1],
  [/^s/i, 1000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
]
const longestHintMs = 86_400_000

/** The wait that the server asks for, in ms. A number without unit is milliseconds, as Exchange means it. */
function backoffHint(text: string): number | null {
  for (const pattern of hints) {
    const match = pattern.exec(text)
    if (!match) continue
    const unit = unitMs.find(([name]) => name.test(match[2] ?? 'ms'))?.[1] ?? 1
    return Math.min(Number(match[1]) * unit, longestHintMs)
  }
  return null
}

const words: Readonly<Record<Verdict, string>> = {
  auth_rejected: 'the mail server rejected the login',
  auth_unavailable: 'the mail server cannot check logins now',
  consent_lost: 'the consent of the mailbox owner was withdrawn',
  permission: 'the mail server does not give access to this mailbox',
  throttled: 'the mail server asks us to slow down',
  connection_limit: 'the mail server allows no further connection',
  network: 'the connection to the mail server was lost',
  tls: 'the encrypted connection to the mail server failed',
  protocol: 'the mail server answered something that is not IMAP',
  timeout: 'the mail server did not answer in time',
  server_refused: 'the mail server refused',
  not_found: 'the mail server does not have this mailbox',
  conflict: 'the mail server already has this mailbox',
}

function verdictOf({ status, code, text, phase }: ServerSaid): Verdict {
  const decided = code === null ? undefined : own(decisiveCodes, code)
  if (decided && (phase === 'login' || decided === 'throttled' || decided === 'not_found' || decided === 'conflict'))
    return decided
  const atLogin = phase !== 'command' || status === 'BYE'
  const known = serverTexts.find(({ pattern, always }) => (always ?? atLogin) && pattern.test(text))
  if (known)
    return status === 'BYE' && known.verdict === 'auth_unavailable' && phase === 'command' ? 'network' : known.verdict
  const coded = code === null || phase === 'command' ? undefined : own(loginCodes, code)
  if (coded) return coded
  if (status === 'BYE') return 'network'
  if (phase === 'command') return 'server_refused'
  return status === 'NO' ? 'auth_rejected' : 'protocol'
}

/** The time that Dovecot took: no caller needs it. */
const timing = /\(\d+\.\d{3}(?: \+ \d+\.\d{3}){1,2} secs\)\.?$/

/** More of a text is neither searched nor shown. */
const longestText = 500
const longestCode = 100

/** A NO, BAD or BYE of the server. details: response (its text), responseCode, status. */
export function serverFailure(given: ServerSaid, cause?: unknown): AppError {
  const said = { ...given, code: given.code?.slice(0, longestCode) ?? null, text: given.text.slice(0, longestText) }
  const verdict = verdictOf(said)
  const hint = verdict === 'throttled' ? backoffHint(said.text) : null
  const text = said.text.replace(timing, '').trimEnd()
  return new AppError(verdict, text === '' ? words[verdict] : `${words[verdict]}: ${text}`, {
    cause,
    details: { response: text, responseCode: said.code, status: said.status },
    ...(hint === null ? {} : { retryAfterMs: hint }),
  })
}

const timeoutCodes = new Set(['CONNECT_TIMEOUT', 'GREETING_TIMEOUT', 'UPGRADE_TIMEOUT', 'ETIMEOUT', 'ETIMEDOUT'])
const protocolCodes =
  /^(?:ParserError|MAX_IMAP_NESTING|LineTooLarge|LiteralTooLarge|ResponseTooLarge|UnexpectedTag|InvalidResponse|ResponseProcessingFailed|Z_)/

/** A connection that was never made loses nothing. */
const errnoWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused by the mail server',
  EHOSTUNREACH: 'the mail server cannot be reached',
  ENETUNREACH: 'the mail server cannot be reached',
}

function codeFailure(code: string, tlsFailed: boolean): Verdict {
  if (timeoutCodes.has(code)) return 'timeout'
  if (tlsFailed || code === 'STARTTLS_INJECTION' || isTlsCode(code)) return 'tls'
  return protocolCodes.test(code) ? 'protocol' : 'network'
}

/** details.errno: see errnoOf. `busy` when the connection could not be made for a reason of ours. */
export function connectionFailure(error: unknown): AppError {
  if (isAppError(error)) return error
  const ours = shortageOf(error)
  if (ours !== null) return ours
  const errno = errnoOf(error)
  const tlsFailed = error instanceof Error && 'tlsFailed' in error && error.tlsFailed === true
  const verdict = codeFailure(errno ?? '', tlsFailed)
  // Node has no name for what OpenSSL says; imapflow's bounds are named in its text.
  const reason = /^UNSPECIFIED$|TooLarge$/.test(errno ?? '') && error instanceof Error ? error.message : errno
  const said = own(errnoWords, errno ?? '') ?? words[verdict]
  return new AppError(verdict, reason === null ? said : `${said} (${reason})`, {
    cause: error,
    details: errno === null ? {} : { errno },
  })
}
