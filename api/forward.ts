/**
 * Calls that concern one user are answered by the node that owns the user: it has the connections to the mailboxes and
 * writes all that is the user's. A node that gets such a call for another one passes it on as it came, and the answer
 * back, both piece by piece; who the caller is and what it may is found out there. While nobody owns the user, or the
 * owner is being replaced, the call waits, up to its deadline.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AppError,
  type Engine,
  isAppError,
  lookPath,
  newId,
  type Owner,
  type PeerAnswer,
  questionPath,
  toAppError,
} from '../engine/index.ts'
import { type BaseUrlReader, markRelayed, relayHeader, relayValue } from './addresses.ts'
import { answerError } from './connections.ts'
import { continueBody } from './request-body.ts'
import type { Served } from './system.ts'

/** Bodies up to this size are held, so that the call can be repeated at another node. */
const heldBytes = 65_536
const lookAgainMs = 250
/** Of a node that does not own the user, or not any more: nothing was done. */
const misdirected = 421
const retryAfterMs = 2000

/** Whose call it is, by an id that names a slot; `isAny`: any node that owns slots will do. null = everybody's. */
type Key = { readonly id: string; readonly isAny?: true } | null

/** Of the path alone, as it is on the wire. */
const ofUser = /^\/(?:lite\/users|2\.0\/accounts)\/([^/?]+)/
const ofAccount = /^\/(?:admin\/accounts|downloads)\/([^/?]+)/
const ofWebhook = /^\/(?:lite|2\.0|admin)\/webhooks\/([^/?]+)/
const ofDelivery = /^\/(?:admin\/deliveries|app\/logs\/webhooks)\/([0-9a-f]+)/
const ofToken = /^\/connect\/([a-z0-9]{16})(?:[/?]|$)/
/** The state of a sign-in ends with the token's slot; see consent.ts. */
const ofSignIn = /^\/connect\/[^/?]+\?(?:.*&)?state=[^&]*\.([a-z0-9]{16})(?:&|$)/
const makesUser = /^\/(?:lite\/users|2\.0\/accounts)\/?(?:\?|$)/
/** Of the query or the body, in any coding: no user is made, this one is changed. */
const migrates = /migrate_account_id\W+([0-9a-f]{24})/
const ofConsole = /^\/console(?:[/?]|$)/
/** The stream of a page of the console, and what a page shows once. */
const ofPage = /^\/console\/(?:events|shown)\?/
/** How far a redelivery of all callbacks is, is in the memory of the node that does it. */
const ofResending = /^\/admin\/deliveries(?:\/redeliver)?\/?(?:\?|$)/
/** Pages of the console about no single thing, and tries of its password, are one node's. */
const consoleKey = { id: 'console' }

export function createForwarding(engine: Engine) {
  const { nodes } = engine.store

  const keyOf = (request: IncomingMessage, served: Served): Promise<Key> => keyOfCall(engine, request, served)

  const ownerOf = ({ id, isAny }: Exclude<Key, null>): Owner => (isAny && nodes.ownsAny() ? 'here' : nodes.ownerOf(id))

  return {
    /** In front of the app, for clients. */
    outer(app: RequestListener, served: Served, pages: BaseUrlReader): RequestListener {
      return (request, response) => {
        if (nodes.ownsAll()) {
          app(request, response)
          return
        }
        keyOf(request, served).then(
          (key) => {
            if (key === null || (!key.isAny && ownerOf(key) === 'here')) app(request, response)
            else {
              // Only the body says whether a user is made or changed.
              const of = (body: Buffer | null): Owner => ownerOf((key.isAny ? migrated(body) : null) ?? key)
              void forward({ engine, app, pages }, request, response, of)
            }
          },
          (error: unknown) => answerError(response, toAppError(error)),
        )
      }
    },
    /** In front of the app, for other nodes. */
    inner(app: RequestListener): RequestListener {
      return (request, response) => {
        if (request.url?.startsWith(questionPath) === true) {
          void answerQuestion(engine, request, response)
          return
        }
        markRelayed(request)
        keyOf(request, 'all').then(
          (key) => {
            if (key === null || ownerOf(key) === 'here') app(request, response)
            else response.writeHead(misdirected).end()
          },
          (error: unknown) => answerError(response, toAppError(error)),
        )
      }
    },
  }
}

