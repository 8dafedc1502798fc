/** The lines of connections that are kept for operators: masked, bounded, frozen at a failure, and small. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWireRing, type WireLine } from '../../../engine/observe/wire.ts'
import { unlikeLines, usualLines } from './lines.ts'

function shown(...lines: string[]): string[] {
  const add = createWireRing().open(0, 'mailbox')
  return lines.map((line) => add(0, line).line)
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
    ['S: * 5 more FETCH responses', '< * 5 more FETCH responses'],
    ['S: A3 NO [AUTHENTICATIONFAILED] nope', '< A3 NO [AUTHENTICATIONFAILED] nope'],
    ['S: * BYE f\u00fcr heute\u0007', '< * BYE f?r heute?'],
    [`S: * OK ${'x'.repeat(500)}`, `< * OK ${'x'.repeat(153)}`],
  ]
  for (const [line, kept] of rows) assert.deepEqual(shown(line), [kept], line)
})

/** A ring with one connection, whose lines come 7 ms after each other. */
function timed() {
  const ring = createWireRing()
  const add = ring.open(0, 'mailbox')
  let at = 1_795_369_057_000
  return { ring, add: (line: string) => add((at += 7), line) }
}

test('of lines as servers send them the last two hundred are kept, and those before a failure beside them', () => {
  const { ring, add } = timed()
  const lines = usualLines(1000).map(add)
  assert.equal(ring.frozen(), null)
  assert.deepEqual(ring.lines(), lines.slice(-200))
  ring.freeze(5, 'network', 'mailbox')
  const newer = usualLines(330).map(add)
  assert.deepEqual(ring.frozen(), { at: 5, failure: 'network', connection: 1, lines: lines.slice(-200) })
  assert.deepEqual(ring.lines(), newer.slice(-200))
  ring.freeze(6, 'tls', 'mailbox')
  assert.deepEqual(ring.frozen(), { at: 6, failure: 'tls', connection: 1, lines: newer.slice(-200) })
})

test('failures that follow each other after a few lines push out none of them', () => {
  const { ring, add } = timed()
  const lines = usualLines(210).map((line, index) => {
    const kept = add(line)
    if (index % 3 === 0) ring.freeze(index, 'network', 'mailbox')
    return kept
  })
  ring.freeze(7, 'network', 'mailbox')
  ring.freeze(8, 'network', 'mailbox')
  assert.deepEqual(ring.frozen(), { at: 8, failure: 'network', connection: 1, lines: lines.slice(-200) })
  assert.deepEqual(ring.lines(), lines.slice(-200))
})

test('of two connections each line has its number; a failure has the lines of its own one, and the steps since', () => {
  const ring = createWireRing()
  ring.step(10, 'connect.dialing', 'connecting')
  const mailbox = ring.open(20, 'mailbox')
  mailbox(21, 'C: A1 NOOP')
  ring.step(22, 'connect done', 'syncing')
  const commands = ring.open(23, 'commands')
  commands(24, 'C: B1 NOOP')
  for (const at of [25, 26]) ring.step(at, 'watch.alive', 'watching')
  mailbox(27, 'S: A1 OK done')
  commands(28, 'S: B1 NO [UNAVAILABLE]')
  ring.step(29, 'command.failed: network', 'watching')
  const spelled = (lines: readonly WireLine[] = []) =>
    lines.map(({ at, connection, line }) => `${at} ${connection ?? '-'} ${line}`)
  const all = [
    '10 - connect.dialing -> connecting',
    '21 1 > A1 NOOP',
    '22 - connect done -> syncing',
    '24 2 > B1 NOOP',
    '25 - watch.alive -> watching',
    '27 1 < A1 OK done',
    '28 2 < B1 NO [UNAVAILABLE]',
    '29 - command.failed: network -> watching',
  ]
  assert.deepEqual(spelled(ring.lines()), all)
  ring.freeze(29, 'network', 'commands')
  mailbox(30, 'C: A2 NOOP')
  assert.equal(ring.frozen()?.connection, 2)
  assert.deepEqual(spelled(ring.frozen()?.lines), [all[3], all[4], all[6], all[7]])
  ring.freeze(31, 'network', 'mailbox')
  assert.deepEqual(spelled(ring.frozen()?.lines), [all[1], all[2], all[4], all[5], all[7], '30 1 > A2 NOOP'])
  ring.open(32, 'mailbox')
  ring.step(33, 'connect failed: network', 'waiting')
  ring.freeze(33, 'network', 'mailbox')
  assert.equal(ring.frozen()?.connection, 3)
  assert.deepEqual(spelled(ring.frozen()?.lines), ['33 - connect failed: network -> waiting'])
})

test('of lines without any likeness fewer are kept', () => {
  const { ring, add } = timed()
  const lines = unlikeLines(1000).map(add)
  const kept = ring.lines()
  assert.ok(kept.length >= 40 && kept.length < 140, String(kept.length))
  assert.deepEqual(kept, lines.slice(-kept.length))
})
