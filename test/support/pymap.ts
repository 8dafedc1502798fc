/**
 * A private, real pymap (Python) on a free loopback port: any user name with one password. It keeps all in memory:
 * after a restart, which a new password needs, its mailboxes are empty and have new UIDVALIDITYs.
 */
import { join } from 'node:path'
import { createDaemon, openServer, startImap, type PrivateServer } from './daemon.ts'
import { pymapPython } from './mail-home.ts'
import { freePort } from './port.ts'
import { openRawImap, type RawImap } from './raw-imap.ts'

const program = join(import.meta.dirname, 'pymap-server.py')

export async function startPymap(): Promise<PrivateServer> {
  const python = pymapPython()
  if (python === null) throw new Error('pymap is not here: bash test/support/mail-servers.sh install pymap')
  const host = '127.0.0.1'
  const port = await freePort()
  let password = 'correct-horse'
  const daemon = createDaemon(
    () => [python, program, '--host', host, '--port', String(port), '--no-tls', 'dict', '--demo-password', password],
    process.env,
  )
  const log = (): string => `pymap said: ${daemon.output().slice(-4000)}`
  const connect = (user: string): Promise<RawImap> => openRawImap({ host, port, user, password })
  const start = () => startImap(daemon, { host, port }, log)

  return openServer({
    ...{ daemon, host, port, connect, start, log },
    password: () => password,
    async setPassword(next) {
      password = next
      await daemon.stop()
      await start()
    },
  })
}
