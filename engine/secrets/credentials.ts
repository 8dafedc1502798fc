/** Mailbox credentials as the store keeps them: sealed JSON with the account's id as associated data. */
import type { Credential } from '../accounts/types.ts'
import type { AccountRecord } from '../store/records.ts'
import type { Sealer } from './seal.ts'

export function sealCredential(sealer: Sealer, accountId: string, credential: Credential): string {
  return sealer.seal(JSON.stringify(credential), accountId)
}

/** Throws `internal` when MAILROOM_SECRET is not the one it was sealed with. */
export function openCredential(sealer: Sealer, account: Pick<AccountRecord, 'id' | 'sealedCredential'>): Credential {
  return JSON.parse(sealer.open(account.sealedCredential, account.id)) as Credential
}
