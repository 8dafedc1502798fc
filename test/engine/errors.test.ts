/** Whose fault a failed connection is: of this machine, or of the other side. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { shortageOf } from '../../engine/errors.ts'

function failed(syscall: string, code: string): Error {
  return Object.assign(new Error(`${syscall} ${code} mail.example`), { syscall, code })
}

suite('a shortage of this machine', () => {
  for (const error of [
    failed('connect', 'EMFILE'),
    failed('socket', 'ENFILE'),
    // What look-ups without a file left fail with, by what nsswitch.conf names for hosts.
    failed('getaddrinfo', 'EMFILE'),
    failed('getaddrinfo', 'EBUSY'),
    failed('getaddrinfo', 'EINVAL'),
    failed('getaddrinfo', 'ENOMEM'),
  ])
    test(`is ${error.message}`, () => assert.equal(shortageOf(error)?.code, 'busy'))

  for (const error of [
    failed('getaddrinfo', 'ENOTFOUND'),
    failed('getaddrinfo', 'ENODATA'),
    failed('getaddrinfo', 'EAI_AGAIN'),
    failed('getaddrinfo', 'EAI_FAIL'),
    failed('connect', 'EINVAL'),
    failed('connect', 'ECONNREFUSED'),
    new Error('no code'),
    'EMFILE',
  ])
    test(`is not ${String(error)}`, () => assert.equal(shortageOf(error), null))
})
