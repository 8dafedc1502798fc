/** Opening and closing the port. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AppError, type Config } from '../engine/index.ts'

/** Listens on every address of the machine: none of them is one that a client could be told. */
export function isWildcard(host: string): boolean {
  return /^(?:0\.0\.0\.0|[0:]+)$/.test(host)
}

/** Answers the base URL with the chosen port, on 127.0.0.1 when the host is a wildcard. Rejects with `bad_request` when the address cannot be had. */
export async function listen(server: Server, config: Pick<Config, 'MAILROOM_HOST' | 'MAILROOM_PORT'>): Promise<string> {
  const { MAILROOM_HOST: host, MAILROOM_PORT: port } = config
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        new AppError(
          'bad_request',
          `MAILROOM_HOST, MAILROOM_PORT: cannot listen on ${host}:${port}: ${cause.code ?? cause.message}`,
          { cause },
        ),
      ),
    )
    server.listen(port, host, resolve)
  })
  const { port: chosen } = server.address() as AddressInfo
  if (isWildcard(host)) return `http://127.0.0.1:${chosen}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${chosen}`
}

/** Takes no new call, lets open ones end for `graceMs`, then cuts what is left (event streams among it). */
export async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  const cut = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearTimeout(cut)
}
