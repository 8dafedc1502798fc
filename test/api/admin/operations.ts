/** Every operation of the admin API but the stream, with its good answer. */
import { until } from '../../support/until.ts'
import type { Json, LiteRig } from '../lite/rig.ts'

interface Call {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly body?: Json
}

type Drive = (method: string, template: string, call?: Call) => Promise<Json>

/** `id`: an account that is watched, and there is an active webhook. */
export async function driveAdmin({ engine, imap }: LiteRig, id: string, drive: Drive): Promise<void> {
  const account = { path: { id } }
  await drive('GET', '/admin/overview')
  await drive('GET', '/admin/accounts', {
    query: { state: 'watching', status: 'OK', older_than: 0, q: 'op@', limit: 5 },
  })
  await drive('GET', '/admin/accounts/{id}', account)
  await drive('GET', '/admin/accounts/{id}/explain', account)
  await drive('GET', '/admin/accounts/{id}/trail', { ...account, query: { q: 'Hello' } })
  await drive('GET', '/admin/search', { query: { q: 'op@' } })
  for (const action of ['pause', 'resume', 'reconnect', 'check']) {
    await drive('POST', `/admin/accounts/{id}/${action}`, account)
    const ready = action === 'pause' ? 'paused' : 'watching'
    await until(ready, () => engine.accounts.view(id)?.tags.includes(ready))
  }
  await drive('POST', '/admin/accounts/{id}/link', account)
  await drive('POST', '/admin/accounts/{id}/read-anew', { ...account, body: { folder: 'INBOX' } })
  await drive('GET', '/admin/webhooks', { query: { failing: 0, limit: 5 } })
  const [known] = (await engine.webhooks.all()).filter(({ active }) => active)
  if (known === undefined) throw new Error('there is no webhook')
  const webhook = { path: { id: known.id } }
  await drive('GET', '/admin/webhooks/{id}', webhook)
  const delivery = { path: { id: (await engine.webhooks.test(known)).id } }
  await drive('GET', '/admin/deliveries', { query: { webhook: known.id, within: 3600, limit: 5 } })
  await drive('POST', '/admin/deliveries/redeliver', { body: { webhook: known.id } })
  await drive('GET', '/admin/deliveries/{id}', delivery)
  await drive('POST', '/admin/deliveries/{id}/redeliver', delivery)
  await drive('GET', '/admin/nodes')
  await drive('GET', '/admin/hosts')
  await drive('PUT', '/admin/retention/{what}', { path: { what: 'calls' }, body: { seconds: 604_800 } })
  await drive('PUT', '/admin/hosts/{host}', { path: { host: imap.host }, body: { pace: 6000 } })
  await drive('GET', '/admin/developers', { query: { limit: 5 } })
  await drive('GET', '/admin/developers/{id}', { path: { id: known.developerId }, query: { limit: 5 } })
  const made = await drive('POST', '/admin/developers', { body: { name: 'Another' } })
  const brand = { name: 'Another', logo: 'https://cdn.example.com/logo.svg', color: '#2457d6' }
  await drive('PUT', '/admin/developers/{id}/brand', { path: { id: String(made['id']) }, body: brand })
  for (const action of ['rotate', 'end-overlap', 'revoke', 'restore'])
    await drive('POST', `/admin/developers/{id}/${action}`, { path: { id: String(made['id']) } })
  await drive('GET', '/admin/retention')
  await drive('GET', '/admin/audit')
  // The other store has a tool for it.
  if (engine.store.kind === 'sqlite') {
    await drive('POST', '/admin/backup')
    await drive('GET', '/admin/backup')
  }
  await drive('POST', '/admin/reseal')
  await drive('GET', '/admin/tokens')
  const other = await drive('POST', '/admin/tokens', { body: { name: 'other', scopes: 'keys' } })
  await drive('DELETE', '/admin/tokens/{id}', { path: { id: String(other['id']) } })
}
