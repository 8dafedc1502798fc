/** New messages by multipart: what of them is no file is never cut, and all of it is bounded and covered. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { mail } from '../../support/mail.ts'
import { basic } from '../core/rig.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { v2Mailbox, type V2Mailbox } from './rig.ts'

const bodyLimit = 1_048_576

suite('uploads', () => {
  let rig: LiteRig
  let box: V2Mailbox
  before(async () => {
    rig = await startLiteRig({ env: { MAILROOM_BODY_LIMIT: String(bodyLimit) } })
    box = await v2Mailbox(rig, 'uploader')
  })
  after(() => rig.close())

  const send = async (form: FormData, status: number): Promise<Json> => {
    const call = { method: 'POST', headers: { authorization: basic }, body: form }
    const response = await fetch(`${rig.url}${box.account}/messages`, call)
    const text = await response.text()
    assert.equal(response.status, status, text)
    return JSON.parse(text) as Json
  }
  const formOf = (fields: Readonly<Record<string, string | Blob>>): FormData => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ dst_folder: 'Archive', ...fields }))
      if (typeof value === 'string') form.append(name, value)
      else form.append(name, value, 'mail.eml')
    return form
  }
  const letter = (subject: string, bytes: number): string => {
    const head = mail({ to: box.email, subject, text: '' })
    return head + 'x'.repeat(bytes - head.length)
  }
  const stored = (): readonly { readonly raw: Buffer }[] => rig.imap.folder(box.email, 'Archive').messages

  test('a message that is no file is taken whole or not at all', async () => {
    const whole = letter('whole', bodyLimit - 100)
    await send(formOf({ message: whole }), 200)
    assert.equal(stored().at(-1)?.raw.toString(), whole)
    const count = stored().length
    for (const bytes of [bodyLimit, bodyLimit + 1, 4 * bodyLimit]) {
      const { value } = await send(formOf({ message: letter('cut', bytes) }), 413)
      assert.equal(value, `body: larger than ${bodyLimit} bytes besides the file (a part with a filename)`)
    }
    assert.equal(stored().length, count)
  })

  test('fields beside the file are bounded in all, with their names', async () => {
    const message = new Blob([letter('beside', 2 * bodyLimit)])
    await send(formOf({ one: 'x'.repeat(bodyLimit / 4), two: 'x'.repeat(bodyLimit / 2), message }), 200)
    const count = stored().length
    const half = 'x'.repeat(bodyLimit / 2)
    const names = Array.from({ length: 110 }, (_, n) => [`${n}`.padEnd(10_000, 'x'), ''] as const)
    for (const fields of [{ one: half, two: half }, Object.fromEntries(names)]) {
      const { value } = await send(formOf({ ...fields, message }), 413)
      assert.match(String(value), /^body: larger than 1048576 bytes besides the file/)
    }
    assert.equal(stored().length, count)
  })})
