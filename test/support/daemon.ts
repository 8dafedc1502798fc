/**
 * A mail server of a test's own, as a program that it starts and ends: one process group, so that all of its processes
 * end with it, however it ends.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { endsWithUs } from './orphans.ts'
import type { RawImap } from './raw-imap.ts'
import { until } from './until.ts'

export interface PrivateServer {
  readonly host: string
  readonly port: number
  /** Accepted for every user name. */
  readonly password: string
  append(user: string, folder: string, raw: string | Buffer, flags?: readonly string[]): Promise<void>
  /** A connection that stays, for many appends or other commands. */
  connect(user: string): Promise<RawImap>
  /** From the next login on only this password is accepted. */
  setPassword(password: string): Promise<void>
  /** Clean end: clients are told BYE. */
  stop(): Promise<void>
  /** Again on the same port. */
  start(): Promise<void>
  restart(): Promise<void>
  log(): string
  /** Stops and removes everything. */
  remove(): Promise<void>
}

export async function appendOnce(connecting: Promise<RawImap>, ...letter: AppendedLetter): Promise<void> {
  const client = await connecting
  const [folder, raw, flags] = letter
  await client.append(folder, [raw], flags)
  await client.close()
}

type AppendedLetter = [folder: string, raw: string | Buffer, flags?: readonly string[]]

export interface Daemon {
  alive(): boolean
  /** Starts it; what ran before is killed. */
  spawn(): Promise<void>
  /** SIGTERM, and SIGKILL when it does not end. */
  stop(): Promise<void>
  /** Every process at once by SIGKILL. */
  kill(): Promise<void>
  /** What it has written since the last start. */
  output(): string
}

/** `command` is asked at each start: program and arguments. It has to stay in the foreground. */
export function createDaemon(command: () => readonly [string, ...string[]], env: NodeJS.ProcessEnv): Daemon {
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
    spawn: async () => {
      await end('SIGKILL')
      output = ''
      const [program, ...args] = command()
      child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'], env })
      disown = endsWithUs(() => signalGroup('SIGKILL'))
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
      child.on('error', (error) => (output += error.message))
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    output: () => output,
  }
}

export interface Listener {
  readonly host: string
  readonly port: number
}

/** Starts an IMAP server and waits for its greeting. One that could not take its port yet is started again. */
export async function startImap(daemon: Daemon, { host, port }: Listener, log: () => string): Promise<void> {
  await daemon.spawn()
  const answers = async (): Promise<boolean> => {
    // Soon after a kill its sockets may still be held by a process that is dying: it gives up then.
    if (!daemon.alive()) await daemon.spawn()
    return greets(host, port)
  }
  await until(`an IMAP server on port ${port}`, answers, { withinMs: 30_000, everyMs: 50, explain: log })
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

interface Opening extends Listener, Pick<PrivateServer, 'connect' | 'setPassword' | 'start' | 'log'> {
  readonly daemon: Daemon
  readonly password: () => string
  /** Removes what the stopped server has left. */
  readonly clear?: () => void
}

/** Starts the server. A failed start leaves nothing behind. */
export async function openServer({ daemon, password, clear, ...server }: Opening): Promise<PrivateServer> {
  const { connect, start } = server
  const remove = async (): Promise<void> => {
    await daemon.stop()
    clear?.()
  }
  try {
    await start()
  } catch (error) {
    await remove()
    throw error
  }
  return {
    ...server,
    get password() {
      return password()
    },
    append: (user, ...letter) => appendOnce(connect(user), ...letter),
    stop: () => daemon.stop(),
    async restart() {
      await daemon.stop()
      await start()
    },
    remove,
  }
}
