/** Writing flags and removals: on the server when a command answers, in the index too, and told to nobody. */
import { notFound } from '../../errors.ts'
import { changedFlags, normalFlags } from '../own-writes.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { currentMessage, currentPlace, inPlace } from './placed.ts'

type WriteCommands = Pick<AccountCommands, 'setFlags' | 'remove'>

export function writeCommands(deps: CommandDeps): WriteCommands {
  return { setFlags: setFlags(deps), remove: remove(deps) }
}

function setFlags({ live, sync: { store } }: CommandDeps): WriteCommands['setFlags'] {
  return async (accountId, message, at, change) => {
    const { link, state } = await live(accountId)
    return link.run('api', async (session) => {
      const place = currentPlace(state, await currentMessage(store, message), at)
      const counted = state.ownCounts.begin([place.folderId])
      state.own.expectFlags(place.folderId, place.uid, changedFlags(place, change))
      try {
        const stored = await inPlace({ state, session }, place, () => session.store(place.uid, change))
        if (stored === null) throw notFound('message', message.id)
        const now = normalFlags(stored.flags)
        await state.writeIndex([place.folderId], () =>
          store.messages.setFlags(accountId, message.id, place, now, stored.modseq),
        )
        return now
      } finally {
        state.own.settleFlags(place.folderId, place.uid)
        counted()
      }
    })
  }
}

function remove({ live, sync: { store } }: CommandDeps): WriteCommands['remove'] {
  return async (accountId, message, at) => {
    const { link, state } = await live(accountId)
    await link.run('api', async (session) => {
      const place = currentPlace(state, await currentMessage(store, message), at)
      const counted = state.ownCounts.begin([place.folderId])
      state.own.expectDeparture(place.folderId, place.uid)
      try {
        const change = { add: ['\\Deleted'], remove: [] }
        await inPlace({ state, session }, place, () => session.store(place.uid, change))
        await session.expunge([place.uid])
        await state.writeIndex([place.folderId], () => store.messages.relocate(accountId, message.id, place, null))
      } catch (error) {
        state.own.forget(place.folderId, place.uid)
        throw error
      } finally {
        counted()
      }
    })
  }
}
