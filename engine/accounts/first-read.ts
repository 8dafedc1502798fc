/** What has to be read before an account is usable: the list of folders, what is new in INBOX, and its first page. */
import { backfillFirst } from './backfill.ts'
import type { Connection } from './connection.ts'
import { createFolderPoll } from './folders.ts'
import type { SyncDeps } from './state.ts'
import { catchUp } from './sync.ts'

export async function firstRead(
  deps: SyncDeps,
  { session, state }: Connection,
  signal: AbortSignal,
  progress: () => void,
): Promise<void> {
  const context = { deps, state, session }
  state.onWrite(progress)
  await createFolderPoll(context).list()
  progress()
  await catchUp(context, 'INBOX')
  progress()
  const inbox = state.folderByPath('INBOX')
  if (inbox !== null && !signal.aborted) await backfillFirst(context, inbox.id)
}
