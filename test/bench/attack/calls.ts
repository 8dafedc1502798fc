/** What strangers do without a key, and what one who reads slowly does. */
import { addressOf, hold, holdMany, type Held } from '../../hostile/sockets.ts'
import { basicOf, say } from '../../hostile/stranger.ts'
import type { Attack } from './stage.ts'

const longHeaders: Attack = ({ url, repeat }) =>
  repeat('long headers', 50, () => {
    const authorization = `OAuth a=${' '.repeat(8000)}x y`
    return say(`${url}/lite/users`, { headers: { authorization }, from: addressOf(1) })
  })

const wrongKeys: Attack = ({ url, repeat }) => {
  let tries = 0
  return repeat('wrong keys', 5, () => {
    tries += 1
    const headers = { authorization: basicOf(`key-${tries % 50}`, `guess-${tries}`) }
    return say(`${url}/lite/users`, { headers, from: addressOf(tries % 20) })
  })
}

const adminTokens: Attack = ({ url, repeat }) => {
  let tries = 0
  return repeat('wrong admin tokens', 5, async () => {
    tries += 1
    const headers = { authorization: `Bearer guess-${tries}` }
    const { status } = await say(`${url}/admin/accounts`, { headers, from: addressOf(20 + (tries % 20)) })
    if (status === 429) throw new Error('refused')
  })
}

const foreignHosts: Attack = ({ url, repeat }) =>
  repeat('foreign hosts', 20, () => {
    const ask = (path: string) => say(`${url}${path}`, { headers: { host: 'mallory.example' }, from: addressOf(2) })
    return Promise.all(['/console', '/console/login', '/healthz', '/lite/users'].map(ask))
  })

const consoleGuesses: Attack = ({ url, repeat }) =>
  repeat('guesses at the console', 10_000, () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const guess = (n: number) =>
      say(`${url}/console/login`, {
        method: 'POST',
        headers,
        body: `password=guess${n}`,
        from: addressOf(210 + (n % 9)),
      })
    return Promise.all(Array.from({ length: 180 }, (_, n) => guess(n)))
  })

/** Connections without a key, each with the most that it may send before it is known, left open. */
const heldBodies: Attack = ({ url, repeat }) =>
  repeat('held bodies', 1000, () => {
    const head = ['POST /lite/users HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 1048576']
    return holdMany(200, 5000, (n) => hold(url, addressOf(n % 100), head, Buffer.alloc(500_000, 'x')))
  })

const manyConnections: Attack = ({ url, repeat }) =>
  repeat('many connections', 2000, () => holdMany(300, 3000, (n) => hold(url, addressOf(n % 3), [])))

/** One connection, very many calls at once; the answers are not read. */
const pipelines: Attack = ({ url, repeat }) =>
  repeat('pipelined calls', 3000, () => {
    const calls = 'GET /lite/users HTTP/1.1\r\nHost: mail.example\r\n\r\n'.repeat(1500)
    return holdMany(20, 3000, (n) => hold(url, addressOf(200), [], calls, n % 2 === 0))
  })

/** Forms that are complete in the same moment. */
const forms: Attack = ({ url, repeat }) =>
  repeat('forms at once', 5000, () => {
    const form = Array.from({ length: 900 }, (_, n) => `p${n}=${'%41'.repeat(20)}`).join('&')
    const head = [
      'POST /lite/users HTTP/1.1',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${form.length}`,
    ]
    const open = (n: number): Promise<Held> => hold(url, addressOf(n % 5), head, form.slice(0, -1))
    return holdMany(150, 2000, open, (held) => held.forEach(({ socket }) => void socket.write(form.slice(-1))))
  })

export const callsOfStrangers: readonly Attack[] = [
  longHeaders,
  wrongKeys,
  adminTokens,
  foreignHosts,
  consoleGuesses,
  heldBodies,
  manyConnections,
  pipelines,
  forms,
]
