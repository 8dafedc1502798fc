/**
 * Whatever a server sends: the process lives, every command is answered or ends within its deadline with an AppError.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { suite, test } from 'node:test'
import { isAppError } from '../../engine/errors.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { literalOf } from '../support/mail.ts'
import { fill, long } from '../support/imap-server/play.ts'
import { openTest, type TestSession } from '../support/imap-server/session.ts'
import { until } from '../support/until.ts'
import type { Session } from '../../engine/accounts/session/index.ts'

const deadlineMs = 80
/** A deadline is seen at most a quarter late; the rest is for a busy machine. */
const boundMs = 4000

const words = [
  '* ', '+ ', 'OK', 'NO', 'BAD', 'BYE', 'FETCH', 'EXISTS', 'EXPUNGE', 'LIST', 'STATUS', 'SEARCH', 'VANISHED', 'CAPABILITY',
  ' (', ')', '[', ']', '"', '\\', '{3}\r\n', '{99999999999}\r\n', '{5', '}', '\r\n', '\n', '\0', ' ', 'UID', 'FLAGS', 'BODY[]',
  'BODY[HEADER.FIELDS (A)]', 'BODYSTRUCTURE', 'NIL', '1', '4294967296', '1:*', '*', '\\Seen', '[READ-ONLY]', '[UIDVALIDITY 1]',
] // prettier-ignore

const noise = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(fc.constantFrom(...words), { maxLength: 20 }).map((parts) => Buffer.from(parts.join(''))),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
)

async function outcome(work: Promise<unknown>, what: string): Promise<void> {
  const started = performance.now()
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  assert(performance.now() - started < boundMs, `${what} took ${performance.now() - started} ms`)
  assert(error === null || isAppError(error), `${what}: ${String(error)}`)
}

const commands: Record<string, (session: Session) => Promise<unknown>> = {
  list: (session) => session.list({ status: true }),
  select: (session) => session.select('INBOX', { refresh: true }),
  status: (session) => session.status('Sent'),
  fetch: (session) => session.fetchIndex('1:*'),
  flags: (session) => session.fetchFlags('1:*', '1'),
  search: (session) => session.searchUids('1:*'),
  section: (session) => session.fetchSection(1, '1', 100),
  store: (session) => session.store(1, { add: ['\\Seen'], remove: [] }),
  copy: (session) => session.copy(1, 'Sent'),
  append: (session) => session.append('Sent', literalOf('a: b\r\n\r\n'), [], 0),
  idle: (session) => session.idle(20, long()),
}

/** INBOX selected. The deadline is for the noise: where the machine is too busy to select in it, again. */
function selected(server: ImapServer): Promise<TestSession> {
  return until('INBOX is selected', async () => {
    const session = await openTest({ after: () => undefined }, server, { commandTimeoutMs: deadlineMs })
    try {
      await session.select('INBOX')
      return session
    } catch (error) {
      await session.close()
      throw error
    }
  })
}

async function fuzzServer(): Promise<ImapServer> {
  const server = await createImapServer({ users: { ann: {} } })
  fill(server, 3)
  return server
}

suite('a server that sends noise', () => {
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', note)

  test('in the middle of its answers', async (t) => {
    const server = await fuzzServer()
    t.after(() => server.close())
    const property = fc.asyncProperty(
      fc.constantFrom(...Object.keys(commands)),
      noise,
      fc.nat({ max: 6 }),
      fc.constantFrom('before', 'instead', 'within'),
      async (name, bytes, at, how) => {
        server.hooks = {}
        const session = await selected(server)
        let count = 0
        server.hooks = {
          send(response) {
            count += 1
            if (count - 1 !== at) return response
            if (how === 'instead') return bytes
            const cut = how === 'within' ? Math.floor(response.length / 2) : 0
            return Buffer.concat([response.subarray(0, cut), bytes, response.subarray(cut)])
          },
        }
        await outcome(commands[name]?.(session) ?? Promise.resolve(), name)
        await outcome(session.noop(), 'noop')
        server.hooks = {}
        await outcome(session.close(), 'close')
      },
    )
    await fc.assert(property, { numRuns: 120, seed: 20_260_101, interruptAfterTimeLimit: 20_000 })
    assert.deepEqual(unhandled, [])
  })

  test('from the greeting on', async (t) => {
    const server = await fuzzServer()
    t.after(() => server.close())
    const property = fc.asyncProperty(noise, fc.nat({ max: 5 }), async (bytes, at) => {
      let count = 0
      server.hooks = {
        send(response) {
          count += 1
          return count - 1 === at ? bytes : response
        },
      }
      const limits = { connectTimeoutMs: deadlineMs, loginTimeoutMs: deadlineMs, commandTimeoutMs: deadlineMs }
      await outcome(
        openTest({ after: () => undefined }, server, limits).then((session) => session.close()),
        'login',
      )
    })
    await fc.assert(property, { numRuns: 40, seed: 20_260_102, interruptAfterTimeLimit: 20_000 })
    assert.deepEqual(unhandled, [])
  })
})
