/**
 * One mailbox on the scripted server, and a process that serves it: the real registry, actors, sessions and store, in
 * virtual time. The process may crash at any answer of the mail server and at any call of the store; then it is started
 * anew on the same store.
 */
import { createAccounts, type Accounts } from '../../../../engine/accounts/index.ts'
import type { ChangeListener } from '../../../../engine/accounts/types.ts'
import { createBudget } from '../../../../engine/budget.ts'
import { readConfig } from '../../../../engine/config.ts'
import { isAppError } from '../../../../engine/errors.ts'
import { createHttpClient } from '../../../../engine/net/http.ts'
import { createOAuthServers } from '../../../../engine/oauth/providers.ts'
import { createTokens } from '../../../../engine/oauth/tokens.ts'
import { silentLogger, type Logger } from '../../../../engine/observe/log.ts'
import { createMetrics } from '../../../../engine/observe/metrics.ts'
import { createSealer, sealCredential } from '../../../../engine/secrets/seal.ts'
import { newId } from '../../../../engine/store/ids.ts'
import type { Store } from '../../../../engine/store/port.ts'
import type { AccountRecord, ChangeRecord, MessageRecord } from '../../../../engine/store/records.ts'
import { createImapServer, type HookCall, type ImapServer } from '../../../support/imap-server/index.ts'
import { accountRecord, userRecord } from '../../../support/records.ts'
import type { VirtualTime } from '../../../support/virtual-time.ts'
import { createFaults, type Faults } from './faults.ts'
import { createTruth, flagsText, subjectOf, Violation, type Truth } from './truth.ts'

const sealer = createSealer(Buffer.alloc(32, 'model'))
/** As in production, but for limits. A server that does not push is asked less: half the time is there. */
const usual = {
  MAILROOM_ALLOW_PRIVATE: '1',
  MAILROOM_LOGINS_PER_MINUTE: '0',
  MAILROOM_UIDVALIDITY_CHANGES: '1000',
  MAILROOM_INBOX_POLL: '45s',
}

/** A life of the process, from its start to its end or crash. */
interface Life {
  readonly accounts: Accounts
  readonly store: Store
  /** Resolves when it has crashed. */
  readonly died: Promise<null>
  readonly kill: () => void
}

export type Command = (accounts: Accounts) => Promise<unknown>

export interface World {
  readonly server: ImapServer
  readonly time: VirtualTime
  readonly truth: Truth
  readonly faults: Faults
  readonly account: AccountRecord
  readonly store: Store
  readonly life: () => Life
  /** The account is connected: what lies in the mailbox by now is its history. */
  readonly begin: () => void
  /** Does it in the middle of our work. */
  readonly after: (moment: Moment, deed: () => Promise<void>) => void
  /** The process ends, and starts again on the same store so much later. */
  readonly crash: (downMs: number) => void
  /** A command of ours goes on while other things happen. */
  readonly give: (what: string, command: Command, subject?: string) => void
  /** Another step is taken. `isHarmless`: what goes on is not disturbed by it. */
  readonly next: (isHarmless: boolean) => void
  /** The engine may not have opened the folder yet: what lies in it may be its history. */
  readonly isNew: (path: string) => boolean
  /** Until index and changes are right. Rejects with what is wrong when they are not within an hour. */
  readonly quiet: () => Promise<void>
  readonly message: (subject: string) => Promise<MessageRecord | null>
  readonly changes: () => Promise<ChangeRecord[]>
  readonly close: () => Promise<void>
}

export interface WorldOptions {
  readonly time: VirtualTime
  readonly store: Store
  readonly capabilities: readonly string[]
  readonly settings: Readonly<Record<string, string>>
}

/** So many answers of the mail server and the store, or writes of the index, from now. */
export interface Moment {
  readonly of: 'answers' | 'writes'
  readonly count: number
}

/** Most of what is stored answers promises; the calls of a process that has crashed are never answered. */
function gated(store: Store, time: VirtualTime, isDead: () => boolean, step: (what: Moment['of']) => void): Store {
  const never = new Promise<never>(() => undefined)
  const call = (part: string, run: () => unknown): unknown => {
    step('answers')
    if (isDead()) return never
    const answer = run()
    if (!(answer instanceof Promise)) return answer
    const end = time.begin()
    return answer.finally(end).then((value: unknown) => {
      step('answers')
      if (part === 'sync') step('writes')
      return isDead() ? never : value
    })
  }
  const aggregate = (name: string, part: object): object =>
    new Proxy(part, {
      get(target, method) {
        const value: unknown = Reflect.get(target, method)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => call(name, () => Reflect.apply(value, target, args) as unknown)
      },
    })
  const entries = Object.entries(store).map(([name, part]) => [
    name,
    typeof part === 'object' && part !== null ? aggregate(name, part as object) : (part as unknown),
  ])
  return Object.fromEntries(entries) as Store
}

