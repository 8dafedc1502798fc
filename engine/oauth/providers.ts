/**
 * The OAuth 2.0 providers that a developer may register a consumer key for, under the interface's names and the
 * clients'.
 */
import type { Config } from '../config.ts'

const namesOfA = ['PROVIDER_A_OAUTH2', 'GMAIL_OAUTH2', 'GMAIL'] as const
const namesOfB = ['PROVIDER_B_CONNECT', 'MSLIVECONNECT'] as const
export const providerTypes = [...namesOfA, ...namesOfB] as const

export interface ProviderEndpoints {
  readonly issuer: string
  readonly authorization: string
  readonly token: string
  /** Full mail access, and a refresh token. */
  readonly scope: string
}

const known = {
  a: {
    issuer: 'https://accounts.google.com',
    authorization: 'https://accounts.google.com/o/oauth2/v2/auth',
    token: 'https://oauth2.googleapis.com/token',
    scope: 'https://mail.google.com/ openid email',
  },
  b: {
    issuer: 'https://login.microsoftonline.com/common/v2.0',
    authorization: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    token: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    scope: 'https://outlook.office.com/IMAP.AccessAsUser.All offline_access openid email',
  },
} as const satisfies Record<string, ProviderEndpoints>

export function endpointsOf(
  type: string,
  config: Pick<Config, 'MAILROOM_OAUTH_TOKEN_URL_A' | 'MAILROOM_OAUTH_TOKEN_URL_B'>,
): ProviderEndpoints {
  const isA = (namesOfA as readonly string[]).includes(type)
  const facts = isA ? known.a : known.b
  const override = isA ? config.MAILROOM_OAUTH_TOKEN_URL_A : config.MAILROOM_OAUTH_TOKEN_URL_B
  return override === null ? facts : { ...facts, token: override }
}

/** A shorter one would be told whole, or nearly. */
const shortest = 10

/** First three characters, `[...]`, last three. */
export function abbreviated(secret: string): string {
  if (secret.length < shortest) return '[...]'
  return `${secret.slice(0, 3)}[...]${secret.slice(-3)}`
}
