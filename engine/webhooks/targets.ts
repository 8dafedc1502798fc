/**
 * The webhooks in memory, by id, user and developer, with compiled filters. Create, edit and remove keep them current,
 * so that planning a batch reads no store.
 */
import { LRUCache } from 'lru-cache'
import { isAppError } from '../errors.ts'
import { measured } from '../observe/loop.ts'
import { yieldToLoop } from '../scheduling.ts'
import { ancestorsOf, threadIds } from '../messages/threads.ts'
import type { Logger } from '../observe/log.ts'
import type { Secret } from '../secrets/list.ts'
import { pagesOf } from '../store/keyed.ts'
import type { ChangeDraft, Store } from '../store/port.ts'
import type { AccountRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { messageRow } from './callbacks.ts'
import { compileMatcher, isFirst, type KnownFacts, type Matcher } from './match.ts'

export interface Target {
  webhook: WebhookRecord
  matcher: Matcher
  /** The opened secrets, after their first use: to open them costs more than to sign a callback. */
  secrets?: readonly Secret[] | undefined
  /** Account → thread ids of the thread filter's reference; absent = not found, or not looked up lately. */
  readonly threads: LRUCache<string, Set<string>>
}

export type Targets = ReturnType<typeof createTargets>

const threadsForgottenMs = 10 * 60_000

export function newTarget(webhook: WebhookRecord): Target {
  const matcher = compileMatcher(webhook)
  // Use does not prolong an entry (noUpdateTTL): older mail of the thread may have come.
  const threads = new LRUCache<string, Set<string>>({
    maxSize: 2_000,
    sizeCalculation: () => 1,
    ttl: threadsForgottenMs,
    noUpdateTTL: true,
  })
  return { webhook, matcher, threads }
}

export function createTargets(store: Pick<Store, 'webhooks' | 'nodes'>, log: Logger) {
  const byId = new Map<string, Target>()
  const byOwner = new Map<string, Set<Target>>()

  function remove(webhookId: string): void {
    const target = byId.get(webhookId)
    if (target === undefined) return
    byId.delete(webhookId)
    const owned = byOwner.get(ownerOf(target.webhook))
    owned?.delete(target)
    if (owned?.size === 0) byOwner.delete(ownerOf(target.webhook))
  }

  /** Adds or replaces. Throws `bad_request` for a bad pattern. */
  function put(webhook: WebhookRecord): Target {
    const target = newTarget(webhook)
    remove(webhook.id)
    byId.set(webhook.id, target)
    byOwner.getOrInsertComputed(ownerOf(webhook), () => new Set()).add(target)
    return target
  }

  function load(webhook: WebhookRecord): boolean {
    try {
      put(webhook)
      return true
    } catch (error) {
      // A pattern of a newer version must not stop the start.
      if (!isAppError(error, 'bad_request')) throw error
      log.error({ webhookId: webhook.id, reason: error.message }, 'webhook left out: its filter cannot be read')
      return false
    }
  }

  return {
    /** Reads the webhooks of these slots, or all. Returns their ids. */
    async load(slots?: readonly number[]): Promise<string[]> {
      const ids: string[] = []
      for await (const page of pagesOf((after, limit) => store.webhooks.page(after, limit, slots))) {
        for (const webhook of page) if (load(webhook)) ids.push(webhook.id)
      }
      return ids
    },
    put,
    /** Patches fields other than filters, without compiling. */
    touch(webhookId: string, patch: Partial<WebhookRecord>): void {
      const target = byId.get(webhookId)
      if (target !== undefined) Object.assign(target, { webhook: { ...target.webhook, ...patch }, secrets: undefined })
    },
    remove,
    get: (webhookId: string): Target | null => byId.get(webhookId) ?? null,
    all: (): Target[] => [...byId.values()],
    /** Every webhook, other nodes' webhooks included. */
    async every(): Promise<WebhookRecord[]> {
      if (store.nodes.ownsAll()) return Array.from(byId.values(), ({ webhook }) => webhook)
      return (await Array.fromAsync(pagesOf((after, limit) => store.webhooks.page(after, limit)))).flat()
    },
    /** The existing webhooks of these ids, by id, other nodes' webhooks included. */
    async several(ids: readonly string[]): Promise<ReadonlyMap<string, WebhookRecord>> {
      const known = ids.flatMap((id) => byId.get(id)?.webhook ?? [])
      const others = store.nodes.ownsAll() ? [] : [...new Set(ids.filter((id) => !byId.has(id)))]
      const read = others.length === 0 ? [] : await store.webhooks.several(others)
      return new Map([...known, ...read].map((webhook) => [webhook.id, webhook]))
    },
    /** The account's webhooks: the user's first, then the application's. */
    of: ({ userId, developerId }: Pick<AccountRecord, 'userId' | 'developerId'>): Target[] => [
      ...(byOwner.get(`u${userId}`) ?? []),
      ...(byOwner.get(`d${developerId}`) ?? []),
    ],
  }
}

function ownerOf({ userId, developerId }: WebhookRecord): string {
  return userId === null ? `d${developerId}` : `u${userId}`
}

/** The outbox rows for these changes. Pure, except that a target learns the ids of its thread. */
export async function planRows(
  targets: readonly Target[],
  account: AccountRecord,
  changes: readonly { readonly change: ChangeDraft; readonly message: MessageRecord }[],
  folderName: (path: string) => string,
): Promise<OutboxRecord[]> {
  const rows: OutboxRecord[] = []
  for (const { change, message } of changes) {
    for (const target of targets) {
      await yieldToLoop()
      if (!target.webhook.active) continue
      const known = { ...knownThreads(target, account.id), folderName }
      const { outcome } = measured(() => target.matcher.judge(change, message, known))
      if (outcome === 'match' && target.matcher.threadReference !== null) learn(target, message)
      if (outcome === 'no') continue
      const { id, kind, at } = change
      const facts = { ...change, first: isFirst(change, message) }
      const occasion = { name: id, changeId: id, kind, at, facts, undecided: outcome === 'undecided' }
      rows.push(messageRow(target.webhook, account, message, occasion))
    }
  }
  return rows
}

export function knownThreads(target: Target, accountId: string): KnownFacts {
  const threads = target.threads.get(accountId)
  return threads === undefined ? {} : { threads }
}

/** Adds the message's ids to the thread: later messages of the thread may not carry its reference. */
function learn(target: Target, message: MessageRecord): void {
  const threads = target.threads.get(message.accountId)
  for (const id of threadIds(message)) threads?.add(id)
}

/** Looks up the thread and the message's ancestors for the thread filter; {} without that filter. */
export async function lookUpThread(
  store: Pick<Store, 'messages'>,
  target: Target,
  message: MessageRecord,
): Promise<KnownFacts> {
  const { threadReference } = target.matcher
  if (threadReference === null) return {}
  const { accountId } = message
  const threads = target.threads.get(accountId) ?? (await findThreads(store, accountId, threadReference))
  // A missing message is not remembered: it may arrive at any time.
  if (threads.size > 0) target.threads.set(accountId, threads)
  return { threads, ancestors: await ancestorsOf(store, message) }
}

/** The ids of the thread that a Message-ID of any of its messages belongs to. */
async function findThreads(store: Pick<Store, 'messages'>, accountId: string, reference: string): Promise<Set<string>> {
  const found = await store.messages.find(accountId, reference)
  return found === null ? new Set() : new Set([found, ...(await ancestorsOf(store, found))].flatMap(threadIds))
}

/** How the waiting callbacks of an inactive webhook end. After a 410 `redeliver` with failed_only finds them. */
export function endOf({ gone = false }: WebhookRecord) {
  return gone
    ? ({ state: 'failed', reason: 'the receiver answered 410 Gone' } as const)
    : ({ state: 'skipped', reason: 'the webhook was paused' } as const)
}

type Dated = Pick<WebhookRecord, 'switches' | 'editedAt'>
type Edit = Partial<Pick<WebhookRecord, (typeof judging)[number] | 'active'>>

/** Only the newest switches are kept. */
const mostSwitches = 20

/** The fields that decide which messages match. */
const judging = ['filters', 'receiveAllChanges', 'receiveDrafts'] as const

/** The times that an edit adds to the record, so that `explain` knows the webhook's state at an event. */
export function dated(before: WebhookRecord, patch: Edit, now: number): Dated {
  const edited = judging.some((key) => key in patch && JSON.stringify(patch[key]) !== JSON.stringify(before[key]))
  const switched = patch.active !== undefined && patch.active !== before.active
  const next = { active: patch.active ?? before.active, at: now }
  return {
    ...(edited ? { editedAt: now } : {}),
    ...(switched ? { switches: [...(before.switches ?? []), next].slice(-mostSwitches) } : {}),
  }
}

/** null = unknown, too long ago. Switches alternate: the state before the first switch is its opposite. */
export function activeAt({ switches = [], active }: WebhookRecord, at: number): boolean | null {
  const last = switches.findLast((one) => one.at <= at)
  if (last !== undefined) return last.active
  const [first] = switches
  if (first === undefined) return active
  return switches.length < mostSwitches ? !first.active : null
}