const silentListener: ChangeListener = {
  plan: () => Promise.resolve([]),
  planOld: () => Promise.resolve([]),
  readAhead: () => Promise.resolve(),
  stored: () => undefined,
  planStatus: () => Promise.resolve([]),
  statusStored: () => undefined,
  initialSyncDone: () => Promise.resolve(),
}

export async function openWorld({ time, store, capabilities, settings }: WorldOptions): Promise<World> {
  const server = await createImapServer({
    users: { ann: { folders: { INBOX: [], Archive: ['\\Archive'], Sent: ['\\Sent'] } } },
    capabilities,
  })
  const truth = createTruth(server)
  const user = userRecord(newId(), { emailAddresses: ['ann@mail.example'] })
  const account = accountFor(server, user, time.now())
  await store.users.create(user)
  await store.accounts.create(account)
  const problems: string[] = []
  let sudden: { of: Moment['of']; left: number; readonly deed: () => Promise<void> }[] = []
  let life: Life | null = null
  const step = (what: Moment['of']): void => {
    for (const one of sudden) if (one.of === what) one.left -= 1
    const due = sudden.filter(({ left }) => left < 0)
    if (due.length === 0) return
    sudden = sudden.filter(({ left }) => left >= 0)
    for (const { deed } of due) void deed().catch((error: unknown) => problems.push(String(error)))
    truth.see()
  }
  function crash(downMs: number): void {
    const dead = living()
    dead.kill()
    const startAgain = (): void => {
      if (life === dead) life = start()
    }
    if (downMs === 0) startAgain()
    else setTimeout(startAgain, downMs)
  }
  const living = (): Life => {
    if (life === null) throw new Error('the process is not started yet')
    return life
  }
  const faults = createFaults(server, time)
  server.hooks = {
    ...faults.hooks,
    send(response: Buffer, call: HookCall | null) {
      time.active()
      truth.see()
      step('answers')
      return faults.hooks.send(response, call)
    },
  }

  function start(): Life {
    const { promise: died, resolve } = Promise.withResolvers<null>()
    let dead = false
    const own = gated(
      store,
      time,
      () => dead,
      (what) => (dead ? undefined : step(what)),
    )
    const accounts = createAccounts(accountsDeps(own, time, settings, problems))
    const one: Life = {
      accounts,
      store: own,
      died,
      kill() {
        dead = true
        resolve(null)
        server.dropConnections()
        void accounts.stopAll()
      },
    }
    void own.accounts.get(account.id).then((record) => {
      if (record !== null) accounts.start(record)
    })
    return one
  }

  let commands: (readonly [string, Promise<unknown>])[] = []
  let settledSeq = 0
  let [steps, quietAt, calm] = [0, -1, false]
  let opened: ReadonlySet<string> = new Set()

  async function quiet(): Promise<void> {
    faults.clear()
    for (const [what, command] of commands) {
      await time.passUntil(command, 600_000).catch((error: unknown) => {
        throw new Violation(`${what}: ${String(error)}`)
      })
    }
    commands = []
    sudden = []
    let wrong: string | null = 'nothing was looked at'
    for (let ms = 100_000, waited = 0; wrong !== null && waited < 3_600_000; ms *= 1.5) {
      waited += ms
      await time.pass(ms)
      wrong = await check()
    }
    if (problems.length > 0) throw new Violation(problems.join('\n'))
    if (wrong !== null) throw new Violation(`not within an hour: ${wrong}`)
    const { changes, subjects } = await told()
    truth.settle(changes, subjects)
    quietAt = steps
    opened = new Set(server.folders('ann').map(({ name }) => name))
    settledSeq = changes.at(-1)?.seq ?? settledSeq
  }

  /** Rule 4: who wrote reads it. */
  async function mustShow(what: string, subject: string, isAlone: () => boolean): Promise<void> {
    const row = (await store.messages.older(account.id, null, 1000)).find((one) => one.subject === subject)
    const index = (row?.placements ?? []).map(({ path, uid, flags }) => `${path} ${uid} [${flagsText(flags)}]`)
    const real = [...(truth.mailbox.get(subject) ?? [])].map(([path, at]) => `${path} ${at.uids.join()} [${at.flags}]`)
    if (isAlone() && index.sort().join() !== real.sort().join())
      throw new Violation(`${what} was answered: index ${index.join()}, server ${real.join()}`)
  }

  async function told() {
    const changes = await store.changes.since(account.id, settledSeq, 20_000)
    const rows = await store.messages.byIds(account.id, [...new Set(changes.map(({ messageId }) => messageId))])
    return { changes, subjects: new Map(rows.map(({ id, subject }) => [id, subject])) }
  }

  async function check(): Promise<string | null> {
    truth.see()
    const { changes, subjects } = await told()
    for (const [index, { seq, at }] of changes.entries()) {
      if (seq !== settledSeq + index + 1) throw new Violation(`seq ${seq} follows ${settledSeq + index}`)
      if (at < (changes[index - 1]?.at ?? 0)) throw new Violation(`seq ${seq} is earlier than the one before`)
    }
    return truth.check(changes, subjects) ?? (await checkIndex(store, server, account.id, truth))
  }

  return {
    ...{ server, time, truth, faults, account, store, quiet },
    life: living,
    begin() {
      truth.begin()
      life = start()
    },
    after: ({ of, count: left }, deed) => void sudden.push({ of, left, deed }),
    crash,
    give(what, command, subject) {
      const { accounts, died } = living()
      const [begun, wasCalm] = [steps, calm]
      const isAlone = (): boolean => wasCalm && steps === begun
      const answered = command(accounts).then(
        () => (isAlone() && subject !== undefined ? mustShow(what, subject, isAlone) : undefined),
        (error: unknown) => expected(error, isAlone()),
      )
      const over = Promise.race([answered, died])
      // Its failure is waited for at the next quiet point.
      over.catch(() => undefined)
      commands.push([what, over])
    },
    next(isHarmless) {
      if (isHarmless) return
      calm = quietAt === steps
      steps += 1
    },
    isNew: (path) => !opened.has(path),
    message: async (subject) =>
      (await store.messages.older(account.id, null, 1000)).find((row) => row.subject === subject) ?? null,
    changes: () => store.changes.since(account.id, 0, 20_000),
    async close() {
      sudden = []
      const over = life?.accounts.stopAll() ?? Promise.resolve()
      await time.passUntil(over, 60_000)
      await server.close()
      time.clear()
    },
  }
}

