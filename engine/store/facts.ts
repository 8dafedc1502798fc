/** Facts about a store itself, and the refusals of a store that cannot be used. */
import { AppError } from '../errors.ts'
import { newId } from './ids.ts'

/**
 * `identity`: a random id. `served`: a new id at each start of a service. `copy`: how far an unfinished copy is.
 * `slots`: the number of slots that users are hashed into (MongoDB).
 */
export type FactName = 'identity' | 'served' | 'copy' | 'slots'

export interface Facts {
  read(name: FactName): Promise<string | null>
  /** null deletes the fact. */
  save(name: FactName, value: string | null): Promise<void>
}

/** The random id of the store, made at the first call. */
export async function identityOf(facts: Facts): Promise<string> {
  const known = await facts.read('identity')
  if (known !== null) return known
  const id = newId()
  await facts.save('identity', id)
  return id
}

/** AppError `conflict`, one line, when a copy into the store is unfinished. */
export async function refuseUnfinished(facts: Facts, name: string): Promise<void> {
  if ((await facts.read('copy')) === null) return
  const words = `${name} is the target of an unfinished copy: run the same copy again until it is whole`
  throw new AppError('conflict', words)
}

/** AppError `bad_request`, one line, when a newer Mailroom made the store, or one before commit 6e85fa0. */
export function checkVersion(
  name: string,
  version: number,
  known: { readonly oldest: number; readonly newest: number },
) {
  if (version >= known.oldest && version <= known.newest) return
  const words =
    version > known.newest
      ? `newer than the ${known.newest} this Mailroom knows: use a newer Mailroom`
      : `older than the ${known.oldest} this Mailroom knows: start the Mailroom of commit 6e85fa0 on it once, then this one`
  throw new AppError('bad_request', `${name} has schema version ${version}, ${words}`, {
    details: { version, ...known },
  })
}
