/** Outbox rows and the fields that follow from them. Every step that queues callbacks writes them through here. */
import type { OutboxRecord } from '../records.ts'
import { lastStatus } from '../rows.ts'
import { recordIn, toDoc, type OutboxDoc } from './documents.ts'

export const outboxFieldsOnly = { lastStatus: 0, v: 0 } as const

export function outboxDoc(row: OutboxRecord): OutboxDoc {
  return { ...toDoc(row), lastStatus: lastStatus(row), v: 0 }
}

const beside = new Set(['lastStatus', 'v'])

export function outboxRecord(doc: OutboxDoc): OutboxRecord {
  return recordIn(doc, beside) as OutboxRecord
}
