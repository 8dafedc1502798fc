/** One message, and what a webhook's filters say of it. */
import assert from 'node:assert/strict'
import type { MessageFacts, WebhookFilters } from '../../../engine/store/records.ts'
import { compileMatcher, type Judgement, type KnownFacts, type MessageEvent } from '../../../engine/webhooks/match.ts'
import { type Arrival, facts, messageOf } from './arrival.ts'

export const account = { id: 'a'.repeat(24), userId: 'b'.repeat(24) } as Parameters<typeof messageOf>[0]
const attachment = {
  index: 0,
  section: '2',
  type: 'application/pdf',
  encoding: 'base64',
  size: 1,
  disposition: 'attachment',
  contentId: null,
  embedded: false,
}

export const mail = facts('m1', {
  subject: 'Rechnung Nr. 42 – Grüße',
  addresses: {
    from: [{ name: 'Ada Lovelace', email: 'ada@mail.example.org' }],
    sender: [],
    replyTo: [],
    to: [
      { name: 'Team, Sales', email: 'Sales@Example.com' },
      { name: '', email: 'bob@bücher.example' },
    ],
    cc: [{ name: 'Élodie', email: 'elodie@example.net' }],
    bcc: [],
    returnPath: [],
  },
  inReplyTo: 'parent@example.com',
  references: ['root@example.com', 'parent@example.com'],
  threadId: 'feedfeedfeedfeed',
  hostedThreadId: '1234567890123456789',
  attachments: [
    { ...attachment, fileName: 'Invoice-2024.PDF' },
    { ...attachment, index: 1, fileName: 'report[1].doc' },
  ],
})

interface Case {
  readonly event?: Partial<MessageEvent>
  readonly arrival?: Partial<Arrival>
  readonly known?: KnownFacts
  readonly facts?: MessageFacts
  readonly more?: { receiveAllChanges?: boolean; receiveDrafts?: boolean }
}

export function judge(
  filters: WebhookFilters,
  { event, arrival, known, facts: of = mail, more }: Case = {},
): Judgement {
  const message = messageOf(account, { facts: of, ...arrival }, 1, null)
  const [place] = message.placements
  assert.ok(place)
  const { folderId, path, uid, flags } = place
  const full: MessageEvent = { kind: 'received', first: true, folderId, path, uid, flags, ...event }
  const matcher = compileMatcher({ filters, receiveAllChanges: false, receiveDrafts: false, ...more })
  return matcher.judge(full, message, known)
}
