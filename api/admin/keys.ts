/** Developers with their API keys, and the tokens of the admin API. */
import type { z } from 'zod'
import type { Authenticated, DeveloperRecord, Engine, OperatorRecord, OperatorScope, Page } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { countBy, orNull } from './rows.ts'
import type { developerKey, developerView, tokenMade, tokenView } from './views.ts'

export type DeveloperRow = z.input<typeof developerView>
export type DeveloperKey = z.input<typeof developerKey>
export type TokenRow = z.input<typeof tokenView>
export type TokenMade = z.input<typeof tokenMade>

function present({ id, name = '', apiKey, revokedAt, createdAt }: DeveloperRecord) {
  return { id, name, api_key: apiKey, revoked: orNull(revokedAt), created: seconds(createdAt) }
}

function presentKey({ developer, secret }: Authenticated): DeveloperKey {
  return { ...present(developer), api_secret: secret }
}

/** Oldest first. */
export async function listDevelopers({ store }: Engine, page: Page): Promise<DeveloperRow[]> {
  const developers = await store.developers.list(page)
  const accounts = countBy(await store.accounts.places({}), ({ developerId }) => developerId)
  const rows = developers.map(async (developer) => ({
    ...present(developer),
    users: await store.users.count(developer.id),
    accounts: accounts[developer.id] ?? 0,
  }))
  return Promise.all(rows)
}

export async function createDeveloper({ developers }: Engine, name: string): Promise<DeveloperKey> {
  return presentKey(await developers.create(name))
}

/** A new secret for the same key. `not_found` for an unknown id, here and below. */
export async function rotateDeveloper({ developers }: Engine, id: string): Promise<DeveloperKey> {
  return presentKey(await developers.rotate(id))
}

export async function setDeveloperRevoked(engine: Engine, id: string, revoked: boolean): Promise<DeveloperRow> {
  const { store, developers } = engine
  const developer = await developers.setRevoked(id, revoked)
  const accounts = await store.accounts.places({ developerId: id })
  return { ...present(developer), users: await store.users.count(id), accounts: accounts.length }
}

function presentToken({ id, name, scopes, createdAt, revokedAt }: OperatorRecord): TokenRow {
  return { id, name, scopes: [...scopes], created: seconds(createdAt), revoked: orNull(revokedAt) }
}

/** Oldest first, revoked ones too. */
export async function listTokens({ operators }: Engine): Promise<TokenRow[]> {
  return (await operators.tokens()).map(presentToken)
}

export async function createToken(
  { operators }: Engine,
  name: string,
  scopes: readonly OperatorScope[],
): Promise<TokenMade> {
  const { record, token } = await operators.createToken(name, scopes)
  return { ...presentToken(record), token }
}

export async function revokeToken({ operators }: Engine, id: string): Promise<TokenRow> {
  return presentToken(await operators.revokeToken(id))
}
