/** The list of webhooks, and the page of a webhook with its callbacks. */
import { z } from 'zod'
import { drawings, isBareUrl, ownerOf, shownStates } from '../../engine/index.ts'
import { listWebhooks, type WebhookDetail, webhookDetail, type WebhookList, webhookQuery } from '../admin/webhooks.ts'
import { html, type Html } from '../html.ts'
import { chartCard } from './chart.ts'
import { deliveryCard } from './deliveries.ts'
import { page } from './frame.ts'
import { card, developerFilter, developerLink, facts, field, lasted, link, moment, named, nextWords } from './parts.ts'
import { pill, receiver, scrolling, searchedList, select, since, steps, table } from './parts.ts'

export const webhooks = page('/console/webhooks', webhookQuery, async ({ values }, visit) => {
  const { total, webhooks: rows, silent } = await listWebhooks(visit.engine, values)
  const receivers = Object.entries({ fails: '1', 'does not fail': '0' })
  const filters = html`${select('State', 'state', shownStates.webhook, values)}
  ${select('Receiver', 'failing', receivers, values)} ${field('URL', 'q', values, 'search')}
  ${await developerFilter(visit, values)}`
  const list = webhookTable(rows)
  return searchedList({ title: 'Webhooks', values, filters, list, shown: rows.length, total, silent }, visit)
})

/** The pill is red while the receiver fails, whatever the state of the actor. */
function statePill({ state, active, failing_since: failing }: WebhookDetail | WebhookList['webhooks'][number]): Html {
  return pill(state, active && failing !== null ? 'bad' : undefined)
}

export function webhookTable(rows: WebhookList['webhooks']): Html {
  return table(rows, 'No webhook matches.', {
    Receiver: (row) => {
      const owner = ownerOf({ userId: row.user_id }, () => row.user_name)
      return html`${receiver(row.id, row.callback_url, owner)} ${!row.active && html`<small>inactive</small>`}`
    },
    State: statePill,
    Duration: (row) => since(row.since),
    '#Pending': (row) => row.pending,
    Oldest: (row) => (row.oldest === null ? null : since(row.oldest)),
    'Delivery latency': (row) => (row.latency_ms === null ? null : lasted(row.latency_ms)),
    'Failing for': ({ failing_since: at, message }) =>
      at === null ? null : html`${since(at)} <br /><small>${message}</small>`,
    '#Failures': (row) => row.failures,
    Next: (row) => nextWords(row.next),
    Developer: (row) => developerLink(row.developer_id, row.developer_name),
  })
}

export const webhook = page('/console/webhooks/{id}', z.object({}), async ({ path }, { engine, live }) => {
  const seen = await webhookDetail(engine, path.id)
  // Callbacks to a bare URL (id u…) have no webhook id in the log: the link shows the pending ones of the developer.
  const log = isBareUrl(seen.id) ? { developer: seen.developer_id, state: 'pending' } : { webhook: seen.id }
  const content = html`${card(null, live('how', how(seen)))}
  ${chartCard('State chart of the webhook', drawings.webhook, { ...seen, active: seen.active_states }, live)}
  ${deliveryCard('Callbacks', seen.callbacks, log, live)}
  ${card('Steps, newest first', scrolling('Steps', live('steps', steps(seen.steps))))}`
  return { title: seen.callback_url, content }
})

function how(seen: WebhookDetail): Html {
  const { failing_since: failing, oldest, latency_ms: took, user_id: user } = seen
  return facts({
    State: html`${statePill(seen)} for ${since(seen.since)}${!seen.active && ', inactive'}`,
    Health:
      failing === null
        ? 'healthy'
        : html`<span class="bad">failing for ${since(failing)}; failures in a row: ${seen.failures}</span>:
            ${seen.message}`,
    Next: nextWords(seen.next),
    'Pending callbacks': html`${seen.pending}${oldest !== null && html`, oldest: ${since(oldest)}`}`,
    'Delivery latency':
      took === null ? 'no delivery yet' : `${lasted(took)} after the event, the median of the last ten`,
    Webhook: html`<code>${seen.id}</code>`,
    User:
      user === null ? 'all users of the developer' : named(link('/console/accounts', { user }), seen.user_name, user),
    Developer: developerLink(seen.developer_id, seen.developer_name),
    Created: moment(seen.created),
  })
}
