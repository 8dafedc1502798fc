import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  countsAsReceived,
  isSentByUser,
  receivedContact,
  repliedContact,
  type CountedMessage,
} from '../../../engine/messages/contacts.ts'
import { parseAddresses } from '../../../engine/messages/addresses.ts'
import type { SpecialUse } from '../../../engine/store/records.ts'

const owner = { userId: 'user', ownAddresses: ['Me@Example.com'] }

function from(text: string): CountedMessage {
  const none = { sender: [], replyTo: [], to: [], cc: [], bcc: [], returnPath: [] }
  return { id: 'mid', facts: { addresses: { ...none, from: parseAddresses(text) }, receivedAt: 7 } }
}

test('a received message counts once for its sender', () => {
  assert.deepEqual(receivedContact(owner, null, from('Ann <Ann@X.org>')), [
    { userId: 'user', email: 'ann@x.org', name: 'Ann', key: 'mid:r', total: 1, direct: 0, indirect: 1, receivedAt: 7 },
  ])
})

test('own mail, unwanted folders and mail without a sender count nothing', () => {
  assert.deepEqual(receivedContact(owner, '\\Inbox', from('me@example.COM')), [])
  assert.deepEqual(receivedContact(owner, null, from('Mailer Daemon')), [])
  assert.deepEqual(receivedContact(owner, null, from('')), [])
  for (const role of ['\\Sent', '\\Drafts', '\\Junk', '\\Trash'] as SpecialUse[]) {
    assert.equal(countsAsReceived(role), false)
    assert.deepEqual(receivedContact(owner, role, from('ann@x.org')), [])
  }
  for (const role of [null, '\\Inbox', '\\All', '\\Archive', '\\Flagged', '\\Important'] as (SpecialUse | null)[]) {
    assert.equal(receivedContact(owner, role, from('ann@x.org')).length, 1)
  }
})

test('a reply counts for the sender of the answered message, under the answered message', () => {
  assert.deepEqual(repliedContact(owner, from('Ann <Ann@X.org>')), [
    { userId: 'user', email: 'ann@x.org', name: 'Ann', key: 'mid:d', total: 0, direct: 1, indirect: 0, receivedAt: 7 },
  ])
  assert.deepEqual(repliedContact(owner, from('Me <me@example.com>')), [])
})

test('who wrote it', () => {
  assert.equal(isSentByUser(owner, '\\Sent', from('anybody@x.org')), true)
  assert.equal(isSentByUser(owner, '\\All', from('ME@example.com')), true)
  assert.equal(isSentByUser(owner, '\\Drafts', from('me@example.com')), false)
  assert.equal(isSentByUser(owner, null, from('ann@x.org')), false)
})