async function answerQuestion({ everyNode }: Engine, request: IncomingMessage, response: ServerResponse) {
  try {
    const said = await everyNode.answer(request.url ?? '', await heldBody(request))
    response.writeHead(said === null ? 404 : 200, { 'Content-Type': 'application/json' }).end(said ?? '')
  } catch (error) {
    answerError(response, toAppError(error))
  }
}

async function keyOfCall(engine: Engine, { url = '', method }: IncomingMessage, served: Served): Promise<Key> {
  const operators = served !== 'api'
  if (!operators && /^\/(?:admin|console)(?:[/?]|$)/.test(url)) return null
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

/** An account, a webhook or a callback by its id. */
async function keyOfThing({ store }: Engine, url: string): Promise<Key> {
  const account = ofAccount.exec(url)?.[1]
  if (account !== undefined) return owned(await store.accounts.get(account))
  const webhook = ofWebhook.exec(url)?.[1]
  if (webhook !== undefined) return owned(await store.webhooks.get(webhook))
  const delivery = ofDelivery.exec(url)?.[1]
  return delivery === undefined ? null : owned(await store.outbox.get(delivery))
}

function migrated(text: Buffer | string | null): Key {
  const id = migrates.exec(text?.toString('latin1') ?? '')?.[1]
  return id === undefined ? null : { id }
}

function owned(row: { readonly userId: string | null; readonly developerId: string } | null): Key {
  return row && { id: row.userId ?? row.developerId }
}

const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'te', 'upgrade', 'expect', relayHeader])

interface Listener {
  readonly engine: Engine
  readonly app: RequestListener
  /** Of pages that this listener serves. */
  readonly pages: BaseUrlReader
}

function headersOf({ engine, pages }: Listener, request: IncomingMessage): string[] {
  const headers = request.rawHeaders.flatMap((name, at, all) =>
    at % 2 === 1 || hopByHop.has(name.toLowerCase()) ? [] : [name, all[at + 1] ?? ''],
  )
  return [...headers, relayHeader, relayValue(engine.config, request, pages)]
}

async function heldBody(request: IncomingMessage): Promise<Buffer | null> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && !(Number(length) > 0)) return null
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function forward(
  listener: Listener,
  request: IncomingMessage,
  response: ServerResponse,
  /** By the body that is held. */
  ownerOf: (held: Buffer | null) => Owner,
): Promise<void> {
  const { engine, app } = listener
  const { nodes } = engine.store
  const until = performance.now() + engine.config.MAILROOM_REQUEST_TIMEOUT
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const isLong =
    request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > heldBytes
  let held: Buffer | null | undefined
  const owner = (): Owner => ownerOf(held ?? null)
  // A call whose body has been read is passed on to this very process too.
  const addressNow = (): string | null => {
    const now = owner()
    return now === 'here' ? nodes.address() : (now?.address ?? null)
  }
  try {
    while (!gone.signal.aborted) {
      if (owner() === 'here' && isLong) {
        app(request, response)
        return
      }
      if (owner() !== null && held === undefined && !isLong) {
        continueBody(request, response)
        held = await heldBody(request)
      }
      const address = addressNow()
      if (address !== null && (!isLong || (await isAt(engine, address)))) {
        if (isLong) continueBody(request, response)
        const call = {
          method: request.method ?? 'GET',
          path: request.url ?? '/',
          headers: headersOf(listener, request),
          body: isLong ? request : (held ?? null),
        }
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

/** A body that can be sent but once is sent to a node that answers. */
async function isAt({ peers }: Engine, address: string): Promise<boolean> {
  return (await peers.tell(address, lookPath)) !== 0
}

type Call = Omit<Parameters<Engine['peers']['call']>[1], 'signal'>

/**
 * null: nothing was done, and another node may do it. A read does not wait for a node that has a successor. A write
 * waits while the node is there: it may be handing the user over. Rejects when it is not known what became of a write.
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
    // Another node, or one that is cut from this one: a body that is streamed may take its time.
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

/** No connection was made. */
const notSent = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

async function passOn(response: ServerResponse, { status, headers, body }: PeerAnswer): Promise<void> {
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !hopByHop.has(name)) response.setHeader(name, value)
  response.writeHead(status)
  // Of a stream of events the headers go out at once.
  response.flushHeaders()
  await pipeline(body, response)
}
