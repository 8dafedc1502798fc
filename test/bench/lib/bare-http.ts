/** A peer for answers over HTTP: a process that does nothing but send so many bytes, whatever it is asked. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface BareHttp {
  readonly url: string
  readonly pid: number
  close(): void
}

const program = `
  const body = 'x'.repeat(Number(process.argv[1]))
  const server = require('node:http').createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json')
    response.setHeader('Content-Length', body.length)
    response.end(body)
  })
  server.listen(0, '127.0.0.1', () => process.stdout.write(String(server.address().port)))
  process.on('disconnect', () => process.exit())
`

export async function startBareHttp(bytes: number): Promise<BareHttp> {
  const child = spawn(process.execPath, ['-e', program, String(bytes)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  if (child.stdout === null) throw new Error('the bare server says nothing')
  const [port] = (await once(child.stdout, 'data', { signal: AbortSignal.timeout(10_000) })) as [Buffer]
  return { url: `http://127.0.0.1:${port.toString()}`, pid: child.pid ?? 0, close: () => child.kill() }
}
