/**
 * The corpus on a real server: facts from Dovecot's own BODYSTRUCTURE and header answers are the expected ones,
 * BODY[section] holds the expected bytes, and bodyNodeOf finds the same parts under the same sections.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { ImapFlow, type FetchMessageObject, type MessageStructureObject } from 'imapflow'
import { factsOf } from '../../../engine/messages/facts.ts'
import { bodyNodeOf, type Structure, structureOf } from '../../../engine/messages/structure.ts'
import { compareAttachments, compareBodies, compareHeaders } from '../../support/corpus/compare.ts'
import { corpus } from '../../support/corpus/index.ts'
import { startDovecot, type Dovecot } from '../../support/dovecot.ts'
import { needs } from '../../support/require.ts'
import { indexedHeaders, type BodyNode, type FetchedMessage } from '../../../engine/accounts/session-types.ts'

function nodeOf(structure: MessageStructureObject): BodyNode {
  const { part, type, id, encoding, size, disposition, envelope } = structure
  return {
    ...(part === undefined ? {} : { part }),
    type,
    parameters: structure.parameters ?? {},
    ...(id === undefined ? {} : { id }),
    ...(encoding === undefined ? {} : { encoding }),
    ...(size === undefined ? {} : { size }),
    ...(disposition === undefined ? {} : { disposition }),
    dispositionParameters: structure.dispositionParameters ?? {},
    ...(envelope?.subject === undefined ? {} : { subject: envelope.subject }),
    children: (structure.childNodes ?? []).map(nodeOf),
  }
}

function fetchedFrom(message: FetchMessageObject): FetchedMessage {
  return {
    uid: message.uid,
    flags: [...(message.flags ?? [])],
    modseq: null,
    internalDate: Number(message.internalDate),
    size: message.size ?? 0,
    body: message.bodyStructure ? nodeOf(message.bodyStructure) : null,
    headers: message.headers ?? Buffer.alloc(0),
    emailId: null,
    threadId: null,
  }
}

/** imapflow refuses answers nested this deep and leaves the message out; bodyNodeOf is for such messages. */
const tooDeep = 'deeply-nested'
/** Dovecot makes up an empty part for these. */
const withoutParts = ['no-boundary-parameter', 'boundary-never-used']
/** Dovecot tells nothing of the type, and so nothing of the charset. */
const untyped = ['type-unfinished', 'type-unfinished-koi8']
const readWhole = [tooDeep, ...withoutParts, ...untyped]

/** The server says us-ascii where the message says nothing of a charset. */
function said(structure: Structure): Structure {
  return { ...structure, bodies: structure.bodies.map((body) => ({ ...body, charset: body.charset ?? 'us-ascii' })) }
}

suite('the corpus on Dovecot', needs('dovecot'), () => {
  let dovecot: Dovecot
  let client: ImapFlow
  const messages = corpus.filter(({ appendable }) => appendable)

  before(async () => {
    dovecot = await startDovecot()
    const { host, port, password } = dovecot
    client = new ImapFlow({ host, port, secure: false, logger: false, auth: { user: 'corpus', pass: password } })
    await client.connect()
    for (const { name, raw } of messages) assert.ok(await client.append('INBOX', raw), name)
    await client.mailboxOpen('INBOX')
  })
  after(async () => {
    await client.logout()
    await dovecot.remove()
  })

  test('facts and bytes are the expected ones', async () => {
    const query = { uid: true, internalDate: true, size: true, bodyStructure: true, headers: [...indexedHeaders] }
    const answers = await client.fetchAll('1:*', query)
    for (const [at, message] of messages.entries()) {
      const answer = answers.find(({ uid }) => uid === at + 1)
      if (readWhole.includes(message.name)) continue
      assert.ok(answer, message.name)
      const fetched = fetchedFrom(answer)
      const facts = factsOf('account', fetched)
      const sections = [...facts.bodies, ...facts.attachments].map(({ section }) => section)
      const parts = await client.fetchOne(String(answer.uid), { bodyParts: sections }, { uid: true })
      const bytesOf = (section: string): Buffer =>
        (parts ? parts.bodyParts?.get(section.toLowerCase()) : undefined) ?? Buffer.alloc(0)
      try {
        compareHeaders(facts, message, fetched.internalDate ?? 0)
        compareBodies(facts, message, bytesOf)
        compareAttachments(facts, message, bytesOf)
      } catch (error) {
        throw new Error(`corpus message ${message.name}`, { cause: error })
      }
    }
  })

  for (const name of readWhole)
    test(`${name}, whose BODYSTRUCTURE is no use, is read whole`, async () => {
      const uid = messages.findIndex((message) => message.name === name) + 1
      const message = messages[uid - 1]
      const answer = await client.fetchOne(
        String(uid),
        { source: true, size: true, headers: [...indexedHeaders] },
        { uid: true },
      )
      assert.ok(message && answer && answer.source)
      const facts = factsOf('account', { ...fetchedFrom(answer), body: bodyNodeOf(answer.source) })
      const [body] = facts.bodies
      assert.ok(body)
      const parts = await client.fetchOne(String(uid), { bodyParts: [body.section] }, { uid: true })
      compareHeaders(facts, message, 0)
      compareBodies(
        facts,
        message,
        (section) => (parts ? parts.bodyParts?.get(section.toLowerCase()) : undefined) ?? Buffer.alloc(0),
      )
    })

  test('bodyNodeOf finds the same parts as the server', async () => {
    const answers = await client.fetchAll('1:*', { uid: true, bodyStructure: true, source: true })
    for (const [at, { name }] of messages.entries()) {
      const answer = answers.find(({ uid }) => uid === at + 1)
      if (readWhole.includes(name)) continue
      assert.ok(answer?.bodyStructure && answer.source, name)
      const own = structureOf(bodyNodeOf(answer.source))
      assert.deepEqual(said(own), said(structureOf(nodeOf(answer.bodyStructure))), name)
    }
  })
})
