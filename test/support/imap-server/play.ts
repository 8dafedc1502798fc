/**
 * What the tests of quirks share: a server that plays one, a session with short deadlines, and how to say what must
 * fail.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { SessionOptions } from '../../../engine/accounts/session-types.ts'
import { isAppError, type AppError, type ErrorCode } from '../../../engine/errors.ts'
import { mail } from '../mail.ts'
import { createImapServer, fullCapabilities, type HookAnswer, type Hooks, type ImapServer } from './index.ts'
import { openTest, type TestSession } from './session.ts'

export interface Played {
  readonly server: ImapServer
  readonly open: (options?: Partial<SessionOptions>) => Promise<TestSession>
  /** Opened, with INBOX selected. */
  readonly inbox: (commandTimeoutMs?: number) => Promise<TestSession>
  /** What clients sent: whole command lines. */
  readonly sent: () => string[]
}

/** User ann with password 'secret' and access token 'token-1'. */
export async function play(
  t: TestContext,
  hooks: Hooks = {},
  capabilities: readonly string[] = fullCapabilities,
): Promise<Played> {
  const server = await createImapServer({ users: { ann: { accessToken: 'token-1' } }, capabilities, hooks })
  t.after(() => server.close())
  const open = (options?: Partial<SessionOptions>) => openTest(t, server, { commandTimeoutMs: 800, ...options })
  return {
    server,
    open,
    inbox: async (commandTimeoutMs = 800) => {
      const session = await open({ commandTimeoutMs })
      await session.select('INBOX')
      return session
    },
    sent: () => server.log.filter(({ line }) => line.startsWith('C: ')).map(({ line }) => line.slice(3)),
  }
}

export function fill(server: ImapServer, count: number): void {
  for (let n = 1; n <= count; n += 1) server.append('ann', 'INBOX', mail({ to: 'ann@mail.example', subject: `m${n}` }))
}

/** The AppError of this code that the work must reject with. */
export async function failure(work: Promise<unknown>, code: ErrorCode): Promise<AppError> {
  const error = await work.then(
    () => assert.fail('was answered'),
    (thrown: unknown) => thrown,
  )
  assert(isAppError(error), String(error))
  assert.equal(error.code, code, error.message)
  return error
}

/** Answers one command in this way, the others as usual. */
export function on(wanted: string, answer: HookAnswer): NonNullable<Hooks['command']> {
  return ({ name }) => (name === wanted ? answer : undefined)
}

/** Every response with this in it says something else. */
export function replaced(pattern: RegExp, by: string): NonNullable<Hooks['send']> {
  return (response) => Buffer.from(response.toString('latin1').replace(pattern, by), 'latin1')
}

/** Longer than any test waits. */
export const long = (): AbortSignal => AbortSignal.timeout(15_000)

export function closings(session: TestSession): unknown[] {
  return session.events.filter(({ type }) => type === 'closed')
}
