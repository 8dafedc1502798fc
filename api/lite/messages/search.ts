/** `body_search_string`: the mail server searches, in one folder or in every folder of the account that the index knows. */
import { badParameter, type FolderRecord } from '../../../engine/index.ts'
import type { Call } from '../../route.ts'

/** More are not searched in one call: the caller names a folder. */
const foldersMax = 200

/** Ids of the messages that hold the text in their body. Rejects when one folder cannot be searched: a part is not the answer. */
export async function searchBodies(
  call: Call,
  accountId: string,
  folder: FolderRecord | null,
  text: string,
): Promise<string[]> {
  const { accounts, store } = call.engine
  const folders = (folder === null ? await store.folders.list(accountId) : [folder]).filter(isRead)
  if (folders.length > foldersMax) {
    throw badParameter(
      'body_search_string',
      `the email account has ${folders.length} folders; name the one to search in`,
    )
  }
  const found = new Set<string>()
  for (const one of folders) {
    call.signal.throwIfAborted()
    for (const id of await accounts.searchBody(accountId, one, text)) found.add(id)
  }
  return [...found]
}

/** What was never opened, or was empty when it was last read, has no message in the index that a search could name. */
function isRead({ selectable, cursor }: FolderRecord): boolean {
  return selectable && cursor !== null && cursor.exists > 0
}
