/**
 * Credentials of operators: the password and the sessions of the console, and the tokens of the admin API with their
 * scopes. The store has only hashes of them, so any process that shares the store knows them.
 */
import { createHash, randomBytes, scrypt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { Config } from './config.ts'
import { AppError, badParameter, notFound, toAppError } from './errors.ts'
import { sameText } from './secrets/seal.ts'
import { newId } from './store/ids.ts'
import type { Page, Store } from './store/port.ts'
import type { OperatorRecord, OperatorScope } from './store/records.ts'
import { openOperators } from './store/sqlite/index.ts'

export const operatorScopes = ['read', 'act', 'keys'] as const satisfies readonly OperatorScope[]

export interface ConsoleSession {
  /** Value of the cookie. */
  readonly id: string
  /** Each form of the session sends it. */
  readonly csrf: string
  /** Name of the session in the audit trail. */
  readonly label: string
  readonly endsAt: number
}

interface Deps {
  readonly store: Pick<Store, 'operators'>
  readonly config: Pick<
    Config,
    'MAILROOM_ADMIN_PASSWORD' | 'MAILROOM_HOST' | 'MAILROOM_ADMIN_PORT' | 'MAILROOM_ADMIN_HOST'
  >
  readonly now?: () => number
  /** Called with the label of an ended session or the id of a revoked token; resolves when every node knows. */
  readonly ended?: (id: string) => Promise<void>
}

const passwordId = 'console'
const sessionMs = 12 * 3_600_000
/** The oldest session ends when a further one begins. */
const mostSessions = 100

const derive = promisify<string, Buffer, number, Buffer>(scrypt)

export function createOperators({
  store: { operators },
  config,
  now = Date.now,
  ended = () => Promise.resolve(),
}: Deps) {
  // The password is in the hash: a new password ends all sessions.
  const hashOf = (id: string): string => tokenHash(`${id} ${config.MAILROOM_ADMIN_PASSWORD ?? ''}`)
  const sessions = createSessions({ operators, hashOf, now, ended })
  const host = config.MAILROOM_ADMIN_PORT === null ? config.MAILROOM_HOST : config.MAILROOM_ADMIN_HOST
  const consoleOn = config.MAILROOM_ADMIN_PASSWORD !== null || isLoopback(host)
  return {
    /** false = there is no console, because it has no password and its host is not loopback. */
    consoleOn,
    /** Generates the console's password if there is none. Returns a generated password, which is only shown here. */
    async ensurePassword(): Promise<string | null> {
      if (config.MAILROOM_ADMIN_PASSWORD !== null || !consoleOn || (await operators.get(passwordId)) !== null)
        return null
      const password = randomBytes(15).toString('base64url')
      const record = { id: passwordId, name: 'console', hash: await passwordHash(password), scopes: [] }
      // Of nodes that start together, one stores its password.
      return (await operators.add({ ...record, createdAt: now(), revokedAt: null })) ? password : null
    },
    /** Opens a session of 12 hours; null = wrong password. */
    login: async (password: string) => (consoleOn && (await fits(password)) ? sessions.open() : null),
    /** null = unknown or expired. */
    session: sessions.get,
    logout: sessions.end,
    /** null = unknown or revoked token. */
    async authenticate(token: string): Promise<OperatorRecord | null> {
      const [, id] = /^mra_([0-9a-f]+)_/.exec(token) ?? []
      const record = id === undefined ? null : await operators.get(id)
      return record !== null && record.revokedAt === null && sameText(record.hash, tokenHash(token)) ? record : null
    },
    /** All tokens, revoked ones included, oldest first. */
    tokens: async ({ offset, limit }: Page = { offset: 0, limit: Infinity }) =>
      (await operators.list()).filter(isToken).slice(offset, offset + limit),
    token: tokenOf,
    /** Returns the token `mra_…`, which is only shown here. `bad_request` without a scope. */
    async createToken(name: string, scopes: readonly OperatorScope[]) {
      if (scopes.length === 0) throw badParameter('scopes', `expected one or more of ${operatorScopes.join(', ')}`)
      const id = newId()
      const token = `mra_${id}_${secretText()}`
      const record = { id, name, hash: tokenHash(token), scopes, createdAt: now(), revokedAt: null }
      await operators.put(record)
      return { record, token }
    },
    /** `not_found` for an unknown id. */
    async revokeToken(id: string): Promise<OperatorRecord> {
      const known = await tokenOf(id)
      const revoked = known.revokedAt === null ? await operators.edit(id, { revokedAt: now() }) : known
      if (revoked === null) throw notFound('token', id)
      await ended(id)
      return revoked
    },
  }

  /** `not_found` for an unknown id. */
  async function tokenOf(id: string): Promise<OperatorRecord> {
    const known = await operators.get(id)
    if (known === null || !isToken(known)) throw notFound('token', id)
    return known
  }

  async function fits(password: string): Promise<boolean> {
    const set = config.MAILROOM_ADMIN_PASSWORD
    if (set !== null) return sameText(tokenHash(set), tokenHash(password))
    const [, salt, hash] = (await operators.get(passwordId))?.hash.split(':') ?? []
    return (
      salt !== undefined && hash !== undefined && sameText(`scrypt:${salt}:${hash}`, await passwordHash(password, salt))
    )
  }
}

/**
 * Makes a token of the admin API for a person who can read the data directory, also while the service runs: SQLite
 * locks each write, and the service reads a token at each use.
 */
export async function createLocalToken(config: Config, name: string, scopes: readonly OperatorScope[]) {
  if (config.MONGODB_URI !== null)
    throw new AppError('bad_request', '--local: MONGODB_URI is set; make the first token in the console')
  const path = join(config.MAILROOM_DATA_DIR, 'mailroom.sqlite')
  if (!existsSync(path))
    throw new AppError('bad_request', `MAILROOM_DATA_DIR: there is no ${path}; start the service once first`)
  const { operators, audit, close } = await openOperators(path)
  try {
    const made = await createOperators({ store: { operators }, config }).createToken(name, scopes)
    const done = {
      action: 'tokens create',
      target: made.record.id,
      details: { name, scopes: scopes.join() },
      status: 200,
    }
    await audit.append({ id: newId(), at: Date.now(), by: 'local', actorId: '', actorName: '', address: '', ...done })
    return made
  } finally {
    await close()
  }
}

/** Whether the record is a token: neither the password nor a session has scopes. */
function isToken({ scopes }: OperatorRecord): boolean {
  return scopes.length > 0
}

const sessionPrefix = 'session-'

type SessionDeps = Required<Pick<Deps, 'now' | 'ended'>> &
  Pick<Store, 'operators'> & { readonly hashOf: (id: string) => string }

function createSessions({ operators, hashOf, now, ended }: SessionDeps) {
  /** Each call gets the same object: the console keeps state of a session by it. */
  const known = new LRUCache<string, ConsoleSession>({ max: mostSessions })
  const recordId = ({ label }: Pick<ConsoleSession, 'label'>): string => sessionPrefix + label
  const sessionOf = (id: string, createdAt: number): ConsoleSession => {
    const [csrf, label] = [tokenHash(`csrf ${id}`).slice(-64), tokenHash(id).slice(-8)]
    return { id, csrf, label, endsAt: createdAt + sessionMs }
  }
  const end = async (sessions: readonly OperatorRecord[]): Promise<void> => {
    if (sessions.length > 0) await operators.remove(sessions.map(({ id }) => id))
    await Promise.all(sessions.map(({ id }) => ended(id.slice(sessionPrefix.length))))
  }
  const recordOf = async (id: string): Promise<OperatorRecord | null> => {
    const record = await operators.get(recordId(sessionOf(id, 0)))
    return record !== null && sameText(record.hash, hashOf(id)) ? record : null
  }
  return {
    async get(id: string): Promise<ConsoleSession | null> {
      const last = known.get(id)
      // While the store is away, a cached session is valid until its end.
      const createdAt = await recordOf(id).then(
        (record) => record?.createdAt ?? null,
        (error: unknown) => (last === undefined ? Promise.reject(toAppError(error)) : last.endsAt - sessionMs),
      )
      if (createdAt === null) return null
      const session = last ?? sessionOf(id, createdAt)
      known.set(id, session)
      return session.endsAt > now() ? session : null
    },
    async end(id: string): Promise<void> {
      known.delete(id)
      const record = await recordOf(id)
      if (record !== null) await end([record])
    },
    async open(): Promise<ConsoleSession> {
      const all = (await operators.list()).filter(({ id }) => id.startsWith(sessionPrefix))
      const isOver = ({ createdAt }: OperatorRecord, at: number): boolean =>
        createdAt + sessionMs <= now() || at <= all.length - mostSessions
      await end(all.filter(isOver))
      const session = sessionOf(secretText(), now())
      const { id, label } = session
      const fields = { hash: hashOf(id), scopes: [], createdAt: now(), revokedAt: null }
      await operators.put({ id: recordId(session), name: label, ...fields })
      return session
    },
  }
}

/** Throws `forbidden`, which names the scope, unless the token has it. */
export function checkScope(operator: OperatorRecord, scope: OperatorScope): void {
  if (operator.scopes.includes(scope)) return
  throw new AppError('forbidden', `Authorization: this token lacks the scope ${scope}`, {
    details: { parameter: 'Authorization' },
  })
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function secretText(): string {
  return randomBytes(24).toString('base64url')
}

function tokenHash(token: string): string {
  return `sha256:${createHash('sha256').update(token).digest('hex')}`
}

async function passwordHash(password: string, salt = randomBytes(16).toString('hex')): Promise<string> {
  return `scrypt:${salt}:${(await derive(password, Buffer.from(salt), 32)).toString('hex')}`
}
