/** Webhooks, their health, and their historical scans. */
import type { WebhookStore } from '../port.ts'
import type { HistoricalScan, WebhookRecord } from '../records.ts'
import { orNull, recordIn, toDoc, toRecord, type MongoContext, type ScanDoc } from './documents.ts'
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

async function create(context: MongoContext, webhook: WebhookRecord): Promise<void> {
  const insert = () => context.collections.webhooks.insertOne(toDoc(webhook))
  await insertOwned(context, webhook.userId, insert, () => removeWebhook(context, webhook.id, true))
}

export function createWebhooks(context: MongoContext): WebhookStore {
  const { collections, read } = context
  const { webhooks, scans } = collections
  return {
    create: (webhook) => create(context, webhook),
    get: async (id) => orNull(await webhooks.findOne({ _id: id }, read), toRecord<WebhookRecord>),
    listByUser: async (userId) =>
      (await webhooks.find({ userId }, read).sort(webhookOrder).toArray()).map(toRecord<WebhookRecord>),
    listByDeveloper: async (developerId) => {
      const rows = webhooks.find({ developerId, userId: null }, read)
      return (await rows.sort(webhookOrder).toArray()).map(toRecord<WebhookRecord>)
    },
    page: async (afterId, limit) => {
      const rows = webhooks.find({ _id: { $gt: afterId ?? '' } }, read)
      return (await rows.sort({ _id: 1 }).limit(limit).toArray()).map(toRecord<WebhookRecord>)
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
      await webhooks.updateOne({ _id: id }, { $set: { health } })
    },
    remove: (id) => removeWebhook(context, id, false),
    scan: async (webhookId, accountId) =>
      orNull(await scans.findOne({ _id: `${webhookId}:${accountId}` }, read), scanRecord),
    saveScan: async (scan, outbox) => {
      await enqueue(context, outbox)
      const { _id, ...fields } = scanDoc(scan)
      await scans.updateOne({ _id }, { $set: fields }, { upsert: true })
    },
  }
}
