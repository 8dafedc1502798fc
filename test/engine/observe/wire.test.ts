/** The lines of connections that are kept for operators: masked, bounded, frozen at a failure, and small. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWireRing } from '../../../engine/observe/wire.ts'
import { unlikeLines, usualLines } from './lines.ts'

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
    [`S: * OK ${'x'.repeat(500)}`, `< * OK ${'x'.repeat(153)}`],
  ]
  for (const [line, kept] of rows) assert.deepEqual(shown(line), [kept], line)
})

test('of lines as servers send them the last two hundred are kept, and those before a failure beside them', () => {
  const ring = createWireRing()
  const lines = usualLines(1000).map((line) => ring.add(line))
  assert.equal(ring.frozen(), null)
  assert.deepEqual(ring.lines(), lines.slice(-200))
  ring.freeze(5, 'network')
  const newer = usualLines(330).map((line) => ring.add(line))
  assert.deepEqual(ring.frozen(), { at: 5, failure: 'network', lines: lines.slice(-200) })
  assert.deepEqual(ring.lines(), newer.slice(-200))
  ring.freeze(6, 'tls')
  assert.deepEqual(ring.frozen(), { at: 6, failure: 'tls', lines: newer.slice(-200) })
})

test('failures that follow each other after a few lines push out none of them', () => {
  const ring = createWireRing()
  const lines = usualLines(210)
  for (const [index, line] of lines.entries()) {
    lines[index] = ring.add(line)
    if (index % 3 === 0) ring.freeze(index, 'network')
  }
  ring.freeze(7, 'network')
  ring.freeze(8, 'network')
  assert.deepEqual(ring.frozen(), { at: 8, failure: 'network', lines: lines.slice(-200) })
  assert.deepEqual(ring.lines(), lines.slice(-200))
})

test('of lines without any likeness fewer are kept', () => {
  const ring = createWireRing()
  const lines = unlikeLines(1000).map((line) => ring.add(line))
  const kept = ring.lines()
  assert.ok(kept.length >= 40 && kept.length < 140, String(kept.length))
  assert.deepEqual(kept, lines.slice(-kept.length))
})
