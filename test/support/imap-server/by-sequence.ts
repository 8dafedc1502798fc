/** Plays a server that answers UID SEARCH with sequence numbers. */
import type { Hooks } from './hooks.ts'

export const bySequence: NonNullable<Hooks['send']> = (response, call) => {
  if (call?.name !== 'UID SEARCH' || !response.toString().startsWith('* SEARCH')) return response
  const uids = call.folder?.messages.map(({ uid }) => uid) ?? []
  return response.toString().replace(/\d+/g, (uid) => String(uids.indexOf(Number(uid)) + 1))
}
