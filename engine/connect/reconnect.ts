/** A connect token that an operator makes: its link asks the user of an email account for the login once more. */
import { newToken } from '../store/ids.ts'
import type { AccountRecord, ConnectTokenRecord } from '../store/records.ts'

/** Of every connect token. */
export const tokenLifeMs = 24 * 3_600_000

/** No application has asked for it: the wizard ends at its last page, without a `callbackUrl`. */
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

/** The first page of the wizard: public, good as long as the token. */
export const connectUrl = (baseUrl: string, token: string): string => `${baseUrl}/connect/${token}`
