/**
 * Forwards a call about one user to the node that owns the user. That node has the mailbox connections, authenticates
 * the caller and answers; request and answer are streamed unchanged. While the user has no owner, or the owner is being
 * replaced, the call waits, up to its deadline.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AppError,
  type Engine,
  isAppError,
  isBareUrl,
  lookPath,
  newId,
  type Owner,
  type PeerAnswer,
  questionPath,
  toAppError,
} from '../engine/index.ts'
import { type BaseUrlReader, markRelayed, relayHeader, relayValue } from './addresses.ts'
import { answerError } from './connections.ts'
import { bodyLength, continueBody } from './request-body.ts'
import type { Served } from './system.ts'

/** Bodies up to this size are held, so that the call can be repeated at another node. */
const heldBytes = 65_536
const lookAgainMs = 250
/** Status of a node that does not own the user: the node did nothing. */
const misdirected = 421
const retryAfterMs = 2000

/** An id that names the slot of a call; `isAny`: any node that owns slots may answer. null = every node may. */
type Key = { readonly id: string; readonly isAny?: true } | null

// Patterns over the request target as it is on the wire.
const ofUser = /^\/(?:lite\/users|2\.0\/accounts)\/([^/?]+)/
const things = [
  [/^\/(?:admin\/accounts|downloads)\/([^/?]+)/, 'accounts'],
  [/^\/(?:lite|2\.0|admin)\/webhooks\/([^/?]+)/, 'webhooks'],
  [/^\/(?:admin\/deliveries|app\/logs\/webhooks)\/([0-9a-f]+)/, 'outbox'],
] as const
const ofToken = /^\/connect\/([a-z0-9]{16})(?:[/?]|$)/
/** The state of a sign-in ends with the token's slot; see consent.ts. */
const ofSignIn = /^\/connect\/[^/?]+\?(?:.*&)?state=[^&]*\.([a-z0-9]{16})(?:&|$)/
const makesUser = /^\/(?:lite\/users|2\.0\/accounts)\/?(?:\?|$)/
/** In the query or the body, in any coding: the call changes this user instead of creating one. */
const migrates = /migrate_account_id\W+([0-9a-f]{24})/
const ofConsole = /^\/console(?:[/?]|$)/
/** The event stream of a console page, and the secrets that a page shows once. */
const ofPage = /^\/console\/(?:events|shown)\?/
/** The node that redelivers all callbacks has the progress in memory. */
const ofResending = /^\/admin\/deliveries(?:\/redeliver)?\/?(?:\?|$)/
/** One node answers the general pages of the console and counts the tries of its password. */
const consoleKey = { id: 'console' }

export function createForwarding(engine: Engine) {
  const { nodes } = engine.store
  const ownerOf = ({ id, isAny }: Exclude<Key, null>): Owner => (isAny && nodes.ownsAny() ? 'here' : nodes.ownerOf(id))

  return {
    /** Wraps the app for clients. */
    outer(app: RequestListener, served: Served, pages: BaseUrlReader): RequestListener {
      return (request, response) => {
        if (nodes.ownsAll()) app(request, response)
        else
          answering(response, async () => {
            const key = await keyOfCall(engine, request, served)
            if (key === null || (!key.isAny && ownerOf(key) === 'here')) app(request, response)
            else {
              // Only the body says whether the call creates or changes a user.
              const of = (body: Buffer | null): Owner => ownerOf((key.isAny ? migrated(body) : null) ?? key)
              await forward({ engine, app, pages }, request, response, of)
            }
          })
      }
    },
    /** Wraps the app for other nodes. */
    inner(app: RequestListener): RequestListener {
      return (request, response) =>
        answering(response, async () => {
          if (request.url?.startsWith(questionPath) === true) return answerQuestion(engine, request, response)
          markRelayed(request)
          const key = await keyOfCall(engine, request, 'all')
          if (key === null || ownerOf(key) === 'here') app(request, response)
          else response.writeHead(misdirected).end()
        })
    },
  }
}

function answering(response: ServerResponse, work: () => Promise<void>): void {
  work().catch((error: unknown) => answerError(response, toAppError(error)))
}

async function answerQuestion({ everyNode }: Engine, request: IncomingMessage, response: ServerResponse) {
  const text = await everyNode.answer(request.url ?? '', await heldBody(request))
  response.writeHead(text === null ? 404 : 200, { 'Content-Type': 'application/json' }).end(text ?? '')
}

async function keyOfCall(engine: Engine, { url = '', method }: IncomingMessage, served: Served): Promise<Key> {
  if (served === 'api' && /^\/(?:admin|console)(?:[/?]|$)/.test(url)) return null
  const user = ofUser.exec(url)?.[1]
  if (user !== undefined) return { id: user }
  if (makesUser.test(url)) return method === 'POST' ? (migrated(url) ?? { id: newId(), isAny: true }) : null
  const token = (ofToken.exec(url) ?? ofSignIn.exec(url))?.[1]
  if (token !== undefined) return { id: token }
  if (method === 'POST' && ofResending.test(url)) return consoleKey
  if (!ofConsole.test(url)) return keyOfThing(engine, url)
  const page = ofPage.test(url) ? new URL(url, 'http://console').searchParams.get('page') : null
  return (await keyOfThing(engine, (page ?? url).replace(/^\/console/, '/admin'))) ?? consoleKey
}

