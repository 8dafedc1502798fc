/** Mail servers that were good when their account was made, and are not any more. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createImapServer, type Hooks, type ImapServer } from '../../support/imap-server/index.ts'
import { mail } from '../../support/mail.ts'
import { userBody } from '../../support/users.ts'
import type { Attack, Stage } from './stage.ts'

const password = 'secret'

/** An account at a server of its own. */
async function accountAt(stage: Stage, name: string): Promise<ImapServer> {
  const email = `${name}@mallory.example`
  const server = await createImapServer({ users: { [email]: { password } } })
  for (let n = 0; n < 30; n += 1) server.append(email, 'INBOX', mail({ to: email, subject: `${name} ${n}` }))
  await stage.client.ok('POST', '/lite/users', userBody({ host: '127.0.0.1', port: server.port, password }, email))
  return server
}

/** Answers `command` by these lines, once for each connection and every ten seconds on a new one. */
function answering(name: string, command: RegExp, lines: () => readonly (string | Buffer)[]): Attack {
  return async (stage) => {
    const server = await accountAt(stage, name.replaceAll(' ', '-'))
    const hooks: Hooks = {
      command: (call) => (command.test(call.name) ? { lines: lines(), proceed: true } : undefined),
    }
    server.hooks = hooks
    await stage.repeat(name, 10_000, () => {
      server.dropConnections()
      return Promise.resolve()
    })
  }
}

/** Says these lines to whoever is in IDLE, again and again. */
function flooding(name: string, lines: string): Attack {
  return async (stage) => {
    const server = await accountAt(stage, name.replaceAll(' ', '-'))
    await stage.repeat(name, 500, () => {
      server.say(lines)
      return Promise.resolve()
    })
  }
}

const longLine: Attack = answering('a line of 16 MB', /^UID SEARCH$|^SELECT$|^EXAMINE$/, () => [
  `* SEARCH ${'1 '.repeat(8_000_000)}`,
])
const endlessList: Attack = answering('a list of 50,000 folders', /^LIST$/, () =>
  Array.from({ length: 50_000 }, (_, n) => `* LIST (\\HasNoChildren) "/" "folder ${n}"`),
)
const longName: Attack = answering('a folder name of 20 MB', /^LIST$/, () => [
  `* LIST () "/" "${'n'.repeat(20_000_000)}"`,
])
const largeLiteral: Attack = answering('a literal of 50 MB', /^UID FETCH$/, () => [
  Buffer.concat([
    Buffer.from('* 1 FETCH (UID 1 BODY[] {50000000}\r\n'),
    Buffer.alloc(50_000_000, 'x'),
    Buffer.from(')'),
  ]),
])
const manyLiterals: Attack = answering('many literals', /^UID FETCH$/, () => [
  `* 1 FETCH (UID 1 ${'BODY[1] {1}\r\nx '.repeat(200_000)})`,
])
const longAttributes: Attack = answering('LIST attributes', /^LIST$/, () =>
  Array.from({ length: 9900 }, (_, n) => `* LIST ({60003}\r\n${'a'.repeat(60_000)}\u20ac) "/" "f${n}"`),
)
const longFlags: Attack = async (stage) => {
  const server = await accountAt(stage, 'long-flags')
  const flag = `({60003}\r\n${'a'.repeat(60_000)}\u20ac)`
  const lines = Array.from({ length: 19_000 }, (_, n) => `* ${n + 1} FETCH (UID ${n + 1} MODSEQ (99999) FLAGS ${flag})`)
  server.hooks = {
    command: ({ text }) => (text.includes('CHANGEDSINCE') ? { lines, proceed: true } : undefined),
  }
  await stage.repeat('long flags', 10_000, () => {
    server.append('long-flags@mallory.example', 'INBOX', mail({ to: 'x@mallory.example', subject: 'more' }))
    server.dropConnections()
    return Promise.resolve()
  })
}
const vanished: Attack = flooding('VANISHED', Array.from({ length: 500 }, () => '* VANISHED 1:100000').join('\r\n'))
const exists: Attack = flooding('EXISTS', Array.from({ length: 5000 }, (_, n) => `* ${n + 1} EXISTS`).join('\r\n'))
const flags: Attack = flooding(
  'FETCH FLAGS',
  Array.from({ length: 5000 }, (_, n) => `* ${(n % 30) + 1} FETCH (FLAGS (\\Seen kw${n}))`).join('\r\n'),
)

