/** Sessions against a test server: short deadlines, everything that they say kept. */
import type { TestContext } from 'node:test'
import { openSession, type Session } from '../../../engine/accounts/session/index.ts'
import type { SessionEvent, SessionOptions } from '../../../engine/accounts/session-types.ts'

export interface TestSession extends Session {
  readonly events: SessionEvent[]
}

export interface Target {
  readonly host: string
  readonly port: number
}

/** User 'ann', password 'secret', unless told otherwise. Closed when the test ends. */
export async function openTest(
  t: Pick<TestContext, 'after'>,
  server: Target,
  options: Partial<SessionOptions> = {},
): Promise<TestSession> {
  const session = await openSession(
    {
      server: server.host,
      port: server.port,
      useSsl: false,
      username: 'ann',
      auth: { password: 'secret' },
      allowPrivate: true,
      plaintext: 'private',
      connectTimeoutMs: 3000,
      loginTimeoutMs: 3000,
      commandTimeoutMs: 3000,
      ...options,
    },
    AbortSignal.timeout(60_000),
  )
  const events: SessionEvent[] = []
  session.listen((event) => events.push(event))
  t.after(() => session.close())
  return Object.defineProperty(session, 'events', { value: events }) as TestSession
}
