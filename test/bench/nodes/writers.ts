/**
 * Who writes the email accounts, as the proxies between the nodes and the database see it. A claim gives an account its
 * next epoch. A fenced write names an epoch of its account; it took effect when the database found that epoch. Two
 * nodes write one account when fenced writes of one epoch come from both, or when one that was sent after a claim was
 * complete takes effect with an older epoch.
 */
import type { Document } from 'mongodb'
import type { Watch } from '../../store/mongo-proxy.ts'

export interface Writers {
  /** For the proxy of this node. */
  watch(node: string): Watch
  facts(): {
    readonly claims: number
    /** Fenced writes that took effect. */
    readonly writes: number
    /** Fenced writes that found another epoch. */
    readonly refused: number
    /** Writes of two nodes to one account, each in words. */
    readonly double: readonly string[]
  }
}

const fenced = new Set(['accounts', 'folders'])

interface FencedWrite {
  readonly collection: string
  readonly accountId: string
  readonly epoch: number
}

export function trackWriters(): Writers {
  /** By collection and account: the epoch of the last claim that is complete there. */
  const claimed = new Map<string, number>()
  /** By account and epoch: the node that claimed it, or wrote with it. */
  const writers = new Map<string, string>()
  const double: string[] = []
  const count = { claims: 0, writes: 0, refused: 0 }

  function isBy(node: string, accountId: string, epoch: number): void {
    const key = `account ${accountId}, epoch ${epoch}`
    const writer = writers.get(key) ?? node
    writers.set(key, writer)
    if (writer !== node) double.push(`${key}: ${writer} and ${node}`)
  }

  function complete(collection: string, accountId: string, epoch: number): void {
    const key = `${collection} ${accountId}`
    claimed.set(key, Math.max(epoch, claimed.get(key) ?? 0))
  }

  const watchWrite = (node: string, { collection, accountId, epoch }: FencedWrite) => {
    const newest = claimed.get(`${collection} ${accountId}`) ?? 0
    return (reply: Document): void => {
      if (!tookEffect(reply)) {
        count.refused += 1
        return
      }
      count.writes += 1
      isBy(node, accountId, epoch)
      if (epoch < newest) double.push(`account ${accountId}: ${node} wrote ${collection} with ${epoch} after ${newest}`)
    }
  }

  return {
    watch: (node) => (command) => {
      const claim = claimOf(command)
      if (claim !== null)
        return ({ value }) => {
          const epoch = (value as { readonly epoch?: number } | null)?.epoch
          if (epoch === undefined) return
          count.claims += 1
          isBy(node, claim, epoch)
          complete('accounts', claim, epoch)
        }
      const folders = folderClaimOf(command)
      if (folders !== null) return () => complete('folders', folders.accountId, folders.epoch)
      const write = fencedWriteOf(command)
      return write === null ? null : watchWrite(node, write)
    },
    facts: () => ({ ...count, double }),
  }
}

/** The account of a claim (engine/store/mongo/accounts.ts), whose answer has the epoch. */
function claimOf({ findAndModify, query, update }: Document): string | null {
  const inc = (update as Document | undefined)?.['$inc'] as Document | undefined
  return findAndModify === 'accounts' && inc?.['epoch'] === 1 ? String((query as Document)['_id']) : null
}

/** The second part of a claim: the epoch of the account's folders. */
function folderClaimOf({ update, updates }: Document): { readonly accountId: string; readonly epoch: number } | null {
  const [first] = (updates ?? []) as readonly { readonly q: Document; readonly u: { readonly $set?: Document } }[]
  const epoch: unknown = first?.u.$set?.['epoch']
  if (update !== 'folders' || typeof epoch !== 'number' || typeof first?.q['epoch'] !== 'object') return null
  return { accountId: String(first.q['accountId']), epoch }
}

function fencedWriteOf({ findAndModify, query, ...command }: Document): FencedWrite | null {
  const statements = (command['updates'] ?? command['deletes'] ?? []) as readonly { readonly q: Document }[]
  const filter = (query ?? statements[0]?.q) as Document | undefined
  const collection = String(findAndModify ?? command['update'] ?? command['delete'])
  const epoch: unknown = filter?.['epoch']
  if (!fenced.has(collection) || filter === undefined || typeof epoch !== 'number') return null
  return { collection, accountId: String(filter['accountId'] ?? filter['_id']), epoch }
}

function tookEffect({ n, value }: Document): boolean {
  return n === undefined ? value !== null && value !== undefined : Number(n) > 0
}
