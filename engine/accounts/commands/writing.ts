/** Writing flags and removals: when a command answers, it is done on the server, in the index, and told like anybody's change. */
import { notFound } from '../../errors.ts'
import { tellDeparture, tellFlags } from '../own-changes.ts'
import { normalFlags } from '../own-writes.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { currentMessage, currentPlace, inPlace } from './placed.ts'

type WriteCommands = Pick<AccountCommands, 'setFlags' | 'remove'>

export function writeCommands(deps: CommandDeps): WriteCommands {
  return { setFlags: setFlags(deps), remove: remove(deps) }
}

function setFlags({ live, sync }: CommandDeps): WriteCommands['setFlags'] {
  return async (accountId, message, at, change) => {
    const { link, state } = await live(accountId)
    return link.run('api', async (session) => {
      const place = currentPlace(state, await currentMessage(sync.store, message), at)
      const counted = state.ownCounts.begin([place.folderId])
      try {
        const stored = await inPlace({ state, session }, place, () => session.store(place.uid, change))
        if (stored === null) throw notFound('message', message.id)
        await tellFlags({ deps: sync, state, session }, place, stored)
        return normalFlags(stored.flags)
      } finally {
        counted()
      }
    })
  }
}

function remove({ live, sync }: CommandDeps): WriteCommands['remove'] {
  return async (accountId, message, at) => {
    const { link, state } = await live(accountId)
    await link.run('api', async (session) => {
      const place = currentPlace(state, await currentMessage(sync.store, message), at)
      const counted = state.ownCounts.begin([place.folderId])
      const left = state.own.leave(place.folderId, place.uid)
      try {
        const change = { add: ['\\Deleted'], remove: [] }
        const stored = await inPlace({ state, session }, place, () => session.store(place.uid, change))
        if (stored === null) throw notFound('message', message.id)
        await session.expunge([place.uid])
        await tellDeparture({ deps: sync, state, session }, message.id, place, null)
      } finally {
        left()
        counted()
      }
    })
  }
}
