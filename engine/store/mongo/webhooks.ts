/** Webhooks, their health, and their historical scans. */
import type { WebhookLimits, WebhookStore } from '../port.ts'
import type { HistoricalScan, OutboxRecord, WebhookRecord } from '../records.ts'
import { checkRoom, noWebhookLimits } from '../rows.ts'
import { orNull, recordIn, rowsOf, toDoc, toRecord, type MongoContext, type ScanDoc } from './documents.ts'
import { deadlineOf, insist } from './insist.ts'
import { enqueue } from './outbox.ts'
import { insertOwned } from './owners.ts'
import { removeWebhook } from './removal.ts'

export const webhookOrder = { createdAt: 1, _id: 1 } as const

export function scanDoc(scan: HistoricalScan): ScanDoc {
  return { _id: `${scan.webhookId}:${scan.accountId}`, ...scan }
}

const beside: ReadonlySet<string> = new Set()

export function scanRecord(doc: ScanDoc): HistoricalScan {
  return recordIn(doc, beside, '') as HistoricalScan
}

/** Counted before and after: of creations at the same time none remains that is over a limit. */
async function create(context: MongoContext, webhook: WebhookRecord, limits: WebhookLimits): Promise<void> {
  const undo = () => removeWebhook(context, webhook.id, true)
  const deadline = deadlineOf(context)
  await insist(deadline, () => checkLimits(context, webhook, limits))
  await insertOwned(context, webhook.userId, context.collections.webhooks, toDoc(webhook), undo)
  try {
    await insist(deadline, () => checkLimits(context, webhook, limits))
  } catch (error) {
    await undo()
    throw error
  }
}

/** The others, as far as the limit. */
async function checkLimits(
  { collections, read }: MongoContext,
  { id, developerId, userId }: WebhookRecord,
  limits: WebhookLimits,
): Promise<void> {
  const others = async (limit: number, owner: { readonly userId?: string | null }): Promise<number> => {
    if (limit === 0) return 0
    const query = { developerId, ...owner, _id: { $ne: id } }
    return collections.webhooks.countDocuments(query, { ...read, limit })
  }
  checkRoom('owner', limits, await others(limits.owner, { userId }))
  checkRoom('developer', limits, await others(limits.developer, {}))
}

/** Of a webhook that was removed meanwhile nothing is left: nobody would send these rows. */
async function saveScan(context: MongoContext, scan: HistoricalScan, outbox: readonly OutboxRecord[]): Promise<void> {
  const { webhooks, scans } = context.collections
  await enqueue(context, outbox)
  const { _id, ...fields } = scanDoc(scan)
  await scans.updateOne({ _id }, { $set: fields }, { upsert: true })
  const webhook = await webhooks.findOne({ _id: scan.webhookId }, { ...context.read, projection: { _id: 1 } })
  if (!webhook) await removeWebhook(context, scan.webhookId, false)
}

export function createWebhooks(context: MongoContext): WebhookStore {
  const { collections, read } = context
  const { webhooks, scans } = collections
  return {
    create: (webhook, limits = noWebhookLimits) => create(context, webhook, limits),
    get: async (id) => orNull(await webhooks.findOne({ _id: id }, read), toRecord<WebhookRecord>),
    listByUser: async (userId) =>
      (await webhooks.find({ userId }, read).sort(webhookOrder).toArray()).map(toRecord<WebhookRecord>),
    listByDeveloper: async (developerId) => {
      const rows = webhooks.find({ developerId, userId: null }, read)
      return (await rows.sort(webhookOrder).toArray()).map(toRecord<WebhookRecord>)
    },
    page: async (afterId, limit) => {
      const rows = webhooks.find({ _id: { $gt: afterId ?? '' } }, read)
      return (await rowsOf(rows.sort({ _id: 1 }), limit)).map(toRecord<WebhookRecord>)
    },
    edit: async (id, patch) => {
      if (Object.keys(patch).length === 0)
        return orNull(await webhooks.findOne({ _id: id }, read), toRecord<WebhookRecord>)
      return orNull(
        await webhooks.findOneAndUpdate({ _id: id }, { $set: patch }, { returnDocument: 'after' }),
        toRecord<WebhookRecord>,
      )
    },
    recordHealth: async (id, health, outbox) => {
      await enqueue(context, outbox)
      const { matchedCount } = await webhooks.updateOne({ _id: id }, { $set: { health } })
      if (matchedCount === 0) await removeWebhook(context, id, false)
    },
    remove: (id) => removeWebhook(context, id, false),
    scan: async (webhookId, accountId) =>
      orNull(await scans.findOne({ _id: `${webhookId}:${accountId}` }, read), scanRecord),
    saveScan: (scan, outbox) => saveScan(context, scan, outbox),
  }
}
