/** Facts of a corpus message against what is written beside it. Throws an AssertionError that names the field. */
import assert from 'node:assert/strict'
import { decodeBody } from '../../../engine/messages/bodies.ts'
import { decodeTransfer } from '../../../engine/messages/transfer-encoding.ts'
import type { MessageFacts } from '../../../engine/store/records.ts'
import type { CorpusMessage } from './types.ts'

/** `internalDate`: what sentAt must be when the Date header is unreadable. */
export function compareHeaders(facts: MessageFacts, { expected }: CorpusMessage, internalDate: number): void {
  const given = {
    subject: facts.subject,
    emailMessageId: facts.emailMessageId,
    from: facts.addresses.from,
    to: facts.addresses.to,
    cc: facts.addresses.cc,
    toCount: facts.addresses.to.length,
    sentAt: facts.sentAt,
    inReplyTo: facts.inReplyTo,
    references: facts.references,
    listHeaders: facts.listHeaders,
    receivedCount: facts.receivedHeaders.length,
  }
  for (const key of Object.keys(given) as (keyof typeof given)[]) {
    if (!(key in expected)) continue
    const wanted = key === 'sentAt' ? (expected.sentAt ?? internalDate) : expected[key]
    assert.deepEqual(given[key], wanted, key)
  }
}

/** `bytesOf`: the part as transferred, BODY[section]. */
export function compareBodies(facts: MessageFacts, { expected }: CorpusMessage, bytesOf: (section: string) => Buffer): void {
  if (!expected.bodies) return
  assert.deepEqual(
    facts.bodies.map(({ section, type }) => ({ section, type })),
    expected.bodies.map(({ section, type }) => ({ section, type })),
  )
  expected.bodies.forEach(({ section, text, size }, at) => {
    const part = facts.bodies[at]
    assert.ok(part)
    const transferred = bytesOf(section)
    if (text !== undefined) assert.equal(decodeBody(transferred, part), text)
    if (size !== undefined) assert.equal(part.size, size, 'size')
  })
}

export function compareAttachments(
  facts: MessageFacts,
  { expected }: CorpusMessage,
  bytesOf: (section: string) => Buffer,
): void {
  if (!expected.attachments) return
  assert.deepEqual(
    facts.attachments.map(({ section, type, fileName, index }) => ({ section, type, fileName, index })),
    expected.attachments.map(({ section, type, fileName }, index) => ({ section, type, fileName, index })),
  )
  expected.attachments.forEach((wanted, at) => {
    const part = facts.attachments[at]
    assert.ok(part)
    if (wanted.embedded !== undefined) assert.equal(part.embedded, wanted.embedded)
    if (wanted.contentId !== undefined) assert.equal(part.contentId, wanted.contentId)
    const transferred = bytesOf(wanted.section)
    assert.equal(part.size, transferred.length)
    if (wanted.content) assert.ok(decodeTransfer(transferred, part.encoding).equals(wanted.content), part.fileName)
  })
}
