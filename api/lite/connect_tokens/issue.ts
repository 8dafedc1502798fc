/** A new connect token, at whichever level it is asked for. */
import { checkUrl, newToken, type ConnectTokenRecord } from '../../../engine/index.ts'
import type { Call } from '../../route.ts'

const lifeMs = 24 * 3_600_000

export type TokenWishes = Pick<ConnectTokenRecord, 'version' | 'callbackUrl'> &
  Partial<
    Pick<
      ConnectTokenRecord,
      'userId' | 'accountId' | 'email' | 'firstName' | 'lastName' | 'statusCallbackUrl' | 'options'
    >
  >

/**
 * Stored and good for 24 hours. `callbackUrl` is opened by the end user's browser, so it may be a private address;
 * `statusCallbackUrl` is called by us and is checked.
 */
export async function issueToken({ engine, developer }: Call, wishes: TokenWishes): Promise<ConnectTokenRecord> {
  const { statusCallbackUrl = null } = wishes
  if (statusCallbackUrl !== null) {
    await checkUrl('status_callback_url', statusCallbackUrl, engine.config.MAILROOM_ALLOW_PRIVATE)
  }
  const now = Date.now()
  const token: ConnectTokenRecord = {
    userId: null,
    accountId: null,
    email: null,
    firstName: null,
    lastName: null,
    options: null,
    ...wishes,
    statusCallbackUrl,
    token: newToken(),
    developerId: developer.id,
    createdAt: now,
    expiresAt: now + lifeMs,
    usedAt: null,
  }
  await engine.store.tokens.create(token)
  return token
}
