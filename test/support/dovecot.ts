/**
 * A private, real Dovecot on free loopback ports: any user name with one password, its own directory, gone afterwards.
 * Works as root and as anybody else.
 */
import { execFile } from 'node:child_process'
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
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { appendOnce, createDaemon, startImap, type PrivateServer } from './daemon.ts'
import { dovecotConfig, mailOwner, makeCertificate, makeVirtual, raiseInotifyLimit } from './dovecot-config.ts'
import { freePort } from './port.ts'
import { openRawImap } from './raw-imap.ts'

export interface DovecotOptions {
  /** Accepted for every user name. */
  readonly password?: string
  readonly format?: 'maildir' | 'sdbox' | 'mdbox'
  /** The only capabilities that it advertises. */
  readonly capability?: string
  /** See DovecotSettings. */
  readonly namespaces?: boolean
  /** Also listen on a port with TLS and a self-signed certificate, and offer STARTTLS. */
  readonly tls?: boolean
  /** How many mailboxes will be in IDLE at once. */
  readonly mailboxes?: number
}

export interface Dovecot extends PrivateServer {
  readonly tlsPort: number | null
  /** What could not be prepared, in words; null when all is well. */
  readonly warning: string | null
  /** Into INBOX as the mail system does it, in the format maildir; also while it is stopped. */
  deliver(user: string, raw: string): void
  /** Connections that are logged in now. */
  connections(): Promise<number>
  /** Another UIDVALIDITY for the folder; the mail stays. */
  renumber(user: string, folder: string, uidValidity: number): Promise<void>
  /** Every process at once by SIGKILL. The mail stays, as it does over every restart. */
  kill(): Promise<void>
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
  if (options.namespaces) makeVirtual(dir)
  const warning = raiseInotifyLimit((options.mailboxes ?? 50) * 2)
  const host = '127.0.0.1'
  const port = await freePort()
  const tlsPort = options.tls ? await freePort() : null
  const file = join(dir, 'dovecot.conf')
  const daemon = createDaemon(() => ['dovecot', '-F', '-c', file], env)
  const log = (): string => `dovecot said: ${daemon.output()}\n${tailOf(join(dir, 'dovecot.log'))}`
  let delivered = 0
  let password = options.password ?? 'correct-horse'

  const configure = (): void => {
    const { format = 'maildir', capability = null, namespaces = false } = options
    const settings = { dir, port, tlsPort, format, password, capability, namespaces }
    writeFileSync(file, dovecotConfig(settings), { mode: 0o644 })
  }
  const start = async (): Promise<void> => {
    dropLocks(dir)
    await startImap(daemon, { host, port }, log)
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
    append: (user, ...letter) => appendOnce(open(user), ...letter),
    connect: open,
    deliver(user, raw) {
      const folder = join(dir, 'mail', user, 'maildir', 'new')
      const path = join(folder, `${Date.now()}.${(delivered += 1)}.test`)
      writeFileSync(path, raw)
      chownSync(path, owner.uid, owner.gid)
    },
    async connections() {
      const { stdout } = await run('doveadm', ['-c', file, 'who', '-1'], { env })
      return stdout.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('username')).length
    },
    async renumber(user, folder, uidValidity) {
      const args = ['mailbox', 'update', '-u', user, '--uid-validity', String(uidValidity), folder]
      await run('doveadm', ['-c', file, ...args], { env })
    },
    async setPassword(next) {
      password = next
      configure()
      await daemon.stop()
      await start()
    },
    stop: () => daemon.stop(),
    kill: () => daemon.kill(),
    start,
    async restart() {
      await daemon.stop()
      await start()
    },
    log,
    async remove() {
      await daemon.stop()
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Of those that were killed; a living Dovecot waits a minute or two before it believes that nobody holds them. */
function dropLocks(dir: string): void {
  for (const lock of globSync('mail/**/*.lock', { cwd: dir })) rmSync(join(dir, lock), { force: true })
}

function tailOf(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').slice(-4000) : ''
}
