import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bodyNodeOf, structureOf } from '../../../engine/messages/structure.ts'
import { multipart, textPart } from '../../support/corpus/build.ts'
import type { BodyNode } from '../../../engine/accounts/session-types.ts'

function node(type: string, more: Partial<BodyNode> = {}): BodyNode {
  return { type, parameters: {}, dispositionParameters: {}, children: [], ...more }
}

test('sections that a server leaves out are numbered as IMAP numbers them', () => {
  const tree = node('multipart/mixed', {
    children: [node('multipart/alternative', { children: [node('text/plain'), node('text/html')] }), node('image/png')],
  })
  const { bodies, attachments } = structureOf(tree)
  assert.deepEqual(
    [...bodies.map(({ section }) => section), ...attachments.map(({ section }) => section)],
    ['1.1', '1.2', '2'],
  )
  assert.equal(structureOf(node('text/plain')).bodies[0]?.section, '1')
})

test('defaults: encoding, charset, size, name', () => {
  const [body] = structureOf(node('text/plain', { encoding: '', size: Number.NaN })).bodies
  assert.deepEqual(body, {
    section: '1',
    type: 'text/plain',
    charset: null,
    encoding: '7bit',
    size: 0,
    flowed: false,
    delSp: false,
  })
  const [file] = structureOf(node('image/png', { id: '<a@b>', disposition: 'X-Odd', encoding: 'BASE64' })).attachments
  assert.ok(file)
  assert.equal(file.contentId, 'a@b')
  assert.equal(file.disposition, 'attachment')
  assert.equal(file.encoding, 'base64')
  assert.equal(file.fileName, '')
})

test('a type that cannot be read is plain text', () => {
  for (const type of ['/', '', 'text', 'a/b/c']) assert.equal(structureOf(node(type)).bodies[0]?.type, 'text/plain')
})

test('embedded: inside multipart/related, with a Content-ID, not declared an attachment', () => {
  const tree = node('multipart/related', {
    children: [
      node('text/html'),
      node('image/png', { id: '<1>' }),
      node('image/png'),
      node('image/png', { id: '<2>', disposition: 'attachment' }),
      node('multipart/mixed', { children: [node('image/gif', { id: '<3>', disposition: 'inline' })] }),
    ],
  })
  const { attachments } = structureOf(tree)
  assert.deepEqual(
    attachments.map(({ embedded }) => embedded),
    [true, false, false, true],
  )
})

test('a text alone in the message is its body, whatever kind of text it is; a calendar is not', () => {
  assert.equal(structureOf(node('text/markdown')).bodies.length, 1)
  assert.equal(structureOf(node('text/plain', { parameters: { name: 'x.txt' } })).bodies.length, 1)
  assert.equal(structureOf(node('text/csv', { parameters: { name: 'x.csv' } })).attachments.length, 1)
  assert.equal(structureOf(node('text/calendar')).attachments.length, 1)
})

test('depth and number of parts are bounded', () => {
  let deep: BodyNode = node('text/plain')
  for (let level = 0; level < 5000; level++) deep = node('multipart/mixed', { children: [deep] })
  assert.deepEqual(structureOf(deep), { bodies: [], attachments: [] })
  const wide = node('multipart/mixed', { children: Array.from({ length: 5000 }, () => node('image/png')) })
  assert.equal(structureOf(wide).attachments.length, 1000)
})

test('bodyNodeOf: a multipart without parts is the text that it holds, with the size of that', () => {
  const whole = (head: string): [string, string, number][] =>
    structureOf(bodyNodeOf(Buffer.from(`Subject: x\r\n${head}\r\n\r\njust text\r\n`))).bodies.map((body) => [
      body.section,
      body.type,
      body.size,
    ])
  assert.deepEqual(whole('Content-Type: multipart/mixed'), [['TEXT', 'text/plain', 11]])
  assert.deepEqual(whole('Content-Type: multipart/alternative; boundary=never'), [['TEXT', 'text/plain', 11]])
  assert.deepEqual(whole('Content-Type: text; charset="utf-8'), [['1', 'text/plain', 11]])
  const inner = multipart('multipart/mixed', 'b', [
    textPart('one'),
    'Content-Type: multipart/alternative\r\n\r\njust text',
  ])
  assert.deepEqual(
    structureOf(bodyNodeOf(inner)).bodies.map(({ section, size }) => [section, size]),
    [
      ['1', 3],
      ['2', 9],
    ],
  )
})

