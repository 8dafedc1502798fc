/** The stage of a bench: Dovecot with many mailboxes, the service with one user for each, a receiver. */
import { startDovecot, type Dovecot } from '../../support/dovecot.ts'
import { startReceiver, type CallbackReceiver } from '../../support/callbacks.ts'
import { startService, type Service, type ServiceOptions } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { benchMail } from './mail.ts'
import { createUser } from '../../support/users.ts'
import { inParallel } from './parallel.ts'
import { openBenchStore, type StoreKind } from './options.ts'

export interface FleetOptions {
  readonly accounts: number
  readonly store: StoreKind
  readonly env?: ServiceOptions['env']
  /** Messages in each INBOX before it is connected; at least 1, which tells that it was synced. */
  readonly mailPerAccount?: number
}

export interface Fleet {
  readonly dovecot: Dovecot
  readonly service: Service
  readonly receiver: CallbackReceiver
  /** null = the embedded store. */
  readonly mongoUri: string | null
  /** Mailbox names: u0@bench.example, u1@… */
  readonly mailboxes: readonly string[]
  /** User ids in the order of `mailboxes`, once `connect` was called. */
  readonly users: readonly string[]
  /** One user with one email account for each mailbox. Resolves when each lists its mail. */
  connect(): Promise<void>
  remove(): Promise<void>
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const parts = new AsyncDisposableStack()
  try {
    return await build(options, parts)
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

/** Whatever was started is on the stack, and goes in reverse. */
async function build(options: FleetOptions, parts: AsyncDisposableStack): Promise<Fleet> {
  const mailboxes = Array.from({ length: options.accounts }, (_, index) => `u${index}@bench.example`)
  const users: string[] = []
  const store = openBenchStore(options.store)
  parts.defer(() => store.remove())
  const dovecot = await startDovecot({ mailboxes: options.accounts * 2 })
  parts.defer(() => dovecot.remove())
  const receiver = await startReceiver()
  parts.defer(() => receiver.close())
  const service = await startService({ ...store.service, env: options.env ?? {} })
  parts.defer(() => service.remove())
  await inParallel(mailboxes, 8, (name) => fill(dovecot, name, options.mailPerAccount ?? 1))
  return {
    dovecot,
    service,
    receiver,
    mongoUri: store.service.mongoUri ?? null,
    mailboxes,
    users,
    async connect() {
      const status = { status_callback_url: `${receiver.url}/status` }
      const ids = await inParallel(mailboxes, 8, (email) => createUser(service, dovecot, email, status))
      users.splice(0, users.length, ...ids)
      await inParallel(users, 8, (id) =>
        until(`the mail of user ${id}`, () => listsMail(service, id), { withinMs: 300_000, everyMs: 200 }),
      )
    },
    remove: () => parts.disposeAsync(),
  }
}

async function fill(dovecot: Dovecot, name: string, count: number): Promise<void> {
  const client = await dovecot.connect(name)
  await client.append(
    'INBOX',
    Array.from({ length: count }, (_, index) => benchMail(`old-${name.split('@')[0]}-${index}`, name)),
  )
  await client.close()
}

async function listsMail(service: Service, user: string): Promise<boolean> {
  return (await service.list(`/lite/users/${user}/email_accounts/0/messages?limit=1`)).length > 0
}