/** Nearly as many messages as an account may have; each is told by its number alone, so that none has to be kept. */
const bigMailbox: Attack = async (stage) => {
  const messages = 1_900_000
  const server = await accountAt(stage, 'big-mailbox')
  const opened = [`* ${messages} EXISTS`, '* OK [UIDVALIDITY 9] ok', `* OK [UIDNEXT ${messages + 1}] ok`]
  const rangeOf = (text: string): { from: number; to: number } => {
    const [, from = '1', to = from] =
      /(\d+|\*)(?::(\d+|\*))?/.exec(text.replace(/^.*? UID (?:SEARCH|FETCH) /, '')) ?? []
    const numbers = [from, to].map((one) => (one === '*' ? messages : Math.min(Number(one), messages)))
    return { from: Math.min(...numbers), to: Math.max(...numbers) }
  }
  const uids = ({ from, to }: { from: number; to: number }): number[] =>
    Array.from({ length: to - from + 1 }, (_, n) => from + n)
  const told = (text: string, uid: number): string => {
    const [, section] = /BODY\.PEEK(\[HEADER[^\]]*\])/.exec(text) ?? []
    const head = `From: a@mallory.example\r\nSubject: ${uid}\r\nMessage-ID: <${uid}@mallory.example>\r\n\r\n`
    const header = section === undefined ? '' : ` BODY${section} {${head.length}}\r\n${head}`
    const size = 'RFC822.SIZE 200 INTERNALDATE "01-Jan-2026 00:00:00 +0000"'
    return `* ${uid} FETCH (UID ${uid} FLAGS () ${size}${header})`
  }
  server.hooks = {
    command({ name, text }) {
      if (name === 'SELECT' || name === 'EXAMINE') return { lines: opened, tagged: 'OK [READ-WRITE] done' }
      const range = rangeOf(text)
      if (name === 'UID SEARCH') return { lines: [`* SEARCH ${uids(range).join(' ')}`], tagged: 'OK done' }
      if (name !== 'UID FETCH') return undefined
      return { lines: uids(range).map((uid) => told(text, uid)), tagged: 'OK done' }
    },
  }
  await stage.repeat('a mailbox of 1,900,000', 60_000, () => {
    server.dropConnections()
    return Promise.resolve()
  })
}

/** Accounts whose server takes a second for each response. */
const slow: Attack = async (stage) => {
  const all = []
  for (let n = 0; n < 6; n += 1) all.push(await accountAt(stage, `slow-${n}`))
  for (const server of all) {
    server.hooks = { send: async (response) => (await pause(1000), response) }
    server.dropConnections()
  }
  await stage.repeat('slow mailboxes', 30_000, () => Promise.resolve())
}

/** Hosts that take connections and say nothing. */
const mute: Attack = async (stage) => {
  const email = (n: number): string => `mute-${n}@mallory.example`
  const users = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [email(n), { password }]))
  const server = await createImapServer({ users })
  const ways = createServer((socket) => {
    socket.on('error', () => undefined)
    if (!open) return
    const onward = connect(server.port, '127.0.0.1')
    onward.on('error', () => socket.destroy())
    socket.on('close', () => onward.destroy())
    onward.on('close', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  let open = true
  ways.listen(0, '0.0.0.0')
  await once(ways, 'listening')
  const { port } = ways.address() as AddressInfo
  for (const [n, name] of Object.keys(users).entries()) {
    const body = userBody({ host: `127.0.2.${n + 1}`, port, password }, name)
    await stage.client.ok('POST', '/lite/users', body).catch(() => undefined)
  }
  open = false
  await stage.repeat('hosts that never greet', 20_000, () => {
    server.dropConnections()
    return Promise.resolve()
  })
}

/** Before any login: one response of very many empty literals. */
const greetingOfLiterals: Attack = async (stage) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write('* OK ready\r\n')
    socket.once('data', () => socket.write(`* SEARCH${' {0}\r\n'.repeat(20_000)}`))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const body = userBody({ host: '127.0.0.1', port, password }, 'literals@mallory.example')
  await stage.repeat('literals before any login', 3000, () => stage.client.api('POST', '/lite/users', body))
  server.close()
}

export const mailServers: readonly Attack[] = [
  greetingOfLiterals,
  longLine,
  endlessList,
  longName,
  largeLiteral,
  manyLiterals,
  longAttributes,
  longFlags,
  vanished,
  exists,
  flags,
  bigMailbox,
  slow,
  mute,
]
