import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { factsOf } from '../../../engine/messages/facts.ts'
import { answeredIds, threadIdOf, threadRoot } from '../../../engine/messages/threads.ts'
import { threadId } from '../../../engine/store/ids.ts'
import { fetchedOf } from '../../support/corpus/fetched.ts'

const arrival = Date.UTC(2024, 2, 6)

test('times fall back on each other, on Received, and on 1970', () => {
  const date = 'Date: Tue, 05 Mar 2024 12:00:00 +0000\r\n'
  const received = 'Received: from a by b; Mon, 04 Mar 2024 12:00:00 +0000\r\n'
  const times = (header: string, internalDate: number | null): number[] => {
    const { sentAt, receivedAt } = factsOf('a', fetchedOf(Buffer.from(`${header}\r\n`), { internalDate }))
    return [sentAt, receivedAt]
  }
  const [sent, passed] = [Date.UTC(2024, 2, 5, 12), Date.UTC(2024, 2, 4, 12)]
  assert.deepEqual(times(date, arrival), [sent, arrival])
  assert.deepEqual(times('', arrival), [arrival, arrival])
  assert.deepEqual(times(date + received, null), [sent, passed])
  assert.deepEqual(times(date, null), [sent, sent])
  assert.deepEqual(times(received, null), [passed, passed])
  assert.deepEqual(times('', null), [0, 0])
})

test('a second From adds no author; repeated To and Cc are all kept', () => {
  const raw = 'From: a@b.c\r\nFrom: evil@b.c\r\nTo: x@y.z\r\nTo: q@y.z\r\n\r\n'
  const { addresses } = factsOf('a', fetchedOf(Buffer.from(raw)))
  assert.deepEqual(
    addresses.from.map(({ email }) => email),
    ['a@b.c'],
  )
  assert.deepEqual(
    addresses.to.map(({ email }) => email),
    ['x@y.z', 'q@y.z'],
  )
})

test('a BODYSTRUCTURE that names the size alone gives the size; the header gives the rest', () => {
  const body = { type: '', parameters: {}, size: 15, dispositionParameters: {}, children: [] }
  const part = (header: string, size: number | undefined) => {
    const raw = Buffer.from(`${header}\r\n\r\n`)
    const given = size === undefined ? null : { ...body, size }
    const { bodies, attachments } = factsOf('a', fetchedOf(raw, { body: given, size: 173 }))
    return [...bodies, ...attachments].map((one) => [one.section, one.type, one.encoding, one.size])
  }
  assert.deepEqual(part('Content-Type: text; charset="utf-8', 15), [['1', 'text/plain', '7bit', 15]])
  assert.deepEqual(part('Content-Type: text; charset="utf-8', undefined), [['1', 'text/plain', '7bit', 173]])
  const pdf = 'Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64'
  assert.deepEqual(part(pdf, 15), [['1', 'application/pdf', 'base64', 15]])
})

test('hosted ids are kept and name the thread', () => {
  const facts = factsOf('a', fetchedOf(Buffer.from('References: <r@x>\r\n\r\n'), { emailId: '17', threadId: '99' }))
  assert.equal(facts.hostedMessageId, '17')
  assert.equal(facts.hostedThreadId, '99')
  assert.equal(facts.threadId, threadId('a', 'hosted:99'))
})

test('thread: first reference, else the message replied to, else its own id, else itself', () => {
  const none = { hostedThreadId: null, references: [], inReplyTo: null, emailMessageId: null }
  assert.equal(
    threadRoot({ ...none, references: ['r', 'p'], inReplyTo: 'p', emailMessageId: 'm' }, () => 'f'),
    'r',
  )
  assert.equal(
    threadRoot({ ...none, inReplyTo: 'p', emailMessageId: 'm' }, () => 'f'),
    'p',
  )
  assert.equal(
    threadRoot({ ...none, emailMessageId: 'm' }, () => 'f'),
    'm',
  )
  assert.equal(
    threadRoot(none, () => 'f'),
    'f',
  )
  const first = factsOf('a', fetchedOf(Buffer.from('Message-ID: <m@x>\r\n\r\n')))
  const reply = factsOf('a', fetchedOf(Buffer.from('Message-ID: <n@x>\r\nReferences: <m@x>\r\n\r\n')))
  assert.equal(first.threadId, reply.threadId)
  assert.notEqual(
    threadIdOf('a', { ...none, emailMessageId: 'm' }, () => ''),
    threadIdOf('b', { ...none, emailMessageId: 'm' }, () => ''),
  )
  assert.deepEqual(answeredIds({ inReplyTo: 'p', references: ['r', 'q'] }), ['p', 'q'])
  assert.deepEqual(answeredIds({ inReplyTo: 'p', references: ['r', 'p'] }), ['p'])
  assert.deepEqual(answeredIds({ inReplyTo: null, references: [] }), [])
})

test('random header blocks never throw', () => {
  const name = fc.constantFrom(
    'From',
    'To',
    'Date',
    'Subject',
    'Message-ID',
    'References',
    'Content-Type',
    'List-Id',
    'Received',
    'X',
  )
  const value = fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 12 }), (fields) => {
      const headers = Buffer.from(fields.map(([key, text]) => `${key}: ${text}\r\n`).join(''), 'latin1')
      const facts = factsOf('a', fetchedOf(Buffer.alloc(0), { headers, body: null }))
      assert.deepEqual(JSON.parse(JSON.stringify(facts)), facts)
      assert.ok(JSON.stringify(facts).isWellFormed())
    }),
    { numRuns: 1000 },
  )
})

/** What a mailbox could send to make a parser slow: one sign over and over, in every field that is parsed. */
const signs = [
  '<',
  '<a@',
  '(',
  '()',
  '"',
  '"a',
  '\\',
  'a:',
  '@',
  ',',
  ';',
  '<a@b>,',
  '[',
  ' ',
  '=?',
  '=?a?q?',
  '=?utf-8?b?YQ?= ',
  '; a="',
  'a*0*=x;',
  '\x1b$B',
  '\xff',
  '> ',
  '1',
]

test('a quarter of a megabyte of any sign in every field is read in bounded time', () => {
  for (const sign of signs) {
    const text = `("${sign.repeat(Math.ceil(250_000 / sign.length))}")`
    const names = ['From', 'To', 'Date', 'Subject', 'Message-ID', 'References', 'Content-Type', 'Received', 'List-Id']
    const lines = names.map((name) => `${name}: ${text}\r\n`)
    // Processor time, so that a busy machine does not count.
    const before = process.cpuUsage()
    for (const block of [...lines, lines.join('')]) {
      factsOf('a', fetchedOf(Buffer.alloc(0), { headers: Buffer.from(block, 'latin1'), body: null }))
    }
    const { user, system } = process.cpuUsage(before)
    assert.ok(user + system < 3_000_000, `${JSON.stringify(sign)} took ${Math.round((user + system) / 1000)} ms`)
  }
})
