/** What the API asks of an account's command connection: reading what only the server has, and writing. */
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { appendCommand } from './appending.ts'
import { folderCommands } from './folders.ts'
import { onceMore } from './once-more.ts'
import { readCommands } from './reading.ts'
import { transferCommands } from './transfer.ts'
import { writeCommands } from './writing.ts'

export type { CommandDeps, LiveAccount } from './deps.ts'

type Commands = Omit<AccountCommands, 'probe'>

export function createCommands(deps: CommandDeps): Commands {
  return overNewestLink({
    ...folderCommands(deps),
    ...readCommands(deps),
    ...writeCommands(deps),
    ...transferCommands(deps),
    ...appendCommand(deps),
  })
}

function overNewestLink(commands: Commands): Commands {
  const entries = Object.entries(commands).map(([name, command]) => [name, onceMore(command as Command)] as const)
  return Object.fromEntries(entries) as unknown as Commands
}

type Command = (...args: never[]) => Promise<unknown>
