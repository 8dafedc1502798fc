/** The lines of connections that are kept for operators: masked, bounded, frozen at a failure, and small. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWireRing } from '../../../engine/observe/wire.ts'

function shown(...lines: string[]): string[] {
  const ring = createWireRing()
  return lines.map((line) => ring.add(line))
}

test('credentials are masked, whatever the form of the login', () => {
  const rows: [line: string, kept: string][] = [
    ['C: A1 LOGIN "bob" "hunter2"', '> A1 LOGIN ***'],
    ['C: A1 login bob hunter2', '> A1 login ***'],
    ['C: A1 LOGIN {3}', '> A1 LOGIN ***'],
    ['C: A1 AUTHENTICATE PLAIN AGJvYgBodW50ZXIy', '> A1 AUTHENTICATE PLAIN ***'],
    ['C: A1 AUTHENTICATE XOAUTH2', '> A1 AUTHENTICATE XOAUTH2 ***'],
    ['C: AGJvYgBodW50ZXIy', '> ***'],
    ['C: Ym9i', '> ***'],
    ['C: *', '> ***'],
    ['S: + eyJzdGF0dXMiOiI0MDAifQ==', '< + ***'],
    ['S: +', '< + ***'],
  ]
  for (const [line, kept] of rows) assert.deepEqual(shown(line), [kept], line)
})

test('what is in mail is masked: answers of FETCH, words of a search, messages that are stored', () => {
  const rows: [line: string, kept: string][] = [
    ['S: * 1 FETCH (UID 7 ENVELOPE ("Mon" "a \\"plan\\"" NIL))', '< * 1 FETCH (UID 7 ***)'],
    ['S: * 1 FETCH (UID 7 BODY[1] {12}\r\nattack at 5\n)', '< * 1 FETCH (UID 7 ***)'],
    ['S: * 1 FETCH (BODY[1] "no end of it', '< * 1 FETCH (***)'],
    ['S: * 1 FETCH (ENVELOPE ("Mon" "he said "attack at 5" now" NIL))', '< * 1 FETCH (***)'],
    ['S: * 1 FETCH (BODY[1] attack at 5)', '< * 1 FETCH (***)'],
    ['S: * 1 FETCH (X attack at 5)', '< * 1 FETCH ()'],
    ['S: * 1 FETCH (FLAGS (\\Seen) BODY[1] "x" UID 7)', '< * 1 FETCH (FLAGS (\\Seen) ***)'],
    ['S: * 1 FETCH (FLAGS (\\Seen) MODSEQ (9))', '< * 1 FETCH (FLAGS (\\Seen) MODSEQ (9))'],
    ['S: attack at 5', '< ***'],
    ['C: A1 UID SEARCH TEXT "attack" UID 1:*', '> A1 UID SEARCH TEXT "***" UID 1:*'],
    ['C: A1 APPEND "Sent" (\\Seen) {12}', '> A1 APPEND ***'],
    ['C: (* 12B continuation *)', '> ***'],
  ]
  for (const [line, kept] of rows) assert.deepEqual(shown(line), [kept], line)
})

test('the rest is as it was, in printable characters, cut', () => {
  const rows: [line: string, kept: string][] = [
    ['C: A3 UID FETCH 1:5 (UID FLAGS)', '> A3 UID FETCH 1:5 (UID FLAGS)'],
    ['C: DONE', '> DONE'],
    ['S: * 5 EXISTS', '< * 5 EXISTS'],
    ['S: A3 NO [AUTHENTICATIONFAILED] nope', '< A3 NO [AUTHENTICATIONFAILED] nope'],
    ['S: * BYE f\u00fcr heute\u0007', '< * BYE f?r heute?'],
    [`S: * OK ${'x'.repeat(500)}`, `< * OK ${'x'.repeat(93)}`],
  ]
  for (const [line, kept] of rows) assert.deepEqual(shown(line), [kept], line)
})

test('the last lines are kept: two hundred, and 4,500 characters at most, those that are frozen beside them', () => {
  const ring = createWireRing()
  for (let line = 1; line <= 1000; line += 1) ring.add(`S: * ${line} EXISTS`)
  const short = ring.lines()
  assert.ok(short.length === 200, String(short.length))
  assert.equal(short.at(-1), '< * 1000 EXISTS')
  assert.deepEqual(
    short,
    short.map((_, index) => `< * ${1001 - short.length + index} EXISTS`),
  )
  for (let line = 1; line <= 300; line += 1) ring.add(`S: * OK ${'x'.repeat(100)}`)
  const long = ring.lines()
  assert.ok(long.join('\n').length <= 4500, String(long.join('\n').length))
  assert.ok(long.length >= 30)
})

test('at a failure the lines are frozen, and newer ones do not change them', () => {
  const ring = createWireRing()
  assert.equal(ring.frozen(), null)
  for (let line = 1; line <= 300; line += 1) ring.add(`S: * ${line} EXISTS`)
  ring.freeze(5, 'network')
  for (let line = 301; line <= 900; line += 1) ring.add(`S: * ${line} EXISTS`)
  const frozen = ring.frozen()
  assert.deepEqual([frozen?.at, frozen?.failure, frozen?.lines.at(-1)], [5, 'network', '< * 300 EXISTS'])
  assert.ok(frozen?.lines.every((line) => line.startsWith('< * ')))
  assert.ok((frozen?.lines.join('\n').length ?? 0) <= 2500)
  ring.freeze(6, 'tls')
  assert.deepEqual([ring.frozen()?.failure, ring.frozen()?.lines.at(-1)], ['tls', '< * 900 EXISTS'])
})
