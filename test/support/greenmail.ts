/**
 * A private, real GreenMail on free loopback ports. A user who is not known yet is made at the first connection. It
 * keeps all in memory: after a restart its mailboxes are empty and have new UIDVALIDITYs, and no other way leads to
 * another password.
 */
import { createDaemon, openServer, startImap, type PrivateServer } from './daemon.ts'
import { greenMailJar } from './mail-home.ts'
import { freePort } from './port.ts'
import { openRawImap, type RawImap } from './raw-imap.ts'
import { until } from './until.ts'

export async function startGreenMail(): Promise<PrivateServer> {
  const jar = greenMailJar()
  if (jar === null) throw new Error('GreenMail is not here: bash test/support/mail-servers.sh install greenmail')
  const host = '127.0.0.1'
  const port = await freePort()
  const apiPort = await freePort()
  const users = new Set<string>()
  let password = 'correct-horse'
  const settings = (): string[] => [
    ...Object.entries({ imap: port, api: apiPort }).flatMap(([name, at]) => [
      `-Dgreenmail.${name}.hostname=${host}`,
      `-Dgreenmail.${name}.port=${at}`,
    ]),
    '-Dgreenmail.users.login=email',
    ...(users.size === 0 ? [] : [`-Dgreenmail.users=${[...users].map(withPassword).join(',')}`]),
  ]
  const withPassword = (user: string): string => user.replace('@', `:${password}@`)
  const daemon = createDaemon(
    () => ['java', '-Xmx128m', '-XX:TieredStopAtLevel=1', ...settings(), '-jar', jar],
    process.env,
  )
  const log = (): string => `greenmail said: ${daemon.output().slice(-4000)}`
  const api = `http://${host}:${apiPort}/api`
  const start = async (): Promise<void> => {
    await startImap(daemon, { host, port }, log)
    await until('the API of GreenMail', async () => (await fetch(`${api}/service/readiness`)).ok, { explain: log })
  }
  const connect = async (user: string): Promise<RawImap> => {
    if (!users.has(user)) await addUser(`${api}/user`, user, password)
    users.add(user)
    return openRawImap({ host, port, user, password })
  }

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

async function addUser(url: string, email: string, password: string): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, login: email, password }),
  })
  if (!response.ok) throw new Error(`GreenMail makes no user ${email}: ${response.status} ${await response.text()}`)
}