test('bodyNodeOf: hostile nesting and hostile part counts end quickly', () => {
  let content: Buffer = textPart('deep\r\n')
  for (let level = 0; level < 300; level++) content = multipart('multipart/mixed', `b${level}`, [content])
  const wide = multipart(
    'multipart/mixed',
    'w',
    Array.from({ length: 20_000 }, () => 'Content-Type: a/b\r\n\r\nx'),
  )
  // Processor time, so that a busy machine does not count.
  const before = process.cpuUsage()
  assert.ok(structureOf(bodyNodeOf(content)).bodies.length <= 1)
  assert.equal(structureOf(bodyNodeOf(wide)).attachments.length, 1000)
  const same = `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n`.repeat(20_000)
  bodyNodeOf(Buffer.from(same))
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 3_000_000)
})

/** Microseconds of the processor, so that a busy machine does not count. */
function processorTime(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

test('bodyNodeOf: what comes after a part is not searched for its boundary, part by part', () => {
  const part = '--y\r\nContent-Type: multipart/mixed; boundary=x-z\r\n\r\n\r\n'
  const tail = '--'.repeat(2_000_000)
  const raw = Buffer.from(`Content-Type: multipart/mixed; boundary=y\r\n\r\n${part.repeat(1100)}--y--\r\n${tail}`)
  const read = processorTime(() => assert.equal(bodyNodeOf(raw).children.length, 1000))
  assert.ok(read < 2_000_000, `${read} µs`)
})

test('bodyNodeOf: many levels around the same text are not all searched', () => {
  const nested = (levels: number): Buffer => {
    const heads = Array.from(
      { length: levels },
      (_, level) => `Content-Type: multipart/mixed; boundary=b-${level}\r\n\r\n--b-${level}\r\n`,
    )
    return Buffer.from(`${heads.join('')}\r\n${'--'.repeat(4_000_000)}`)
  }
  const [shallow, deep] = [nested(1), nested(45)]
  const once = processorTime(() => bodyNodeOf(shallow))
  const read = processorTime(() => bodyNodeOf(deep))
  assert.ok(read < 25 * once, `${read} µs, once ${once} µs`)
})

test('a header of folded lines without end is read at once', () => {
  // Of no field: mailsplit searches all of them again for each one.
  const header = `Subject: a\r\nno field\r\n${' \r\n'.repeat(300_000)}Content-Type: text/html\r\n\r\nx`
  const before = process.cpuUsage()
  assert.equal(structureOf(bodyNodeOf(Buffer.from(header))).bodies[0]?.type, 'text/html')
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 2_000_000)
})

test('bodyNodeOf and structureOf never throw on random lines', () => {
  const line = fc.constantFrom(
    'Content-Type: multipart/mixed; boundary=a',
    'Content-Type: multipart/alternative; boundary="b"',
    'Content-Type: message/rfc822',
    'Content-Type: text/html',
    'Content-Disposition: attachment; filename=x',
    'Subject: s',
    '--a',
    '--b',
    '--a--',
    '--b--',
    '--a ',
    '--ab',
    '',
    'text',
  )
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), fc.constantFrom('\r\n', '\n'), (lines, end) => {
      const raw = Buffer.from(lines.join(end))
      const { bodies, attachments } = structureOf(bodyNodeOf(raw))
      assert.ok(bodies.length + attachments.length >= 1)
      for (const { section, size } of [...bodies, ...attachments]) {
        assert.match(section, /^(?:TEXT|\d+(\.\d+)*)$/)
        assert.ok(size >= 0 && size <= raw.length)
      }
    }),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
      assert.ok(structureOf(bodyNodeOf(Buffer.from(bytes))).bodies.length >= 0)
    }),
  )
})
