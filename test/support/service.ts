/**
 * The real service, main.ts, as a child process on a free port with a data directory of its own. It can be killed and
 * started again on the same data; it never outlives the process that started it.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endsWithUs } from './orphans.ts'
import { until } from './until.ts'

export const apiKey = 'test-key'
export const apiSecret = 'test-secret-0123456789'

export interface ServiceOptions {
  /** Added to, and stronger than, the settings that every test needs. */
  readonly env?: Readonly<Record<string, string>>
  /** A database of its own instead of the embedded store. */
  readonly mongoUri?: string
  /** How long a start may take. */
  readonly startWithinMs?: number
  /** The checkout whose main.ts runs, with its node_modules and start script; this one otherwise. */
  readonly checkout?: string
  /** Hears the log while it is written. */
  readonly onLog?: (text: string) => void
}

export interface ApiAnswer {
  readonly status: number
  readonly headers: Headers
  /** Parsed when the answer is JSON, text otherwise. */
  readonly body: unknown
}

/** What the API answers, for those who look into it field by field. */
export type Json = Record<string, unknown>

export interface Service {
  /** Base URL; changes with a restart. */
  readonly url: string
  readonly pid: number
  readonly dataDir: string
  /** One call with the first developer's key (Basic); a body goes as JSON. Any status is an answer. */
  api(method: string, path: string, body?: Json): Promise<ApiAnswer>
  /** The same, for calls that must answer 200: the body, or an error with the answer in it. */
  ok(method: string, path: string, body?: Json): Promise<Json>
  /** And for those that answer an array. */
  list(path: string): Promise<Json[]>
  /** GET of a file: its bytes. An absolute address is asked without a key. */
  file(path: string): Promise<Buffer>
  /** Lines of the log so far, all starts together. */
  log(): string
  /** Resident set size in KiB. */
  rssKib(): number
  /** SIGKILL: no goodbye, as in a crash. */
  kill9(): Promise<void>
  /** SIGTERM; answers the exit status. */
  stop(): Promise<number | null>
  /** Starts it again on the same data (after stop or kill9); resolves when it is ready. */
  start(env?: Readonly<Record<string, string>>): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

const root = join(import.meta.dirname, '../..')

/** The variables before `node` in the start script, and the words after it: tests start the service as operators do. */
export function startScript(checkout: string) {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as PackageFile
  const words = scripts.start.split(' ')
  const node = words.indexOf('node')
  const env = Object.fromEntries(words.slice(0, node).map((word) => word.split('=', 2) as [string, string]))
  return { env, args: words.slice(node + 1) }
}

interface PackageFile {
  readonly scripts: { readonly start: string }
}

/** The calls of one developer. */
export type Client = Pick<Service, 'api' | 'ok' | 'list' | 'file'>

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const dataDir = mkdtempSync(join(tmpdir(), 'mr-service-'))
  const base: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    ...(process.env['NODE_COMPILE_CACHE'] === undefined
      ? {}
      : { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
    MAILROOM_PORT: '0',
    MAILROOM_DATA_DIR: dataDir,
    MAILROOM_API_KEY: apiKey,
    MAILROOM_API_SECRET: apiSecret,
    MAILROOM_ALLOW_PRIVATE: '1',
    MAILROOM_RATE_CALLS_PER_HOUR: '0',
    MAILROOM_RATE_IMAP_PER_MINUTE: '0',
    MAILROOM_LOGINS_PER_MINUTE: '0',
    ...(options.mongoUri === undefined ? {} : { MONGODB_URI: options.mongoUri }),
    ...options.env,
  }
  const running = createProcess(options)
  const removeData = (): void => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  try {
    await running.start(base)
  } catch (error) {
    removeData()
    throw error
  }
  const api = createClient(() => running.url(), `${base['MAILROOM_API_KEY']}:${base['MAILROOM_API_SECRET']}`)
  return {
    ...api,
    get url() {
      return running.url()
    },
    get pid() {
      return running.pid()
    },
    dataDir,
    log: running.log,
    rssKib: () => residentKib(running.pid()),
    kill9: async () => {
      await running.end('SIGKILL')
    },
    stop: () => running.end('SIGTERM'),
    start: (env = {}) => running.start({ ...base, ...env }),
    async remove() {
      await running.end('SIGTERM')
      removeData()
    },
  }
}

/** VmRSS of a process from the kernel, in KiB. */
function residentKib(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  if (line === null) throw new Error(`process ${pid} has no VmRSS`)
  return Number(line[1])
}

function createProcess({ startWithinMs = 60_000, checkout = root, onLog }: ServiceOptions) {
  let child: ChildProcess | null = null
  let output = ''
  let url = ''

  const alive = (): boolean => child !== null && child.exitCode === null && child.signalCode === null
  /** It has ended, and all that it wrote has been read. */
  let closed: Promise<unknown> = Promise.resolve()
  let disown = (): void => undefined
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> => {
    const ending = child
    if (ending === null) return null
    if (alive()) ending.kill(signal)
    const tooLong = setTimeout(() => ending.kill('SIGKILL'), 30_000)
    await closed
    clearTimeout(tooLong)
    disown()
    child = null
    return ending.exitCode
  }
  const checkAlive = async (when: string): Promise<void> => {
    if (alive()) return
    await closed
    throw new Error(`the service ended ${when}:\n${output.slice(-4000)}`)
  }
  const start = async (env: Readonly<Record<string, string>>): Promise<void> => {
    if (alive()) throw new Error('the service is running already')
    const seen = output.length
    const script = startScript(checkout)
    const options = { cwd: checkout, env: { ...script.env, ...env } }
    child = spawn(process.execPath, script.args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    const started = child
    closed = once(started, 'close')
    disown = endsWithUs(() => started.kill('SIGKILL'))
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        onLog?.(chunk.toString())
      })
    try {
      url = await until('the line "listening"', () => listeningUrl(output.slice(seen)) ?? !alive(), {
        withinMs: startWithinMs,
        explain: () => output.slice(-4000),
      }).then(String)
      await checkAlive('at its start')
      const ready = async (): Promise<boolean> => !alive() || (await fetch(`${url}/readyz`)).ok
      await until('the service to be ready', ready, { withinMs: startWithinMs, explain: () => output.slice(-4000) })
      await checkAlive('before it was ready')
    } catch (error) {
      await end('SIGKILL')
      throw error
    }
  }
  return {
    start,
    end,
    url: (): string => url,
    log: (): string => output,
    pid: (): number => {
      if (child?.pid === undefined) throw new Error('the service is not running')
      return child.pid
    },
  }
}

