/**
 * The first token of the admin API, for who can read the data directory. One row is written beside a service that may
 * be running: SQLite's own lock puts the two writes one after the other, and the service looks each token up when it is
 * used.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { AppError } from './errors.ts'
import { createOperators, type Operators } from './operators.ts'
import type { OperatorScope } from './store/records.ts'
import { openOperators } from './store/sqlite/operators.ts'

export async function createLocalToken(
  config: Config,
  name: string,
  scopes: readonly OperatorScope[],
): ReturnType<Operators['createToken']> {
  if (config.MONGODB_URI !== null)
    throw new AppError('bad_request', '--local: MONGODB_URI is set; make the first token in the console')
  const path = join(config.MAILROOM_DATA_DIR, 'mailroom.sqlite')
  if (!existsSync(path))
    throw new AppError('bad_request', `MAILROOM_DATA_DIR: there is no ${path}; start the service once first`)
  const { operators, close } = openOperators(path)
  try {
    return await createOperators({ store: { operators }, config }).createToken(name, scopes)
  } finally {
    close()
  }
}
