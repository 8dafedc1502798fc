/** Mail to thousands of people, which anybody may send, stored and listed: megabytes of records and of JSON. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { startLiteRig } from '../api/lite/rig.ts'
import { holdOf } from '../support/loop-held.ts'

const mails = 30
const recipients = 5000
const mostMs = 100

function wide(n: number): string {
  const to = Array.from({ length: recipients }, (_, of) => `p${of}@h${n}-${of}.example`)
  return `From: a@b.example\r\nSubject: Wide ${n}\r\nTo: ${to.join(',\r\n ')}\r\n\r\nHello\r\n`
}

test(`mail to ${recipients} people, stored and listed, holds the loop for ${mostMs} ms at most`, async (t) => {
  const rig = await startLiteRig({ checkAnswers: false })
  t.after(() => rig.close())
  const box = await rig.mailbox('wide', { subjects: ['Plain'] })
  const texts = Array.from({ length: mails }, (_, n) => wide(n))
  const stored = await holdOf(async () => {
    // The mail server of the test is in this process, and takes a mail in a turn.
    for (const text of texts) {
      rig.imap.append(box.email, 'INBOX', text)
      await turn()
    }
    await box.indexed(`Wide ${mails - 1}`)
  })
  assert.ok(stored.ms <= mostMs, `storing it held the loop for ${Math.round(stored.ms)} ms`)
  const { value, ms } = await holdOf(() => rig.call('GET', `${box.path}/messages?limit=100`))
  assert.equal((JSON.parse(value.text) as unknown[]).length, mails + 1)
  assert.ok(ms <= mostMs, `the loop was held for ${Math.round(ms)} ms`)
})
