/** Every operation of 2.0 that writes mail or webhooks once, with its good answer: for the test of the document. */
import type { Drive } from './operations.ts'

const account = '/2.0/accounts/{id}'

/** `message` = our id of a message in INBOX; it lies there again afterwards. */
export async function driveV2Writes(message: string, drive: Drive): Promise<void> {
  const folder = `${account}/sources/{label}/folders/{folder}`
  const [one, other] = [{ folder: 'Driven' }, { folder: 'Driven/Again' }]
  await drive('PUT', folder, { path: one })
  await drive('POST', folder, { path: other })
  for (const way of [`${account}/message/{message_id}`, `${account}/messages/{message_id}`]) {
    const path = { message_id: message }
    await drive('POST', way, { path, body: { dst_folder: 'Driven', flag_flagged: 1, move: 0 } })
    await drive('POST', `${way}/flags`, { path, body: { answered: 1 } })
    await drive('POST', `${way}/folders`, { path, body: { add: 'Driven/Again', remove: 'Driven' } })
    await drive('PUT', `${way}/folders`, { path, body: { folders: [{ name: 'INBOX' }] } })
    const raw = `From: driver@sender.example\r\nSubject: driven by ${way}\r\n\r\nHello\r\n`
    const made = await drive('POST', `${account}/messages`, { body: { dst_folder: 'Driven', message: raw } })
    await drive('DELETE', way, { path: { message_id: String(made['message_id']) } })
  }
  const raw = 'From: driver@sender.example\r\nSubject: driven thread\r\n\r\nHello\r\n'
  await drive('POST', `${account}/messages`, { body: { dst_folder: 'Driven', message: raw } })
  const [url = ''] = (await drive('GET', `${account}/threads`, {
    query: { subject: 'driven thread' },
  })) as unknown as string[]
  const path = { thread_id: url.split('/').at(-1) ?? '' }
  const thread = `${account}/threads/{thread_id}`
  await drive('POST', `${thread}/folders`, { path, body: { add: ['Driven/Again'] } })
  await drive('PUT', `${thread}/folders`, { path, body: { folders: [{ name: 'Driven' }] } })
  await drive('GET', `${thread}/folders`, { path })
  await drive('DELETE', thread, { path })
  await drive('POST', `${folder}/expunge`, { path: one })
  await drive('DELETE', folder, { path: other })
  await drive('DELETE', folder, { path: one })
  for (const base of [`${account}/webhooks`, '/2.0/webhooks']) {
    const body = { callback_url: 'http://127.0.0.1:9/v2', filter_folder_removed: 'Archive' }
    const path = { webhook_id: String((await drive('POST', base, { body }))['webhook_id']) }
    await drive('GET', base)
    await drive('GET', `${base}/{webhook_id}`, { path })
    await drive('POST', `${base}/{webhook_id}`, { path, body: { active: 0 } })
    await drive('DELETE', `${base}/{webhook_id}`, { path })
  }
}
