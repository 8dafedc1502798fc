/** Webhooks, their health, and their historical scans. */
import type { WebhookLimits, WebhookStore } from '../port.ts'
import type { HistoricalScan, OutboxRecord, WebhookRecord } from '../records.ts'
import { checkRoom, noWebhookLimits } from '../rows.ts'
import { checkUser } from './account-rows.ts'
import type { Database } from './database.ts'
import { insertOutbox } from './outbox-rows.ts'
import { removeWebhook } from './removal.ts'

export const webhookLists = {
  ofUser: 'SELECT doc FROM webhooks WHERE user_id = ? ORDER BY created_at, id',
  ofDeveloper: `SELECT doc FROM webhooks WHERE developer_id = ? AND user_id = '' ORDER BY created_at, id`,
  page: 'SELECT doc FROM webhooks WHERE id > ? ORDER BY id LIMIT ?',
} as const

/** No further than the limit. */
export const webhookCounts = {
  ofOwner: 'SELECT count(*) FROM (SELECT 1 FROM webhooks WHERE developer_id = ? AND user_id = ? LIMIT ?)',
  ofAll: 'SELECT count(*) FROM (SELECT 1 FROM webhooks WHERE developer_id = ? LIMIT ?)',
} as const

function saveScan(db: Database, scan: HistoricalScan, outbox: readonly OutboxRecord[]): void {
  insertOutbox(db, outbox)
  db.run(
    `INSERT INTO scans (webhook_id, account_id, doc) VALUES (?, ?, ?)
     ON CONFLICT (webhook_id, account_id) DO UPDATE SET doc = excluded.doc`,
    scan.webhookId,
    scan.accountId,
    JSON.stringify(scan),
  )
}

export function createWebhooks(db: Database): WebhookStore {
  const get = (id: string) => db.doc('SELECT doc FROM webhooks WHERE id = ?', id) as WebhookRecord | null
  const edit = (id: string, patch: Partial<WebhookRecord>): WebhookRecord | null => {
    const stored = get(id)
    if (!stored) return null
    const webhook = { ...stored, ...patch }
    db.run('UPDATE webhooks SET doc = ? WHERE id = ?', JSON.stringify(webhook), id)
    return webhook
  }
  const create = (webhook: WebhookRecord, limits: WebhookLimits): void => {
    const { id, developerId, userId, createdAt } = webhook
    checkUser(db, userId)
    const { ofOwner, ofAll } = webhookCounts
    checkRoom('owner', limits, limits.owner > 0 ? db.number(ofOwner, developerId, userId ?? '', limits.owner) : 0)
    checkRoom('developer', limits, limits.developer > 0 ? db.number(ofAll, developerId, limits.developer) : 0)
    const insert = 'INSERT INTO webhooks (id, developer_id, user_id, created_at, doc) VALUES (?, ?, ?, ?, ?)'
    db.run(insert, id, developerId, userId ?? '', createdAt, JSON.stringify(webhook))
  }
  return {
    create: (webhook, limits = noWebhookLimits) => db.write(() => create(webhook, limits)),
    get: (id) => db.read(() => get(id)),
    listByUser: (userId) => db.read(() => db.docs(webhookLists.ofUser, userId) as WebhookRecord[]),
    listByDeveloper: (developerId) => db.read(() => db.docs(webhookLists.ofDeveloper, developerId) as WebhookRecord[]),
    page: (afterId, limit) => db.read(() => db.docs(webhookLists.page, afterId ?? '', limit) as WebhookRecord[]),
    edit: (id, patch) => db.write(() => edit(id, patch)),
    recordHealth: (id, health, outbox) =>
      db.write(() => {
        insertOutbox(db, outbox)
        edit(id, { health })
      }),
    remove: (id) => removeWebhook(db, id, false),
    scan: (webhookId, accountId) =>
      db.read(() => {
        const select = 'SELECT doc FROM scans WHERE webhook_id = ? AND account_id = ?'
        return db.doc(select, webhookId, accountId) as HistoricalScan | null
      }),
    saveScan: (scan, outbox) => db.write(() => saveScan(db, scan, outbox)),
  }
}
