/** Connect tokens that an operator makes: the link asks the user of an email account for new credentials. */
import { newToken } from '../store/ids.ts'
import type { AccountRecord, ConnectTokenRecord } from '../store/records.ts'

/** Lifetime of every connect token. */
export const tokenLifeMs = 24 * 3_600_000

/** Without a `callbackUrl` the wizard ends at its last page: no application has asked for the token. */
export function reconnectToken({ id, developerId, userId, email }: AccountRecord, now: number): ConnectTokenRecord {
  const names = { firstName: null, lastName: null, statusCallbackUrl: null, options: null }
  const times = { createdAt: now, expiresAt: now + tokenLifeMs, usedAt: null }
  return {
    token: newToken(),
    developerId,
    version: 'lite',
    userId,
    accountId: id,
    callbackUrl: '',
    email,
    ...names,
    ...times,
  }
}

/** URL of the wizard's first page: public, valid as long as the token. */
export const connectUrl = (baseUrl: string, token: string): string => `${baseUrl}/connect/${token}`
