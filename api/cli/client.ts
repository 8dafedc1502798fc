/** The command line's client of the admin API. */
import type { z } from 'zod'
import { AppError } from '../../engine/index.ts'
import { adminRoutes } from '../admin/index.ts'
import type { Method } from '../route.ts'
import { compileRoutes } from '../router.ts'
import { type AccountList, printable } from './show.ts'
import { type Given, UsageError } from './usage.ts'

const patterns = compileRoutes(adminRoutes)

function responseOf(method: Method, path: string): z.ZodType {
  const [bare = ''] = path.split('?')
  const response = patterns
    .find(({ regexp, routes }) => regexp.test(bare) && routes.has(method))
    ?.routes.get(method)?.response
  if (response === undefined || typeof response === 'string') throw new Error(`no route for ${method} ${path}`)
  return response
}

export type Client = ReturnType<typeof createClient>

/** The longest call: a backup of a large store. */
const patienceMs = 120_000

/** `signal` ends calls that only read. */
function createClient(url: string, token: string, signal: AbortSignal) {
  const fail = (how: string) => (cause: unknown) => {
    throw new AppError('network', `${url} ${how}: ${wordsOf(cause)}`, { cause })
  }
  const cutOff = fail('ended its answer early')
  const send = async (method: Method, path: string, type: Readonly<Record<string, string>>, init: RequestInit) => {
    const headers = { ...type, authorization: `Bearer ${token}` }
    const request = fetch(url.replace(/\/$/, '') + path, { ...init, method, headers })
    const answer = await request.catch(fail('does not answer'))
    if (answer.ok) return answer
    const words = printable(refusalOf(await answer.text().catch(cutOff)))
    throw new AppError('bad_request', `${method} ${path}: ${words} (${answer.status})`)
  }
  return {
    /** The answer of a good call. Otherwise throws an AppError with the words of the service. */
    async call(method: Method, path: string, body?: Readonly<Record<string, unknown>>): Promise<unknown> {
      // A write is not interrupted: its answer may hold a secret that is shown once.
      const late = AbortSignal.timeout(patienceMs)
      const inTime = method === 'GET' ? AbortSignal.any([signal, late]) : late
      const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
      const answer = await send(method, path, type, { signal: inTime, body: JSON.stringify(body) })
      const text = await answer.text().catch(cutOff)
      const strange = (why: string) => (cause: unknown) => {
        const words = `${method} ${url}${path}: ${why}, so this is no admin API of this Mailroom`
        throw new AppError('bad_request', words, { cause })
      }
      const clean = (_key: string, value: unknown): unknown => (typeof value === 'string' ? printable(value) : value)
      const read = await Promise.try(() => JSON.parse(text, clean) as unknown).catch(strange('the answer is no JSON'))
      // The answer of a write is shown unchecked, for the same reason.
      const error = method === 'GET' ? responseOf(method, path).safeParse(read).error : undefined
      if (error) strange(`the answer lacks or alters ${error.issues[0]?.path.join('.') || 'everything'}`)(error)
      return read
    },
    /** The data of each server-sent event, until the signal aborts or the service ends the stream. */
    async *events(path: string): AsyncGenerator<string, void, undefined> {
      const { body } = await send('GET', path, { accept: 'text/event-stream' }, { signal })
      if (body === null) return
      let rest = ''
      try {
        for await (const piece of body.pipeThrough(new TextDecoderStream())) {
          const events = (rest + piece).split('\n\n')
          rest = events.pop() ?? ''
          for (const event of events) {
            const data = [...event.matchAll(/^data: ?(.*)$/gm)].map(([, line = '']) => line)
            if (data.length > 0) yield printable(data.join(' '))
          }
        }
      } catch (cause) {
        cutOff(cause)
      }
    },
  }
}

function wordsOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

/** The words of {"type":"error","value":…}, or the text itself. */
function refusalOf(text: string): string {
  try {
    const { value } = JSON.parse(text) as { value?: unknown }
    return typeof value === 'string' ? value : text
  } catch {
    return text.slice(0, 200)
  }
}

/** The service's limit of entries on a page. */
const pageEntries = 200

/** A list page by page: at most `most` entries, without the first `from`. */
export async function* pagesOf<Page extends readonly unknown[] | { readonly total: number }>(
  client: Client,
  path: string,
  filters: Readonly<Record<string, string>> = {},
  most = Infinity,
  from = 0,
): AsyncGenerator<Page, void, undefined> {
  for (let offset = from, more = true; more;) {
    const limit = Math.min(pageEntries, from + most - offset)
    const query = new URLSearchParams({ ...filters, limit: String(limit), offset: String(offset) })
    const page = (await client.call('GET', `${path}?${query.toString()}`)) as Page
    yield page
    offset += limit
    more = offset < from + most && ('total' in page ? offset < page.total : page.length === limit)
  }
}

/** Prints an answer: as JSON with --json, otherwise as the lines of `show`. */
export function say(
  { values, terminal }: Pick<Given, 'values' | 'terminal'>,
  answer: unknown,
  show: (answer: unknown) => readonly string[],
): void {
  if (values.json) terminal.out(JSON.stringify(answer, null, 2))
  else for (const line of show(answer)) terminal.out(line)
}

export function clientOf({ values, terminal: { env, signal } }: Given): Client {
  const url = values.url ?? env['MAILROOM_URL'] ?? 'http://127.0.0.1:3000'
  const token = values.token ?? env['MAILROOM_ADMIN_TOKEN'] ?? ''
  if (!URL.canParse(url)) throw new UsageError(`--url: ${url} is no URL`)
  if (token === '')
    throw new UsageError(
      '--token or MAILROOM_ADMIN_TOKEN is missing; the first one is made by: mailroom tokens create --name me --scopes read,act,keys --local',
    )
  return createClient(url, token, signal)
}

/** `given` when it is an id; for an address, the id of the only account that has it. */
export async function accountId(client: Client, given: string): Promise<string> {
  if (!given.includes('@')) return encodeURIComponent(given)
  const pages = await Array.fromAsync(pagesOf<AccountList>(client, '/admin/accounts', { q: given }))
  const all = pages.flatMap(({ accounts }) => accounts)
  const found = all.filter(({ email }) => email.toLowerCase() === given.toLowerCase())
  const [first] = found
  if (first === undefined) throw new AppError('not_found', `${given}: no such account`)
  if (found.length > 1)
    throw new UsageError(`${given}: several accounts (${found.map(({ id }) => id).join(', ')}); name one by its id`)
  return first.id
}
