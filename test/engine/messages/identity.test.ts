import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identityOf, isLikeMail, isSameMail } from '../../../engine/accounts/identity.ts'
import { factsOf } from '../../../engine/messages/facts.ts'
import { corpus } from '../../support/corpus/index.ts'
import { fetchedOf } from '../../support/corpus/fetched.ts'
import type { FetchedMessage } from '../../../engine/accounts/session-types.ts'

const raw = Buffer.from(
  'Message-ID: <a@b>\r\nFrom: a@b.c\r\nDate: Tue, 05 Mar 2024 12:00:00 +0000\r\nSubject: s\r\n\r\n',
)
const base = fetchedOf(raw, { internalDate: 5_000 })
const changed = (more: Partial<FetchedMessage>): string => identityOf({ ...base, ...more }, null)

test("the server's own id comes first", () => {
  assert.equal(identityOf({ ...base, emailId: '17' }, 'gmail'), 'gm:17')
  assert.equal(identityOf({ ...base, emailId: 'M9' }, 'objectid'), 'eid:M9')
  assert.match(identityOf(base, 'gmail'), /^mid:[0-9a-f]{40}$/)
  assert.match(identityOf({ ...base, emailId: '17' }, null), /^mid:/)
})

test('Message-ID, size, second of arrival, From, Date and Subject all count', () => {
  assert.equal(changed({ uid: 99, flags: ['\\Seen'], internalDate: 5_999 }), changed({}))
  const others = [
    changed({ size: 1 }),
    changed({ internalDate: 6_000 }),
    ...['<a@b>', 'a@b.c', '12:00', 'Subject: s'].map((old) =>
      changed({ headers: Buffer.from(raw.toString().replace(old, '<other@12:01>')) }),
    ),
  ]
  assert.equal(new Set([changed({}), ...others]).size, 1 + others.length)
})

test('of a repeated header the first counts', () => {
  const more = (field: string) => raw.toString().replace('\r\n\r\n', `\r\n${field}\r\n\r\n`)
  for (const field of ['Subject: other', 'From: x@y.z', 'Date: Wed, 06 Mar 2024 12:00:00 +0000']) {
    assert.equal(changed({ headers: Buffer.from(more(field)) }), changed({}), field)
  }
})

test('without a Message-ID the header block is hashed, and the identity is weak', () => {
  const bare = { ...base, headers: Buffer.from('Subject: x\r\n\r\n') }
  assert.match(identityOf(bare, null), /^hdr:/)
  assert.match(identityOf(base, null), /^mid:/)
  assert.notEqual(identityOf(bare, null), identityOf({ ...bare, internalDate: 9_000 }, null))
})

test('a UID is used again when both have a Message-ID and they differ; without, when date, and subject or size, differ', () => {
  const facts = factsOf('a', base)
  const bare = { ...facts, emailMessageId: null }
  const day = { sentAt: facts.sentAt + 1 }
  const cases: readonly [one: typeof facts, other: typeof facts, alike: boolean][] = [
    [facts, { ...facts, ...day, subject: 'other', size: 1 }, true],
    [facts, { ...facts, emailMessageId: 'other@b' }, false],
    [bare, facts, true],
    [bare, { ...facts, ...day }, true],
    [bare, { ...facts, subject: 'other', size: 1 }, true],
    [bare, { ...facts, ...day, subject: 'other' }, false],
    [bare, { ...facts, ...day, size: 1 }, false],
    [bare, { ...bare, ...day, subject: 'other', size: 1 }, false],
  ]
  for (const [one, other, alike] of cases) {
    assert.equal(isLikeMail(one, other), alike, JSON.stringify([one, other]))
    assert.equal(isLikeMail(other, one), alike, JSON.stringify([other, one]))
  }
})

test('the second try does not look at INTERNALDATE', () => {
  const facts = (more: Partial<FetchedMessage>) => factsOf('a', { ...base, ...more })
  assert.equal(isSameMail(facts({}), facts({ internalDate: 99_000 })), true)
  assert.equal(isSameMail(facts({}), facts({ internalDate: Date.UTC(2024, 2, 5, 12) })), true)
  assert.equal(isSameMail(facts({}), facts({ size: 1 })), false)
  const undated = Buffer.from('Message-ID: <a@b>\r\nSubject: s\r\n\r\n')
  assert.equal(isSameMail(facts({ headers: undated }), facts({ headers: undated, internalDate: 99_000 })), true)
  const nameless = Buffer.from('Subject: s\r\n\r\n')
  assert.equal(isSameMail(facts({ headers: nameless }), facts({ headers: nameless })), false)
})

test('the second try looks at everything else, each for itself', () => {
  const facts = factsOf('a', base)
  const sender = { ...facts.addresses, from: [{ email: 'x@y.z', name: '' }] }
  const others = [
    { emailMessageId: 'c@d' },
    { size: 1 },
    { sentAt: facts.sentAt + 1000 },
    { subject: 't' },
    { addresses: sender },
    { addresses: { ...facts.addresses, from: [] } },
  ]
  for (const other of others) {
    assert.equal(isSameMail(facts, { ...facts, ...other }), false, JSON.stringify(other))
    assert.equal(isSameMail({ ...facts, ...other }, facts), false, JSON.stringify(other))
  }
  const noSender = { ...facts, addresses: { ...facts.addresses, from: [] } }
  assert.equal(isSameMail(noSender, noSender), true)
})

test('a Date header on one side only does count', () => {
  const dated = factsOf('a', base)
  const undated = { ...dated, sentAt: dated.receivedAt }
  assert.equal(isSameMail(dated, undated), false)
  assert.equal(isSameMail(undated, dated), false)
  assert.equal(isSameMail(undated, { ...undated, sentAt: 99_000, receivedAt: 99_000 }), true)
})

test('every message of the corpus has its own identity, the pair that shares a Message-ID too', () => {
  const identities = corpus.map((message) => identityOf(fetchedOf(message.raw), null))
  assert.equal(new Set(identities).size, corpus.length)
})
