/** CAPABILITY, LOGIN, AUTHENTICATE, ID, NAMESPACE, ENABLE, STARTTLS, LOGOUT. */
import type { Connection, Handler } from './connection.ts'
import { textOf } from './tokens.ts'

const refused = 'NO [AUTHENTICATIONFAILED] Authentication failed.'

function capabilityList(connection: Connection): string {
  const list = connection.server.capabilities.filter((name) => name !== 'STARTTLS' || !connection.secure)
  return list.join(' ')
}

function loggedIn(connection: Connection): string {
  return `OK [CAPABILITY ${capabilityList(connection)}] Logged in`
}

function tryPassword(connection: Connection, name: string, password: string): string {
  const user = connection.server.users.get(name)
  if (user?.password !== password) return refused
  connection.user = user
  return loggedIn(connection)
}

async function tryToken(connection: Connection, name: string, token: string): Promise<boolean> {
  const user = connection.server.users.get(name)
  if (!user || user.accessToken === null) return false
  const { accessToken: known } = user
  if (typeof known === 'string' ? known !== token : !(await known(token))) return false
  connection.user = user
  return true
}

async function challenge(connection: Connection, text: string): Promise<string> {
  await connection.send(`+ ${Buffer.from(text).toString('base64')}`)
  return Buffer.from((await connection.nextLine()) ?? '', 'base64').toString('utf8')
}

const authenticate: Handler = async (connection, command) => {
  const mechanism = textOf(command.args[0]).toUpperCase()
  if (!connection.capabilities().has(`AUTH=${mechanism}`)) return 'NO Unsupported mechanism'
  const initial = command.args[1] ? Buffer.from(textOf(command.args[1]), 'base64').toString('utf8') : null
  if (mechanism === 'PLAIN') {
    const [, name = '', password = ''] = (initial ?? (await challenge(connection, ''))).split('\0')
    return tryPassword(connection, name, password)
  }
  if (mechanism === 'LOGIN') {
    const name = initial ?? (await challenge(connection, 'Username:'))
    return tryPassword(connection, name, await challenge(connection, 'Password:'))
  }
  const answer = initial ?? (await challenge(connection, ''))
  const name = /(?:user=|a=)([^\x01,]*)/.exec(answer)?.[1] ?? ''
  const token = /auth=Bearer ([^\x01]*)/.exec(answer)?.[1] ?? ''
  if (await tryToken(connection, name, token)) return loggedIn(connection)
  await challenge(connection, JSON.stringify({ status: '401', schemes: 'bearer', scope: 'https://mail.example/' }))
  return refused
}

export const authHandlers: readonly (readonly [string, Handler])[] = [
  [
    'CAPABILITY',
    async (connection) => {
      await connection.send(`* CAPABILITY ${capabilityList(connection)}`)
      return 'OK done'
    },
  ],
  [
    'LOGIN',
    (connection, command) => {
      if (connection.capabilities().has('LOGINDISABLED'))
        return Promise.resolve('NO [PRIVACYREQUIRED] Login is disabled')
      return Promise.resolve(tryPassword(connection, textOf(command.args[0]), textOf(command.args[1])))
    },
  ],
  ['AUTHENTICATE', authenticate],
  ['STARTTLS', (connection) => Promise.resolve(connection.server.secureContext ? 'OK begin' : 'BAD no TLS here')],
  [
    'ID',
    async (connection) => {
      if (!connection.capabilities().has('ID')) return 'BAD Unknown command'
      await connection.send('* ID ("name" "Scripted" "version" "1")')
      return 'OK done'
    },
  ],
  [
    'NAMESPACE',
    async (connection) => {
      if (!connection.capabilities().has('NAMESPACE')) return 'BAD Unknown command'
      await connection.send(`* NAMESPACE (("" "${connection.server.delimiter}")) NIL NIL`)
      return 'OK done'
    },
  ],
  [
    'ENABLE',
    async (connection, command) => {
      const capabilities = connection.capabilities()
      if (!capabilities.has('ENABLE')) return 'BAD Unknown command'
      const names = command.args.map((arg) => textOf(arg).toUpperCase())
      const known = names.filter((name) => ['CONDSTORE', 'QRESYNC'].includes(name) && capabilities.has(name))
      await connection.send(['* ENABLED', ...known].join(' '))
      return 'OK done'
    },
  ],
  ['NOOP', () => Promise.resolve('OK done')],
  ['CHECK', () => Promise.resolve('OK done')],
  [
    'LOGOUT',
    async (connection) => {
      await connection.send('* BYE Logging out')
      return 'OK done'
    },
  ],
  [
    'IDLE',
    async (connection) => {
      if (!connection.capabilities().has('IDLE')) return 'BAD Unknown command'
      const pushes = connection.server.hooks.silentIdle === undefined
      if (pushes) await connection.sync(true)
      await connection.send('+ idling')
      connection.setIdling(true)
      if (pushes) await connection.sync(true)
      const line = await connection.nextLine()
      connection.setIdling(false)
      return line?.toUpperCase() === 'DONE' ? 'OK done' : 'BAD expected DONE'
    },
  ],
]
