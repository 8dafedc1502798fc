/** Tables that are asked by words from outside: what Object.prototype has is in none of them. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { serverFailure } from '../../engine/accounts/failures.ts'
import { assignSpecialUse } from '../../engine/accounts/session/mailboxes.ts'
import { decodeText, isKnownCharset } from '../../engine/messages/charsets.ts'
import { parseDate } from '../../engine/messages/dates.ts'
import { own } from '../../engine/own-property.ts'

const words = [...Object.getOwnPropertyNames(Object.prototype), 'prototype']

suite('words of Object.prototype', () => {
  test('are in a table only when somebody put them there', () => {
    for (const word of words) {
      assert.equal(own({}, word), undefined, word)
      assert.equal(own(Object.fromEntries([[word, 1]]), word), 1, word)
    }
  })

  for (const word of words) {
    test(`${word} is no special use, response code, zone or charset`, () => {
      const listed = { path: 'Folder', attributes: [word, `\\${word}`], delimiter: '/' }
      assert.deepEqual(
        assignSpecialUse([listed]).map(({ specialUse }) => specialUse),
        [null],
      )
      for (const phase of ['login', 'command'] as const) {
        const error = serverFailure({ status: 'NO', code: word, text: '', phase })
        assert.equal(error.code, phase === 'login' ? 'auth_rejected' : 'server_refused')
      }
      assert.equal(parseDate(`Mon, 21 Nov 2022 07:08:00 ${word}`), Date.UTC(2022, 10, 21, 7, 8))
      assert.equal(isKnownCharset(word), false)
      assert.equal(decodeText(Buffer.from('é'), word), 'é')
    })
  }
})
