/** Writing flags and removals: on the server when a command answers, in the index too, and told to nobody. */
import { notFound } from '../../errors.ts'
import { changedFlags, normalFlags } from '../own-writes.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { selectPlace } from './placed.ts'

export function writeCommands({ live, sync: { store } }: CommandDeps): Pick<AccountCommands, 'setFlags' | 'remove'> {
  return {
    async setFlags(accountId, message, at, change) {
      const { link, state } = await live(accountId)
      return link.run('api', async (session) => {
        state.own.expectFlags(at.folderId, at.uid, changedFlags(at, change))
        try {
          await selectPlace(session, at)
          const stored = await session.store(at.uid, change)
          if (stored === null) throw notFound('message', message.id)
          const now = normalFlags(stored.flags)
          await state.exclusive(() => store.messages.setFlags(accountId, message.id, at, now, stored.modseq))
          return now
        } finally {
          state.own.settleFlags(at.folderId, at.uid)
        }
      })
    },
    async remove(accountId, message, at) {
      const { link, state } = await live(accountId)
      await link.run('api', async (session) => {
        state.own.expectDeparture(at.folderId, at.uid)
        try {
          await selectPlace(session, at)
          await session.store(at.uid, { add: ['\\Deleted'], remove: [] })
          await session.expunge([at.uid])
          await state.exclusive(() => store.messages.relocate(accountId, message.id, at, null))
        } catch (error) {
          state.own.forget(at.folderId, at.uid)
          throw error
        }
      })
    },
  }
}
