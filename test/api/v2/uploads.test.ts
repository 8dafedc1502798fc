/** New messages by multipart: what of them is no file is never cut, and all of it is bounded and covered. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { mail } from '../../support/mail.ts'
import { sign } from '../../support/oauth-signer.ts'
import { until } from '../../support/until.ts'
import { apiKey, apiSecret, basic } from '../core/raw-call.ts'
import { startLiteRig, type Json, type LiteRig } from '../lite/rig.ts'
import { v2Mailbox, type V2Mailbox } from './rig.ts'

const bodyLimit = 1_048_576

suite('uploads', () => {
  let rig: LiteRig
  let box: V2Mailbox
  before(async () => {
    // A pool of 4 MiB for bodies.
    rig = await startLiteRig({ env: { MAILROOM_BODY_LIMIT: String(bodyLimit), MAILROOM_BUFFER_MAX: '33554432' } })
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
  const stored = (): readonly { readonly raw: Buffer; readonly flags: ReadonlySet<string> }[] =>
    rig.imap.folder(box.email, 'Archive').messages

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
  })
  test('an upload has as many parts as any call has parameters, and none is left out', async () => {
    const many = (count: number): FormData =>
      formOf({
        message: new Blob([letter('many', 1000)]),
        ...Object.fromEntries(Array.from({ length: count - 3 }, (_, n) => [`p${n}`, ''])),
        flag_seen: '1',
      })
    await send(many(1000), 200)
    assert(stored().at(-1)?.flags.has('\\Seen'))
    const count = stored().length
    assert.equal((await send(many(1001), 400))['value'], 'body: more than 1000 parameters')
    assert.equal(stored().length, count)
  })

  test('a part that is not valid ends an upload, also where its file has begun', { timeout: 20_000 }, async () => {
    const bad = '--b\r\n\x01: x\r\n\r\ny\r\n'
    const body = bad + bodyOf(letter('begun', 1000)).replace('--b--', '')
    const headers = { authorization: basic, 'content-type': 'multipart/form-data; boundary=b' }
    const answer = await rig.call('POST', `${box.account}/messages`, undefined, { headers, body })
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.text, /body: not valid multipart/)
  })

  /** Chunked: how much comes is not known. It is more than what is read before it is known who calls. */
  const open = (subject: string) => {
    const headers = { authorization: basic, 'content-type': 'multipart/form-data; boundary=b' }
    const call = request(`${rig.url}${box.account}/messages`, { method: 'POST', headers, agent: false })
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    call.once('error', reject)
    call.once('response', (response) => resolve(response.resume().statusCode ?? 0))
    const part = (name: string): string => `--b\r\ncontent-disposition: form-data; name="${name}`
    call.write(`${part('dst_folder"')}\r\n\r\nArchive\r\n`)
    call.write(`${part('message"; filename="m"')}\r\n\r\n${letter(subject, 100_000)}\r\n`)
    return { status: promise, end: () => call.end('--b--\r\n') }
  }

  test('fields that may come have room in the budget, until all has come', async (t) => {
    const takes = rig.engines.map(({ budget }) => t.mock.method(budget, 'take').mock)
    const calls = () => takes.flatMap((take) => take.calls)
    const shares = () => calls().flatMap((call) => (call.arguments[0] === 'request' ? [call.result] : []))
    const first = open('first')
    await until('the first share', () => shares().length === 1)
    const second = open('second')
    await until('the second share', () => shares().length === 2)
    const taken = Promise.resolve(shares()[1]).then(() => 'taken')
    assert.equal(await Promise.race([taken, pause(100, 'waits')]), 'waits')
    second.end()
    const goesOn = Promise.withResolvers<undefined>()
    rig.imap.hooks = {
      async send(response, call) {
        if (call?.name === 'APPEND') await goesOn.promise
        return response
      },
    }
    first.end()
    assert.equal(await taken, 'taken')
    goesOn.resolve(undefined)
    assert.deepEqual(await Promise.all([first.status, second.status]), [200, 200])
    rig.imap.hooks = {}
  })
  const bodyOf = (message: string): string =>
    [
      ...['--b', 'content-disposition: form-data; name="dst_folder"', '', 'Archive'],
      ...['--b', 'content-disposition: form-data; name="message"; filename="m"', '', message, '--b--', 'epilogue'],
    ].join('\r\n')
  const signed = async (hashed: string, sent: string, status: number): Promise<Json> => {
    const bodyHash = createHash('sha256').update(hashed).digest('base64')
    const call = { method: 'POST', baseUrl: rig.url, path: `${box.account}/messages`, bodyHash }
    const { headers } = sign(call, { key: apiKey, secret: apiSecret })
    const type = { 'content-type': 'multipart/form-data; boundary=b' }
    const answer = await rig.call('POST', call.path, undefined, { headers: { ...headers, ...type }, body: sent })
    assert.equal(answer.status, status, answer.text)
    return answer.json
  }

  test('oauth_body_hash covers all of an upload, however large', async () => {
    for (const bytes of [1000, 3 * bodyLimit]) {
      const message = letter(`signed${bytes}`, bytes)
      const body = bodyOf(message)
      await signed(body, body, 200)
      assert.equal(stored().at(-1)?.raw.toString(), message)
      const count = stored().length
      for (const other of [body.replace('xxx', 'yyy'), `${body} `, body.replace('name="message"', 'name="massage"')])
        assert.match(
          String((await signed(body, other, 401))['value']),
          /^oauth_body_hash is not the sha256 of the body/,
        )
      assert.equal(stored().length, count)
    }
  })

  test('what is wrong with an upload that is signed with its hash is named as ever', async () => {
    const large = 'x'.repeat(2 * bodyLimit)
    const cut = bodyOf(letter('cut', 2 * bodyLimit)).replace('--b--', '')
    assert.match(String((await signed(cut, cut, 400))['value']), /^body: not valid multipart/)
    const fields = bodyOf(large).replace('; filename="m"', '')
    assert.match(String((await signed(fields, fields, 413))['value']), /^body: larger than 1048576 bytes besides/)
    const none = bodyOf('').replace('name="message"', 'name="x"')
    assert.equal((await signed(none, none, 400))['value'], 'message: is required')
  })
})