/** Key of the account, the webhook or the delivery whose id is in the path. */
async function keyOfThing({ store, webhooks }: Engine, url: string): Promise<Key> {
  for (const [pattern, records] of things) {
    const id = pattern.exec(url)?.[1]
    if (id === undefined) continue
    // A bare URL has no record: the node of its first callback has an actor for it.
    const served = records === 'webhooks' ? webhooks.served(id) : null
    const row = served ?? (isBareUrl(id) ? (await store.outbox.waiting(id, 1)).at(0) : await store[records].get(id))
    return row ? { id: row.userId ?? row.developerId } : null
  }
  return null
}

function migrated(text: Buffer | string | null): Key {
  const id = migrates.exec(text?.toString('latin1') ?? '')?.[1]
  return id === undefined ? null : { id }
}

const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'te', 'upgrade', 'expect', relayHeader])

async function heldBody(request: IncomingMessage): Promise<Buffer | null> {
  if (bodyLength(request) === 0) return null
  return Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
}

/** `pages`: reader of the base URL of the pages that this listener serves. */
async function forward(
  { engine, app, pages }: { readonly engine: Engine; readonly app: RequestListener; readonly pages: BaseUrlReader },
  request: IncomingMessage,
  response: ServerResponse,
  ownerOf: (held: Buffer | null) => Owner,
): Promise<void> {
  const { method = 'GET', url: path = '/', rawHeaders } = request
  const passed = rawHeaders.flatMap((name, at, all) =>
    at % 2 === 1 || hopByHop.has(name.toLowerCase()) ? [] : [name, all[at + 1] ?? ''],
  )
  const headers = [...passed, relayHeader, relayValue(engine.config, request, pages)]
  const { nodes } = engine.store
  const until = performance.now() + engine.config.MAILROOM_REQUEST_TIMEOUT
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const isLong = (bodyLength(request) ?? Infinity) > heldBytes
  try {
    if (!isLong) continueBody(request, response)
    const held = isLong ? null : await heldBody(request)
    // A call with a held body goes through the network to this process too.
    const addressNow = (): string | null => {
      const owner = ownerOf(held)
      return owner === 'here' ? nodes.address() : (owner?.address ?? null)
    }
    while (!gone.signal.aborted) {
      if (isLong && ownerOf(held) === 'here') {
        app(request, response)
        return
      }
      const address = addressNow()
      // A body that can be sent only once waits for a node that answers.
      if (address !== null && (!isLong || (await engine.peers.tell(address, lookPath)) !== 0)) {
        if (isLong) continueBody(request, response)
        const call = { method, path, headers, body: isLong ? request : held }
        const answer = await ask(engine, address, call, addressNow, gone.signal)
        if (answer !== null) {
          await passOn(response, answer)
          return
        }
        if (isLong) break
      }
      if (performance.now() > until) break
      await nodes.look()
      await sleep(lookAgainMs)
    }
    if (!gone.signal.aborted) answerError(response, unowned())
  } catch (error) {
    if (response.headersSent) response.destroy()
    else answerError(response, isAppError(error, 'network') ? unowned() : toAppError(error))
  }
}

function unowned(): AppError {
  const words = 'the user is being handed over to another process; try again'
  return new AppError('account_unavailable', words, { retryAfterMs })
}

type Call = Omit<Parameters<Engine['peers']['call']>[1], 'signal'>

/**
 * null = the node did nothing, and another node may answer. A read gives up a node that has a successor. A write waits
 * for a node that is still there: the node may be handing the user over. Rejects when the result of a write is unknown.
 */
async function ask(
  { peers, config, store: { nodes } }: Engine,
  address: string,
  call: Call,
  addressNow: () => string | null,
  gone: AbortSignal,
): Promise<PeerAnswer | null> {
  const isRead = call.method === 'GET' || call.method === 'HEAD'
  const isThere = (): boolean => nodes.address() === address || nodes.others().includes(address)
  const replaced = new AbortController()
  const began = performance.now()
  const timer = setInterval(() => {
    const now = isRead || !isThere() ? addressNow() : address
    // The network may be cut. A streamed body has no such deadline.
    const isLate = !(call.body instanceof Readable) && performance.now() - began > 2 * config.MAILROOM_REQUEST_TIMEOUT
    if (isLate || (now !== null && now !== address)) replaced.abort()
  }, lookAgainMs)
  try {
    const answer = await peers.call(address, { ...call, signal: AbortSignal.any([gone, replaced.signal]) })
    if (answer.status !== misdirected) return answer
    answer.body.resume()
    return null
  } catch (error) {
    if (gone.aborted) throw error
    if (isRead || (isAppError(error, 'network') && notSent.has(String(error.details['reason'])))) return null
    throw error
  } finally {
    clearInterval(timer)
  }
}

/** Errors that mean that no connection was made. */
const notSent = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

async function passOn(response: ServerResponse, { status, headers, body }: PeerAnswer): Promise<void> {
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !hopByHop.has(name)) response.setHeader(name, value)
  response.writeHead(status)
  // An event stream may have no first byte for long.
  response.flushHeaders()
  await pipeline(body, response)
}
