/**
 * The console over many accounts: how long its pages take, and what an open one costs. The accounts are paused, so that
 * the service does nothing else. Against /healthz, which answers without looking at anything.
 */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import type { DeveloperRecord } from '../../engine/store/records.ts'
import { newId } from '../../engine/store/ids.ts'
import { outboxRecord } from '../store/contract/records.ts'
import { accountRecord, userRecord } from '../support/records.ts'
import { startService, type Service } from '../support/service.ts'
import { cpuMicrosOf } from './lib/load.ts'
import type { BenchOptions } from './lib/options.ts'
import { header, jsonLine, say, table } from './lib/report.ts'
import { round, summarise } from './lib/statistics.ts'

const goal = { pageMs: 200, cpuMs: 80, corePercent: 2 }
const password = 'a password for the bench'
const timesEach = 20
/** Of the second run: accounts while a page is open. */
const watchedAccounts = 1000

export async function consolePages(options: BenchOptions): Promise<boolean> {
  const accounts = options.accounts ?? 10_000
  const seconds = options.seconds ?? 30
  header('console', { store: 'sqlite', accounts, watchedAccounts, seconds })
  const { slowest, cpuMs } = await withAccounts(accounts, timePages)
  const corePercent = await withAccounts(watchedAccounts, (service) => costOfOpenPage(service, seconds))
  const ok = slowest <= goal.pageMs && cpuMs <= goal.cpuMs && corePercent <= goal.corePercent
  say(`an open page costs ${corePercent} % of a core at ${watchedAccounts} accounts`)
  say(
    `goal: each page within ${goal.pageMs} ms, ${goal.cpuMs} ms of a processor, an open one ${goal.corePercent} % of a core: ${ok ? 'met' : 'MISSED'}`,
  )
  jsonLine('console', { accounts, slowest, cpuMs, corePercent, ok })
  return ok
}

/** A service with so many paused accounts of its developer, each at a host of its own. */
async function withAccounts<T>(count: number, work: (service: Service) => Promise<T>): Promise<T> {
  // What the accounts are filled with is no real credential.
  const service = await startService({ env: { MAILROOM_ADMIN_PASSWORD: password, MAILROOM_SECRET_LOST: '1' } })
  try {
    await service.stop()
    await fill(join(service.dataDir, 'mailroom.sqlite'), count)
    await service.start()
    return await work(service)
  } finally {
    await service.remove()
  }
}

async function fill(path: string, count: number): Promise<void> {
  const store = await createSqliteStore({ path, sync: 'off' })
  const developer = (await store.developers.first()) as DeveloperRecord
  for (let index = 0; index < count; index += 1) {
    const user = userRecord(developer.id)
    const account = accountRecord(user, { server: `imap${index}.example.com`, paused: true })
    await store.users.createWithAccount(user, account)
    const at = Date.now() - index * 1000
    const sent = { accountId: account.id, state: 'delivered', createdAt: at, finishedAt: at + 40 } as const
    await store.outbox.enqueue([outboxRecord({ id: 'c'.repeat(24), developerId: developer.id }, sent)])
    const by = { by: 'session', actorId: 'bench', actorName: 'console', address: '127.0.0.1' } as const
    await store.audit.append({
      ...{ ...by, id: newId(), at, action: 'accounts pause', target: account.id, details: {}, status: 200 },
    })
  }
  await store.close()
}

interface Visitor {
  get(path: string): Promise<Response>
}

async function logIn(service: Service): Promise<Visitor> {
  const body = new URLSearchParams({ password })
  const answer = await fetch(`${service.url}/console/login`, { method: 'POST', body, redirect: 'manual' })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  return { get: (path) => fetch(`${service.url}${path}`, { headers: { cookie }, redirect: 'manual' }) }
}

/** The highest median of a page's time, and of its mean processor time, in ms. */
async function timePages(service: Service): Promise<{ readonly slowest: number; readonly cpuMs: number }> {
  const visitor = await logIn(service)
  const list = await (await visitor.get('/console/accounts')).text()
  const account = /\/console\/accounts\/[0-9a-f]+/.exec(list)?.[0] ?? ''
  const filtered = '/console/accounts?host=imap7.example.com&state=paused'
  const pages = [
    '/console',
    '/console/accounts',
    filtered,
    '/console/accounts?q=1a',
    account,
    '/console/hosts',
    '/console/hosts?q=99',
    '/console/deliveries',
    '/console/deliveries?account=mail.example',
    `${account}/trail`,
    `${account}/trail?q=unknown`,
    '/console/search?q=1a',
    '/console/audit',
  ]
  const rows: (string | number)[][] = []
  let [floor, slowest, most] = [0, 0, 0]
  for (const path of ['/healthz', ...pages, '/console/webhooks', '/console/developers']) {
    const before = cpuMicrosOf(service.pid)
    const { p50, max } = summarise(await timesOf(visitor, path))
    const cpuMs = round((cpuMicrosOf(service.pid) - before) / 1000 / timesEach)
    if (path === '/healthz') floor = p50
    else [slowest, most] = [Math.max(slowest, p50), Math.max(most, cpuMs)]
    rows.push([path.replace(/[0-9a-f]{24}/, '…'), p50, max, cpuMs, round(p50 / floor)])
  }
  table(['page', 'p50 ms', 'max ms', 'cpu ms', 'times /healthz'], rows)
  return { slowest, cpuMs: most }
}

async function timesOf(visitor: Visitor, path: string): Promise<number[]> {
  const times: number[] = []
  for (let time = 0; time < timesEach; time += 1) {
    const began = performance.now()
    const answer = await visitor.get(path)
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`)
    times.push(performance.now() - began)
  }
  return times
}

/** Processor time beyond what the service takes by itself, in percent of a core. */
async function costOfOpenPage(service: Service, seconds: number): Promise<number> {
  const visitor = await logIn(service)
  await pause(5000)
  const alone = await cpuOver(service, seconds)
  const events = await visitor.get('/console/events?page=%2Fconsole')
  if (events.status !== 200) throw new Error(`/console/events: ${events.status}`)
  const reading = events.body?.pipeTo(new WritableStream()).catch(() => undefined)
  const open = await cpuOver(service, seconds)
  await service.stop()
  await reading
  return round(((open - alone) / (seconds * 1_000_000)) * 100)
}

async function cpuOver({ pid }: Service, seconds: number): Promise<number> {
  const before = cpuMicrosOf(pid)
  await pause(seconds * 1000)
  return cpuMicrosOf(pid) - before
}
