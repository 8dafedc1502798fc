/**
 * What is kept of the views of mailboxes: bounded, however many base URLs and folders callers and mailboxes come with.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { viewerOf } from '../../../api/lite/messages/present.ts'
import type { FolderRecord } from '../../../engine/index.ts'
import { accountRecord, userRecord } from '../../support/records.ts'

function folder(accountId: string, path: string): FolderRecord {
  const kind = { delimiter: '/', attributes: [], specialUse: null, selectable: true }
  const state = { messages: 0, unseen: 0, cursor: null, epoch: 1, failures: 0, parkedUntil: null }
  return { id: path, accountId, path, ...kind, ...state }
}

test('views of many folders under many names of the host push each other out', () => {
  const account = accountRecord(userRecord('d'.repeat(24)))
  const folders = Array.from({ length: 1000 }, (_, n) => folder(account.id, `${'long name '.repeat(100)}${n}`))
  const first = viewerOf('http://host-0.example', account, folders)
  assert.equal(viewerOf('http://host-0.example', account, folders), first)
  for (let n = 1; n < 40; n += 1) viewerOf(`http://host-${n}.example`, account, folders)
  assert.notEqual(viewerOf('http://host-0.example', account, folders), first)
  const small = viewerOf('http://host.example', account, folders.slice(0, 1))
  assert.equal(viewerOf('http://host.example', account, folders.slice(0, 1)), small)
})
