/** What strangers do without a key, and what one who reads slowly does. */
import { addressOf, destroyAll, hold } from '../../hostile/sockets.ts'
import { basicOf, say } from '../../hostile/stranger.ts'
import type { Attack } from './index.ts'

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

/** Connections without a key, each with the most that it may send before it is known, left open. */
const heldBodies: Attack = ({ url, repeat }) =>
  repeat('held bodies', 1000, async () => {
    const head = ['POST /lite/users HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 1048576']
    const held = []
    for (let n = 0; n < 200; n += 1) held.push(await hold(url, addressOf(n % 100), head, Buffer.alloc(500_000, 'x')))
    await new Promise((resolve) => setTimeout(resolve, 5000))
    destroyAll(held)
  })

const manyConnections: Attack = ({ url, repeat }) =>
  repeat('many connections', 2000, async () => {
    const held = []
    for (let n = 0; n < 300; n += 1) held.push(await hold(url, addressOf(n % 3), []))
    await new Promise((resolve) => setTimeout(resolve, 3000))
    destroyAll(held)
  })

/** One connection, very many calls at once; the answers are not read. */
const pipelines: Attack = ({ url, repeat }) =>
  repeat('pipelined calls', 3000, async () => {
    const calls = 'GET /lite/users HTTP/1.1\r\nHost: mail.example\r\n\r\n'.repeat(1500)
    const held = []
    for (let n = 0; n < 20; n += 1) held.push(await hold(url, addressOf(200), [], calls, n % 2 === 0))
    await new Promise((resolve) => setTimeout(resolve, 3000))
    destroyAll(held)
  })

/** Forms that are complete in the same moment. */
const forms: Attack = ({ url, repeat }) =>
  repeat('forms at once', 5000, async () => {
    const form = Array.from({ length: 900 }, (_, n) => `p${n}=${'%41'.repeat(20)}`).join('&')
    const head = [
      'POST /lite/users HTTP/1.1',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${form.length}`,
    ]
    const held = []
    for (let n = 0; n < 150; n += 1) held.push(await hold(url, addressOf(n % 5), head, form.slice(0, -1)))
    for (const { socket } of held) socket.write(form.slice(-1))
    await new Promise((resolve) => setTimeout(resolve, 2000))
    destroyAll(held)
  })

export const callsOfStrangers: readonly Attack[] = [
  longHeaders,
  wrongKeys,
  heldBodies,
  manyConnections,
  pipelines,
  forms,
]
