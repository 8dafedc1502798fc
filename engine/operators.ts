/**
 * Operators: who looks after the installation. The console has one password, the admin API has tokens with scopes. The
 * store keeps hashes only; sessions of the console live in memory and end with the process.
 */
import { createHash, randomBytes, scrypt } from 'node:crypto'
import { isIP } from 'node:net'
import { promisify } from 'node:util'
import type { Config } from './config.ts'
import { AppError, notFound } from './errors.ts'
import { sameText } from './secrets/seal.ts'
import { newId } from './store/ids.ts'
import type { Store } from './store/port.ts'
import type { OperatorRecord, OperatorScope } from './store/records.ts'

export const operatorScopes = ['read', 'act', 'keys'] as const satisfies readonly OperatorScope[]

export interface ConsoleSession {
  /** The value of the cookie. */
  readonly id: string
  /** What each form of the session has to send along. */
  readonly csrf: string
  readonly endsAt: number
}

export interface Operators {
  /** false: there is no console, since no password is set and the host is not loopback. */
  readonly consoleOn: boolean
  /**
   * Sees to the console's password. Answers it only when it was generated now: it is shown once. null with
   * MAILROOM_ADMIN_PASSWORD, or when there is no console.
   */
  ensurePassword(): Promise<string | null>
  /** Opens a session of 12 hours; null = the password is wrong. */
  login(password: string): Promise<ConsoleSession | null>
  /** null = unknown or over. */
  session(id: string): ConsoleSession | null
  logout(id: string): void
  /** The token in force; null = unknown or revoked. */
  authenticate(token: string): Promise<OperatorRecord | null>
  /** Tokens, also revoked ones, oldest first. */
  tokens(): Promise<OperatorRecord[]>
  /** Answers the token itself, `mra_…`: it is shown once. */
  createToken(
    name: string,
    scopes: readonly OperatorScope[],
  ): Promise<{ readonly record: OperatorRecord; readonly token: string }>
  /** `not_found` for an unknown id. */
  revokeToken(id: string): Promise<OperatorRecord>
}

interface Deps {
  readonly store: Pick<Store, 'operators'>
  readonly config: Pick<Config, 'MAILROOM_ADMIN_PASSWORD' | 'MAILROOM_HOST'>
  readonly now?: () => number
}

const passwordId = 'console'
const sessionMs = 12 * 3_600_000
/** The oldest session ends when there are more. */
const mostSessions = 100

const derive = promisify<string, Buffer, number, Buffer>(scrypt)

export function createOperators({ store: { operators }, config, now = Date.now }: Deps): Operators {
  const sessions = new Map<string, ConsoleSession>()
  const session = (id: string): ConsoleSession | null => {
    const found = sessions.get(id)
    return found !== undefined && found.endsAt > now() ? found : null
  }
  const consoleOn = config.MAILROOM_ADMIN_PASSWORD !== null || isLoopback(config.MAILROOM_HOST)
  const put = async (fields: Pick<OperatorRecord, 'id' | 'name' | 'hash' | 'scopes'>): Promise<OperatorRecord> => {
    const record = { ...fields, createdAt: now(), revokedAt: null }
    await operators.put(record)
    return record
  }
  return {
    consoleOn,
    async ensurePassword() {
      if (config.MAILROOM_ADMIN_PASSWORD !== null || !consoleOn || (await operators.get(passwordId)) !== null)
        return null
      const password = randomBytes(15).toString('base64url')
      await put({ id: passwordId, name: 'console', hash: await passwordHash(password), scopes: [] })
      return password
    },
    async login(password) {
      if (!consoleOn || !(await fits(password))) return null
      for (const { id, endsAt } of sessions.values()) if (endsAt <= now()) sessions.delete(id)
      const [oldest] = sessions.keys()
      if (sessions.size >= mostSessions && oldest !== undefined) sessions.delete(oldest)
      const opened = { id: secretText(), csrf: secretText(), endsAt: now() + sessionMs }
      sessions.set(opened.id, opened)
      return opened
    },
    session,
    logout: (id) => void sessions.delete(id),
    async authenticate(token) {
      const [, id] = /^mra_([0-9a-f]+)_/.exec(token) ?? []
      const record = id === undefined ? null : await operators.get(id)
      return record !== null && record.revokedAt === null && sameText(record.hash, tokenHash(token)) ? record : null
    },
    tokens: async () => (await operators.list()).filter(({ id }) => id !== passwordId),
    async createToken(name, scopes) {
      const id = newId()
      const token = `mra_${id}_${secretText()}`
      return { record: await put({ id, name, hash: tokenHash(token), scopes }), token }
    },
    async revokeToken(id) {
      const known = id === passwordId ? null : await operators.get(id)
      const revoked = known && (known.revokedAt === null ? await operators.edit(id, { revokedAt: now() }) : known)
      if (revoked === null) throw notFound('token', id)
      return revoked
    },
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

/** `forbidden`, naming the scope, unless the token has it. */
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
