/**
 * The floor of a first sync, as a process of its own: a bare imapflow loop that fetches what the index needs of each
 * INBOX and keeps nothing, again and again until its input ends. Answers its processor time, the number of
 * messages, and how long a newest page took, as a JSON line.
 */
import { ImapFlow } from 'imapflow'
import { indexedHeaders } from '../../../engine/accounts/session-types.ts'
import { inParallel } from './parallel.ts'

/** The one argument, as JSON. */
export interface BareSyncOptions {
  readonly host: string
  readonly port: number
  readonly password: string
  readonly mailboxes: readonly string[]
  /** Messages asked for at once. */
  readonly batch: number
}

export interface BareSyncFigures {
  readonly cpuMicros: number
  readonly messages: number
  /** From a login to the newest page, at the most. */
  readonly pageSeconds: number
}

const wanted = {
  ...{ uid: true, flags: true, internalDate: true, size: true, bodyStructure: true },
  headers: [...indexedHeaders],
}

async function readInbox(options: BareSyncOptions, user: string): Promise<number> {
  const { host, port, password, batch } = options
  const client = new ImapFlow({ host, port, secure: false, auth: { user, pass: password }, logger: false })
  const begun = performance.now()
  await client.connect()
  await client.list({ statusQuery: { messages: true, unseen: true } })
  const { uidNext } = await client.mailboxOpen('INBOX', { readOnly: true })
  let read = 0
  for (let to = uidNext - 1; to > 0; to -= batch) {
    const messages = await client.fetchAll(`${Math.max(1, to - batch + 1)}:${to}`, wanted, { uid: true })
    if (read === 0) pageMs = Math.max(pageMs, performance.now() - begun)
    read += messages.length
  }
  await client.logout()
  return read
}

let pageMs = 0
const options = JSON.parse(process.argv[2] ?? '') as BareSyncOptions
const before = process.cpuUsage()
let isOver = false
process.stdin.once('end', () => (isOver = true)).resume()
let messages = 0
do {
  const counts = await inParallel(options.mailboxes, 4, (user) => readInbox(options, user))
  messages += counts.reduce((sum, count) => sum + count, 0)
} while (!isOver)
const { user, system } = process.cpuUsage(before)
const figures: BareSyncFigures = { cpuMicros: user + system, messages, pageSeconds: pageMs / 1000 }
process.stdout.write(`${JSON.stringify(figures)}\n`)
