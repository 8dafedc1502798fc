/** Outbox rows and the columns that follow from them. Every step that queues callbacks writes them through here. */
import type { OutboxRecord } from '../records.ts'
import { lastStatus } from '../rows.ts'
import type { Statements } from './statements.ts'

/** Inserts what is not there yet (by id). Answers those that were new. */
export function insertOutbox(sql: Statements, rows: readonly OutboxRecord[]): OutboxRecord[] {
  return rows.filter((row) => insertRow(sql, row))
}

function insertRow(sql: Statements, row: OutboxRecord): boolean {
  const inserted = sql.run(
    `INSERT INTO outbox (id, channel_id, webhook_id, developer_id, user_id, account_id, message_id, kind, state, lane,
       created_at, seq, finished_at, last_status, doc)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    row.id,
    row.channelId,
    row.webhookId ?? '',
    row.developerId,
    row.userId ?? '',
    row.accountId ?? '',
    row.messageId ?? '',
    row.kind,
    row.state,
    row.lane,
    row.createdAt,
    row.seq,
    row.finishedAt,
    lastStatus(row),
    JSON.stringify(row),
  )
  return inserted === 1
}

export function readOutbox(sql: Statements, id: string): OutboxRecord | null {
  return sql.doc('SELECT doc FROM outbox WHERE id = ?', id) as OutboxRecord | null
}

/** What a delivery changes. */
export function saveOutbox(sql: Statements, row: OutboxRecord): void {
  sql.run(
    'UPDATE outbox SET state = ?, finished_at = ?, last_status = ?, doc = ? WHERE id = ?',
    row.state,
    row.finishedAt,
    lastStatus(row),
    JSON.stringify(row),
    row.id,
  )
}
