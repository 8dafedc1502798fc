/** Our parser of FETCH responses beside imapflow's: what it reads, it reads as that one does. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { parser } from 'imapflow/lib/handler/imap-handler.js'
import { parseFetch } from '../../engine/accounts/session/fetch-parser.ts'
import { readBodyStructure, readFetch } from '../../engine/accounts/session/responses.ts'
import type { ImapResponse } from '../../engine/accounts/session/below.ts'

const part = '("text" "plain" ("charset" "utf-8") NIL NIL "7bit" 512 8 NIL NIL NIL NIL)'
const file =
  '("application" "pdf" ("name" "a \\"b\\" \\\\ c.pdf") "<id@x>" NIL "base64" 90 NIL ("attachment" ("filename" "ü.pdf")) NIL NIL)'
const structure = `(${part}(${part}${part} "alternative" ("boundary" "inner") NIL NIL)${file} "mixed" ("boundary" "outer") NIL NIL NIL)`
const fields = 'BODY[HEADER.FIELDS (Message-ID Date "Subject")] {7}\r\n'

/** Read in one pass. */
const usual = [
  `* 12 FETCH (UID 7 FLAGS (\\Seen \\Recent $Forwarded Label_1) INTERNALDATE "21-Nov-2022 07:08:09 +0000" RFC822.SIZE 1300 MODSEQ (12345) BODYSTRUCTURE ${structure} ${fields})`,
  `* 1 fetch (BODY[1.2]<0> {7}\r\n UID 3)`,
  `* 1 FETCH (BODY[]<0.524288> {7}\r\n FLAGS () BODY[1.MIME] NIL BODY[TEXT] "a\\"b")`,
  '* 3 FETCH (X-GM-MSGID 1278455344230334865 X-GM-THRID 1266894439832287888 X-GM-LABELS ("\\\\Important" \\Inbox "&AOQ-" foo) UID 2)',
  '* 3 FETCH (EMAILID (M6d99ac3275bb4e) THREADID NIL UID 2  MODSEQ (5) )',
]
/** Left to imapflow's parser. */
const unusual = [
  '* 3 FETCH (FLAGS (\\Seen\\Deleted) UID 2)',
  '* 3 FETCH (FLAGS ([odd]) UID 2)',
  '* 3 FETCH (BODY[1] {7}\r\n BODY[2] {7}\r\n)',
  '* 3 FETCH (UID 2',
  '* 3 FETCH (UID "2" "never closed)',
  '* 3 FETCH (UID 2))',
  `* 3 FETCH (${'('.repeat(30)}${')'.repeat(30)})`,
  '* 3 EXISTS',
  '* OK [FETCH (] no',
]

const literals = (): Buffer[] => [Buffer.from('From: a')]

function read(response: ImapResponse | null) {
  if (response === null) return null
  const { body, ...items } = readFetch(response)
  return { ...items, body: readBodyStructure(body) }
}

async function readByImapflow(line: string) {
  const parsed = await parser(Buffer.from(line), { literals: literals() }).catch(() => null)
  return read(parsed)
}

const readByUs = (line: string) => read(parseFetch(Buffer.from(line), literals()))

suite('the parser of FETCH responses', () => {
  for (const line of usual) {
    test(`reads ${line.slice(0, 60)}`, async () => {
      const ours = readByUs(line)
      assert.notEqual(ours, null)
      assert.deepEqual(ours, await readByImapflow(line))
    })
  }

  for (const line of unusual) {
    test(`leaves ${line.slice(0, 40)} to imapflow`, () => assert.equal(readByUs(line), null))
  }

  test('what stands behind a token has to end it', () => {
    for (const token of ['"a"', '1', '{7}\r\n', 'BODY[1]', 'NIL'])
      assert.equal(readByUs(`* 3 FETCH (UID 2 X ${token}"b")`), null, token)
  })

  test('whatever a server makes of a response, both read the same, or ours reads nothing', async () => {
    const noise = fc.constantFrom(
      '"',
      '\\',
      '(',
      ')',
      '[',
      ']',
      '<',
      '>',
      '{',
      '}',
      ' ',
      '\r\n',
      'NIL',
      '*',
      '1',
      'ü',
      ':',
      ',',
      '~',
      '\0',
    )
    const change = fc.record({ at: fc.nat(400), drop: fc.nat(3), put: fc.array(noise, { maxLength: 3 }) })
    const cases = fc.record({
      line: fc.constantFrom(...usual),
      changes: fc.array(change, { minLength: 1, maxLength: 3 }),
    })
    await fc.assert(
      fc.asyncProperty(cases, async ({ line, changes }) => {
        const changed = changes.reduce((text, { at, drop, put }) => {
          const from = at % text.length
          return text.slice(0, from) + put.join('') + text.slice(from + drop)
        }, line)
        const ours = readByUs(changed)
        if (ours !== null) assert.deepEqual(ours, await readByImapflow(changed), changed)
      }),
      { numRuns: 3000, seed: 5 },
    )
  })
})
