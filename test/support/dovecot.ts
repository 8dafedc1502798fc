/**
 * A private, real Dovecot on free loopback ports: any user name with one password, its own directory, gone afterwards.
 * Works as root and as anybody else.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { dovecotConfig, mailOwner, makeCertificate, raiseInotifyLimit } from './dovecot-config.ts'
import { endsWithUs } from './orphans.ts'
import { freePort } from './port.ts'
import { openRawImap, type RawImap } from './raw-imap.ts'
import { until } from './until.ts'

export interface DovecotOptions {
  /** Accepted for every user name. */
  readonly password?: string
  readonly format?: 'maildir' | 'sdbox'
  /** Also listen on a port with TLS and a self-signed certificate, and offer STARTTLS. */
  readonly tls?: boolean
  /** How many mailboxes will be in IDLE at once. */
  readonly mailboxes?: number
}

export interface Dovecot {
  readonly host: string
  readonly port: number
  readonly tlsPort: number | null
  readonly password: string
  /** What could not be prepared, in words; null when all is well. */
  readonly warning: string | null
  append(user: string, folder: string, raw: string | Buffer, flags?: readonly string[]): Promise<void>
  /** A connection that stays, for many appends or other commands. */
  connect(user: string): Promise<RawImap>
  /** Connections that are logged in now. */
  connections(): Promise<number>
  /** From the next login on only this password is accepted. */
  setPassword(password: string): Promise<void>
  /** Clean end: clients are told BYE. The mail stays. */
  stop(): Promise<void>
  /** Every process at once by SIGKILL. The mail stays. */
  kill(): Promise<void>
  /** Again on the same ports with the same mail. */
  start(): Promise<void>
  restart(): Promise<void>
  log(): string
  /** Stops and removes everything. */
  remove(): Promise<void>
}

const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin` }
const run = promisify(execFile)

export async function startDovecot(options: DovecotOptions = {}): Promise<Dovecot> {
  const dir = mkdtempSync(join(tmpdir(), 'mr-dovecot-'))
  const owner = mailOwner()
  chmodSync(dir, 0o755)
  mkdirSync(join(dir, 'mail'))
  chownSync(join(dir, 'mail'), owner.uid, owner.gid)
  if (options.tls) makeCertificate(dir)
  const warning = raiseInotifyLimit((options.mailboxes ?? 50) * 2)
  const host = '127.0.0.1'
  const port = await freePort()
  const tlsPort = options.tls ? await freePort() : null
  const file = join(dir, 'dovecot.conf')
  const daemon = createDaemon(dir, file)
  let password = options.password ?? 'correct-horse'

  const configure = (): void => {
    const settings = { dir, port, tlsPort, format: options.format ?? 'maildir', password } as const
    writeFileSync(file, dovecotConfig(settings), { mode: 0o644 })
  }
  const start = async (): Promise<void> => {
    dropLocks(dir)
    await daemon.spawn()
    const explain = daemon.log
    const answers = async (): Promise<boolean> => {
      // Soon after a kill its sockets may still be held by a process that is dying: it gives up then.
      if (!daemon.alive()) await daemon.spawn()
      return greets(host, port)
    }
    await until(`dovecot on port ${port}`, answers, { everyMs: 50, explain })
  }
  const open = (user: string) => openRawImap({ host, port, user, password })

  configure()
  try {
    await start()
  } catch (error) {
    await daemon.kill()
    rmSync(dir, { recursive: true, force: true })
    throw error
  }
  return {
    host,
    port,
    tlsPort,
    get password() {
      return password
    },
    warning,
    async append(user, folder, raw, flags) {
      const client = await open(user)
      await client.append(folder, [raw], flags)
      await client.close()
    },
    connect: open,
    async connections() {
      const { stdout } = await run('doveadm', ['-c', file, 'who', '-1'], { env })
      return stdout.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('username')).length
    },
    async setPassword(next) {
      password = next
      configure()
      await daemon.stop()
      await start()
    },
    stop: daemon.stop,
    kill: daemon.kill,
    start,
    async restart() {
      await daemon.stop()
      await start()
    },
    log: daemon.log,
    async remove() {
      await daemon.stop()
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** The processes: one group under the master, so that all of them end with it, however it ends. */
function createDaemon(dir: string, file: string) {
  let child: ChildProcess | null = null
  let output = ''

  const signalGroup = (signal: NodeJS.Signals): void => {
    try {
      if (child?.pid !== undefined) process.kill(-child.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  let disown = (): void => undefined
  const alive = (): boolean => child !== null && child.exitCode === null && child.signalCode === null

  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (child === null) return
    if (alive()) {
      const exited = once(child, 'exit')
      if (signal === 'SIGTERM') child.kill('SIGTERM')
      else signalGroup('SIGKILL')
      const tooLong = setTimeout(() => signalGroup('SIGKILL'), 10_000)
      await exited
      clearTimeout(tooLong)
    }
    signalGroup('SIGKILL')
    disown()
    child = null
  }

  return {
    alive,
    spawn: async (): Promise<void> => {
      await end('SIGKILL')
      output = ''
      child = spawn('dovecot', ['-F', '-c', file], { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env })
      disown = endsWithUs(() => signalGroup('SIGKILL'))
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
      child.on('error', (error) => (output += error.message))
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    log: (): string => {
      const path = join(dir, 'dovecot.log')
      return `dovecot said: ${output}\n${existsSync(path) ? readFileSync(path, 'utf8').slice(-4000) : ''}`
    },
  }
}

/** Of those that were killed; a living Dovecot waits a minute or two before it believes that nobody holds them. */
function dropLocks(dir: string): void {
  for (const lock of globSync('mail/**/*.lock', { cwd: dir })) rmSync(join(dir, lock), { force: true })
}

/** Answers true when the port greets as an IMAP server. */
async function greets(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port })
  try {
    const [chunk] = (await once(socket, 'data', { signal: AbortSignal.timeout(2000) })) as [Buffer]
    return chunk.toString().startsWith('* OK')
  } finally {
    socket.destroy()
  }
}
