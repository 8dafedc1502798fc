/** Lists what needs an operator: the service, mail servers, webhooks and email accounts in trouble. */
import type { HostFacts } from './hosts.ts'
import type { AccountPlace, Store } from './store/port.ts'
import type { WebhookRecord } from './store/records.ts'
import type { Webhooks } from './webhooks/index.ts'
import type { PoolFacts } from './observe/steps.ts'

export const attentionKinds = ['account', 'host', 'webhook', 'receiver', 'service'] as const

export interface Attention {
  readonly kind: (typeof attentionKinds)[number]
  /** The URL of a receiver, the name of a host. */
  readonly id: string
  readonly what: string
  /** Milliseconds since 1970. */
  readonly since: number
}

interface Sources {
  readonly store: Store
  readonly webhooks: Pick<Webhooks, 'all'>
  readonly backups: { lastAt(): Promise<number | null> }
}

const mostAttention = 50
/** Entries of one kind, so that other kinds have room. */
const mostOfKind = 20
const longDownMs = 3_600_000
const longPauseMs = 86_400_000
const oldBackupMs = 25 * 3_600_000

interface Seen {
  readonly ready: boolean
  readonly hosts: readonly HostFacts[]
  readonly places: readonly AccountPlace[]
  readonly known: readonly PoolFacts[]
  /** Actors of webhooks, by id. */
  readonly channels: ReadonlyMap<string, PoolFacts>
  /** Addresses of nodes that did not answer. */
  readonly silent: readonly string[]
}

/** At most fifty entries: the most urgent kind first, then the longest trouble first. */
export async function attentionOf(sources: Sources, seen: Seen): Promise<Attention[]> {
  const { ready, hosts, places, known, channels, silent } = seen
  const now = Date.now()
  const service = ready ? [] : [troubledService('the store takes no writes, or the actors are not started yet', now)]
  const nodes = silent.map((address) => troubledService(`the process at ${address} does not answer`, now))
  const troubled = troubledHosts(hosts).toSorted(byAge)
  const receivers = troubledWebhooks(await sources.webhooks.all(), channels)
  const ofKinds = [...troubled.slice(0, mostOfKind), ...receivers.slice(0, mostOfKind)]
  const all = [...service, ...nodes.slice(0, mostOfKind), ...(await troubledBackup(sources)), ...ofKinds]
  const named = new Set(troubled.map(({ id }) => id))
  const accounts = await troubledAccounts(sources, { places, known, named }, mostAttention - all.length)
  return [...all, ...accounts].slice(0, mostAttention)
}

function troubledService(what: string, at: number): Attention {
  return { kind: 'service', id: 'store', what, since: at }
}

/** Without any backup there is no alarm. A store copied to MongoDB still has the time of the last one. */
async function troubledBackup({ backups, store }: Sources): Promise<Attention[]> {
  const at = store.backup === undefined ? null : await backups.lastAt()
  const isOld = at !== null && at < Date.now() - oldBackupMs
  return isOld ? [troubledService('the newest backup is more than 25 hours old', at)] : []
}

/** Hosts where most accounts are down, or whose logins an operator has stopped. */
function troubledHosts(hosts: readonly HostFacts[]): Attention[] {
  const troubled = hosts.filter(({ accounts, failing, pace }) => pace === 0 || (failing > 1 && failing * 2 >= accounts))
  return troubled.map(({ host, accounts, failing, pace, since }) => {
    const what =
      pace === 0
        ? `logins to ${host} are stopped by an operator`
        : `${failing} of ${accounts} accounts at ${host} cannot connect`
    return { kind: 'host', id: host, since: since ?? Date.now(), what }
  })
}

/** Webhooks with one URL are one receiver, with the reason and time of the one that has failed longest. */
function troubledWebhooks(webhooks: readonly WebhookRecord[], channels: Seen['channels']): Attention[] {
  const failing = webhooks.flatMap(({ id, callbackUrl: url, active, health }) => {
    const facts = channels.get(id)
    // An inactive webhook keeps its health.
    if (!active || facts?.tags.includes('failed') !== true) return []
    const what = facts.tags.includes('abandoned') ? 'has failed for so long that only probes are sent' : 'fails'
    const why = health.lastError === null ? '' : `: ${health.lastError}`
    return [{ id, url, what, why, since: health.failingSince ?? facts.since }]
  })
  return [...Map.groupBy(failing.toSorted(byAge), ({ url }) => url)].flatMap(([url, those]): Attention[] => {
    const [first] = those
    if (first === undefined) return []
    const { id, what, why, since } = first
    if (those.length === 1) return [{ kind: 'webhook', id, what: `${url} ${what}${why}`, since }]
    return [{ kind: 'receiver', id: url, what: `${those.length} webhooks fail: ${url}${why}`, since }]
  })
}

/** `named`: hosts that have an entry of their own. */
async function troubledAccounts(
  { store }: Sources,
  { places, known, named }: Pick<Seen, 'places' | 'known'> & { readonly named: ReadonlySet<string> },
  room: number,
): Promise<Attention[]> {
  const dead = new Set(known.filter(({ state }) => state === 'dead').map(({ id }) => id))
  const now = Date.now()
  const first = places
    .filter(({ id, server, condition: { is, since } }) => {
      if (dead.has(id) || is === 'disabled') return true
      if (is === 'down') return since < now - longDownMs && !named.has(server)
      return is === 'paused' && since < now - longPauseMs
    })
    .slice(0, Math.max(0, room))
  const records = new Map((await store.accounts.several(first.map(({ id }) => id))).map((one) => [one.id, one]))
  return first.flatMap(({ id, condition: { is, since } }): Attention[] => {
    const account = records.get(id)
    if (account === undefined) return []
    const why = is === 'paused' ? undefined : (account.statusMessage ?? account.resume.lastError?.message)
    const what = dead.has(id) ? 'its actor ended by a fault of the service' : conditionWords[is]
    const words = `${account.email} at ${account.server}: ${what}${why === undefined ? '' : ` (${why})`}`
    return [{ kind: 'account', id, what: words, since }]
  })
}

const conditionWords = { up: 'up', down: 'down', disabled: 'DISABLED', paused: 'paused' } as const

function byAge(left: Pick<Attention, 'since'>, right: Pick<Attention, 'since'>): number {
  return left.since - right.since
}