function listeningUrl(log: string): string | null {
  for (const line of log.split('\n')) {
    if (!line.includes('"listening"')) continue
    const record = JSON.parse(line) as { msg?: string; url?: string }
    if (record.msg === 'listening' && record.url !== undefined) return record.url
  }
  return null
}

export function createClient(url: () => string, keyAndSecret: string): Client {
  const authorization = `Basic ${Buffer.from(keyAndSecret).toString('base64')}`
  const api = async (method: string, path: string, body?: Json): Promise<ApiAnswer> => {
    const response = await fetch(url() + path, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
    return { status: response.status, headers: response.headers, body: isJson ? (JSON.parse(text) as unknown) : text }
  }
  const must = async (method: string, path: string, body?: Json): Promise<unknown> => {
    const answer = await api(method, path, body)
    if (answer.status === 200) return answer.body
    throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
  }
  return {
    api,
    ok: async (method: string, path: string, body?: Json) => (await must(method, path, body)) as Json,
    list: async (path: string) => (await must('GET', path)) as Json[],
    file: async (path: string): Promise<Buffer> => {
      const own = path.startsWith('/')
      const response = await fetch(own ? url() + path : path, own ? { headers: { authorization } } : {})
      const bytes = Buffer.from(await response.arrayBuffer())
      if (response.status === 200) return bytes
      throw new Error(`GET ${path} answered ${response.status}: ${bytes.toString()}`)
    },
  }
}
