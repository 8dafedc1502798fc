/** What the API asks of an account's command connection: reading what only the server has, and writing. */
import type { AccountCommands } from '../types.ts'
import type { CommandDeps } from './deps.ts'
import { appendCommand } from './appending.ts'
import { folderCommands } from './folders.ts'
import { readCommands } from './reading.ts'
import { transferCommands } from './transfer.ts'
import { writeCommands } from './writing.ts'

export type { CommandDeps, LiveAccount } from './deps.ts'

export function createCommands(deps: CommandDeps): Omit<AccountCommands, 'probe'> {
  return {
    ...folderCommands(deps),
    ...readCommands(deps),
    ...writeCommands(deps),
    ...transferCommands(deps),
    ...appendCommand(deps),
  }
}