function accountFor(server: ImapServer, user: Parameters<typeof accountRecord>[0], now: number): AccountRecord {
  const id = newId()
  return accountRecord(user, {
    id,
    email: 'ann@mail.example',
    server: server.host,
    port: server.port,
    useSsl: false,
    username: 'ann',
    sealedCredential: sealCredential(sealer, id, { kind: 'password', password: 'secret' }),
    createdAt: now,
  })
}

const http = createHttpClient({ allowPrivate: true })

function accountsDeps(
  store: Store,
  time: VirtualTime,
  settings: WorldOptions['settings'],
  problems: string[],
): Parameters<typeof createAccounts>[0] {
  const config = readConfig({ ...usual, ...settings })
  const keep = (fields: unknown, message?: string): void => {
    const { err } = fields as { readonly err?: Error }
    problems.push(`${message ?? ''}: ${err?.stack ?? JSON.stringify(fields)}`)
  }
  const log: Logger = { ...silentLogger, error: keep, fatal: keep }
  return {
    ...{ config, log, store, sealer, listener: silentListener, now: time.now },
    metrics: createMetrics(),
    budget: createBudget(config.MAILROOM_BUFFER_MAX),
    tokens: createTokens({ store, sealer, servers: createOAuthServers({ config, http }) }),
  }
}

/** null = the index is what the server has, and counts are what the index has. */
async function checkIndex(store: Store, server: ImapServer, accountId: string, truth: Truth): Promise<string | null> {
  const rows = await store.messages.older(accountId, null, 1000)
  const lines = (all: Iterable<string>): string => [...all].sort().join('; ')
  const subjects = new Set<string>()
  for (const { subject, id } of rows) {
    if (subjects.has(subject)) return `${subject} is two messages`
    subjects.add(subject)
    truth.sameId(subject, id)
  }
  const folders = await store.folders.list(accountId)
  const real = server.folders('ann')
  const paths = lines(folders.map(({ path }) => path))
  const realPaths = lines(real.map(({ name }) => name))
  if (paths !== realPaths) return `folders: index ${paths}, server ${realPaths}`
  for (const { name, messages } of real) {
    const folder = folders.find(({ path }) => path === name)
    if (folder === undefined) return `no folder ${name}`
    const placed = rows.flatMap(({ subject, placements }) =>
      placements.flatMap((at) => (at.folderId === folder.id ? [{ subject, ...at }] : [])),
    )
    const index = lines(placed.map(({ subject, uid, flags }) => `${uid} ${subject} [${flagsText(flags)}]`))
    const there = lines(messages.map(({ uid, raw, flags }) => `${uid} ${subjectOf(raw)} [${flagsText(flags)}]`))
    if (index !== there) return `${name}: index ${index}, server ${there}`
    const unseen = placed.filter(({ flags }) => !flags.includes('\\Seen')).length
    const { counts, completeAt } = folder
    if (counts.messages !== placed.length || counts.unseen !== unseen)
      return `${name}: counted ${counts.messages}, ${counts.unseen} unseen; has ${placed.length}, ${unseen}`
    if (completeAt === null) return `${name} is not complete`
  }
  const gone = await store.messages.gone(accountId, Number.MAX_SAFE_INTEGER, 1)
  return gone.length === 0 ? null : `${gone[0]?.subject ?? ''} is held`
}

/** What the API may say where it cannot do it. Where nothing else happens it can. */
function expected(error: unknown, isAlone: boolean): void {
  if (!isAppError(error) || error.code === 'internal' || isAlone)
    throw new Violation(`a command failed with ${error instanceof Error ? (error.stack ?? '') : String(error)}`)
}
