/** Every message of the corpus gives the facts written beside it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeBody } from '../../../engine/messages/bodies.ts'
import { factsOf } from '../../../engine/messages/facts.ts'
import { compareAttachments, compareBodies, compareHeaders } from '../../support/corpus/compare.ts'
import { bigAttachment, corpus } from '../../support/corpus/index.ts'
import { fetchedOf } from '../../support/corpus/fetched.ts'
import { sectionOf } from '../../support/corpus/sections.ts'

const internalDate = Date.UTC(2024, 2, 6)

for (const message of corpus) {
  test(`corpus: ${message.name} ${message.expected.subject?.slice(0, 30) ?? ''}`, () => {
    const facts = factsOf('account', fetchedOf(message.raw, { internalDate }))
    compareHeaders(facts, message, internalDate)
    compareBodies(facts, message, (section) => sectionOf(message.raw, section))
    compareAttachments(facts, message, (section) => sectionOf(message.raw, section))
    assert.match(facts.threadId, /^[0-9a-f]{16}$/)
    assert.ok(facts.bodies.length + facts.attachments.length > 0, 'every message has at least one part')
  })
}

test('corpus: without BODYSTRUCTURE every message still has a part 1, in the right charset', () => {
  for (const { name, raw } of corpus) {
    const facts = factsOf('account', fetchedOf(raw, { body: null }))
    assert.equal([...facts.bodies, ...facts.attachments][0]?.section, '1', name)
  }
  const koi8 = corpus.find(({ name }) => name === 'charset-koi8-r')
  assert.ok(koi8)
  const [part] = factsOf('account', fetchedOf(koi8.raw, { body: null })).bodies
  assert.ok(part)
  assert.equal(decodeBody(sectionOf(koi8.raw, '1'), part), koi8.expected.bodies?.[0]?.text)
})

test('corpus: a 25 MB attachment is found and decoded byte for byte', () => {
  const message = bigAttachment()
  const facts = factsOf('account', fetchedOf(message.raw, { internalDate }))
  compareHeaders(facts, message, internalDate)
  compareBodies(facts, message, (section) => sectionOf(message.raw, section))
  compareAttachments(facts, message, (section) => sectionOf(message.raw, section))
})

test('corpus: names are unique but for the pair that shares a Message-ID', () => {
  const names = corpus.map(({ name }) => name)
  const repeated = names.filter((name, at) => names.indexOf(name) !== at)
  assert.deepEqual(repeated, ['same-id'])
})
