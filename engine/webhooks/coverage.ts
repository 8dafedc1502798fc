/** The email accounts that a webhook covers, and what lies in them. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { badParameter } from '../errors.ts'
import { pagesOf } from '../store/pages.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, MessageRecord } from '../store/records.ts'
import { bareReference } from './match.ts'

export interface Coverage {
  readonly developerId: string
  /** null = every user of the developer. */
  readonly userId: string | null
}

/** Of the store, one for each account. */
export const questionsAtOnce = 20
/** More questions would keep the call, and the store, for too long. */
const mostAccounts = 10_000

/** `narrower`: the parameter that asks for less, for the error when there are too many. */
export async function coveredAccounts(
  store: Pick<Store, 'accounts'>,
  { developerId, userId }: Coverage,
  narrower: string,
): Promise<AccountRecord[]> {
  if (userId !== null) return store.accounts.listByUser(userId)
  const covered: AccountRecord[] = []
  for await (const page of pagesOf((after, limit) => store.accounts.page(after, limit))) {
    covered.push(...page.filter((account) => account.developerId === developerId))
    if (covered.length > mostAccounts) {
      throw badParameter(
        narrower,
        `the webhook covers more than ${mostAccounts} email accounts: name one user or message`,
      )
    }
  }
  return covered
}

/** At most one of each account. */
export async function findMessages(
  store: Pick<Store, 'accounts' | 'messages'>,
  coverage: Coverage,
  reference: string,
): Promise<MessageRecord[]> {
  const accounts = await coveredAccounts(store, coverage, 'message_id')
  const name = bareReference(reference)
  const found: MessageRecord[] = []
  for (let start = 0; start < accounts.length; start += questionsAtOnce) {
    const some = accounts.slice(start, start + questionsAtOnce)
    const messages = await Promise.all(some.map(({ id }) => store.messages.find(id, name)))
    found.push(...messages.filter((message) => message !== null))
    await nextTurn()
  }
  return found
}
