/** APPEND into an account: in the index when the command answers, and told like anybody's mail. */
import { catchUp } from '../sync.ts'
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { openFirst } from './folders.ts'

export function appendCommand({ live, sync }: CommandDeps): Pick<AccountCommands, 'append'> {
  return {
    async append(accountId, to, raw, flags, internalDate) {
      const { link, state } = await live(accountId)
      await link.run('api', async (session) => {
        const context = { deps: sync, state, session }
        await openFirst(context, to)
        await session.append(to.path, raw, flags, internalDate)
        await catchUp(context, to.path)
      })
    },
  }
}
