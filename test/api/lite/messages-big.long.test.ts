/** An attachment of 25 MB on real Dovecot, through the real process: byte for byte, and never whole in its memory. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { bigAttachment } from '../../support/corpus/index.ts'
import { startDovecot } from '../../support/dovecot.ts'
import { needs } from '../../support/require.ts'
import { apiKey, apiSecret, startService, type Json } from '../../support/service.ts'
import { chosenStore } from '../../support/store-choice.ts'
import { until } from '../../support/until.ts'
import { createUser, listed } from '../../support/users.ts'

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Hash and length of an answer that is not kept; `onChunk` sees it pass. */
function download(
  url: string,
  headers: Record<string, string>,
  onChunk: () => void,
): Promise<{ readonly status: number; readonly hash: string; readonly length: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; hash: string; length: number }>()
  const call = request(url, { headers, agent: false }, (response) => {
    const hash = createHash('sha256')
    let length = 0
    response.on('data', (chunk: Buffer) => {
      hash.update(chunk)
      length += chunk.length
      onChunk()
    })
    response.once('error', reject)
    response.once('end', () => resolve({ status: response.statusCode ?? 0, hash: hash.digest('hex'), length }))
  })
  call.once('error', reject)
  call.end()
  return promise
}

suite('25 MB', needs('dovecot'), () => {
  test('attachment, link and raw message are exact, and memory stays flat', async (t) => {
    const store = chosenStore()
    const dovecot = await startDovecot()
    t.after(() => dovecot.remove())
    const service = await startService({ env: store.env })
    t.after(async () => {
      await service.remove()
      await store.remove()
    })
    const email = 'big@mail.example'
    const { raw, expected } = bigAttachment()
    const content = expected.attachments?.[0]?.content ?? assert.fail()
    await dovecot.append(email, 'INBOX', raw)
    const user = await createUser(service, dovecot, email)
    await listed(service, user, 'Big')
    const account = `/lite/users/${user}/email_accounts/0`
    const [message] = (await service.list(`${account}/messages?limit=1`)) as [Json]
    const path = `${account}/messages/${String(message['message_id'])}`
    const headers = { authorization: `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}` }
    const { link } = await service.ok('GET', `${path}/attachments/0?as_link=1`)

    for (const [url, with_, wanted] of [
      [`${service.url}${path}/attachments/0`, headers, content],
      [String(link), {}, content],
      [`${service.url}${path}/raw`, headers, raw],
    ] as const) {
      const answer = await download(url, with_, () => undefined)
      assert.deepEqual(answer, { status: 200, hash: sha256(wanted), length: wanted.length }, url)
    }

    // Memory, with the code and the pools in place: 110 MB pass, more than the process may grow by.
    const larger = bigAttachment(80 * 1024 * 1024)
    await dovecot.append(email, 'INBOX', Buffer.concat([Buffer.from('X-Second: 1\r\n'), larger.raw]))
    const second = async (): Promise<Json | undefined> =>
      (await service.list(`${account}/messages`)).find((one) => one['message_id'] !== message['message_id'])
    const found = await until('the larger one', second, { withinMs: 60_000 })
    const before = service.rssKib()
    let most = before
    const answer = await download(
      `${service.url}${account}/messages/${String(found['message_id'])}/attachments/0`,
      headers,
      () => {
        most = Math.max(most, service.rssKib())
      },
    )
    assert.deepEqual([answer.status, answer.length], [200, 80 * 1024 * 1024], service.log().slice(-2000))
    const grownMib = Math.round((most - before) / 1024)
    t.diagnostic(
      `resident memory: ${Math.round(before / 1024)} MiB before, ${grownMib} MiB more while 80 MiB were downloaded`,
    )
    assert(grownMib < 80, `${grownMib} MiB more than before`)
  })
})
