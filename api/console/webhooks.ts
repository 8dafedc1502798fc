/** Webhooks, one webhook with its callbacks, and one callback. */
import { z } from 'zod'
import { drawings, shownStates } from '../../engine/index.ts'
import {
  deliveriesQuery,
  type DeliveryDetail,
  deliveryOf,
  type DeliveryRow,
  listWebhooks,
  redeliver,
  webhookDeliveries,
  type WebhookDetail,
  webhookDetail,
  type WebhookList,
  webhookQuery,
} from '../admin/webhooks.ts'
import { html, type Html } from '../html.ts'
import { deliveryStates } from '../lite/webhooks/schema.ts'
import { chartCard } from './chart.ts'
import { action, page } from './frame.ts'
import { card, developerFilter, developerLink, facts, idLink, lasted, link, moment, nextWords } from './parts.ts'
import { ordinal, pager, pill, scrolling, searchedList, select, since, steps, table, until } from './parts.ts'

const receivers = [
  ['1', 'fails'],
  ['0', 'does not fail'],
] as const

export const webhooks = page('/console/webhooks', webhookQuery, async ({ values }, visit) => {
  const { total, webhooks: rows } = await listWebhooks(visit.engine, values)
  const filters = html`${select('State', 'state', shownStates.webhook, values)}
  ${select('Receiver', 'failing', receivers, values)} ${await developerFilter(visit, values)}`
  const list = webhookTable(rows)
  return searchedList({ title: 'Webhooks', values, filters, list, shown: rows.length, total }, visit)
})

/** One that fails is red, whatever its actor does. */
function statePill({ state, active, failing_since: failing }: WebhookDetail | WebhookList['webhooks'][number]): Html {
  return pill(state, active && failing !== null ? 'bad' : undefined)
}

function webhookTable(rows: WebhookList['webhooks']): Html {
  return table(rows, 'No webhook matches.', {
    Receiver: (row) =>
      html`<a href="/console/webhooks/${row.id}">${row.callback_url}</a
        >${!row.active && html` <small>inactive</small>`}`,
    State: statePill,
    Duration: (row) => since(row.since),
    '#Pending': (row) => row.pending,
    Oldest: (row) => (row.oldest === null ? null : since(row.oldest)),
    'Delivery latency': (row) => (row.latency_ms === null ? null : lasted(row.latency_ms)),
    'Failing for': ({ failing_since: at, message }) =>
      at === null ? null : html`${since(at)} <br /><small>${message}</small>`,
    '#Failures': (row) => row.failures,
    Next: (row) => nextWords(row.next),
    Developer: (row) => developerLink(row.developer_id),
  })
}

export const webhook = page('/console/webhooks/{id}', deliveriesQuery, async ({ path, values }, { engine, live }) => {
  const seen = await webhookDetail(engine, path.id)
  const deliveries = await webhookDeliveries(engine, path.id, values)
  const here = `/console/webhooks/${seen.id}`
  const callbacks = html`<form class="row" method="get" action="${here}">
      ${select('State', 'state', deliveryStates, values)}
      <button>Show</button>
    </form>
    ${scrolling('Callbacks', live('deliveries', deliveryTable(deliveries)), 'wide')}
    ${pager(here, values, { shown: deliveries.length, total: null })}`
  const content = html`${card(null, live('how', how(seen)))}
  ${chartCard('State chart of the webhook', drawings.webhook, { ...seen, active: seen.active_states }, live)}
  ${card('Callbacks', callbacks)} ${card('Steps, newest first', scrolling('Steps', live('steps', steps(seen.steps))))}`
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
    User: user === null ? 'all users of the developer' : idLink(link('/console/accounts', { user }), user),
    Developer: developerLink(seen.developer_id),
    Created: moment(seen.created),
  })
}

function deliveryTable(rows: readonly DeliveryRow[]): Html {
  return table(rows, 'There are none yet.', {
    Callback: ({ delivery_id: id }) => idLink(`/console/deliveries/${id}`, id),
    State: (row) => pill(row.state),
    Event: (row) => row.event ?? row.kind,
    Created: (row) => moment(row.created),
    'Duration, or wait': tookOrWaits,
    '#Attempts': (row) => row.attempt_count,
    'Last response': (row) => (row.reason === null ? lastAnswer(row) : html`<small>${row.reason}</small>`),
  })
}

function tookOrWaits({ created, finished, waits }: DeliveryRow): Html | string | null {
  return finished === null ? waitWords(waits) : lasted((finished - created) * 1000)
}

function waitWords(waits: DeliveryRow['waits']): Html | null {
  if (waits === null) return null
  const { behind, callback: id, until: at } = waits
  const when = at === null ? null : until(at)
  if (behind === 'receiver') return html`behind the failing receiver: one callback is tried ${when ?? 'now'}`
  if (behind === 'turn') return html`is sent in its turn`
  if (id === null) return html`next attempt ${when}`
  return html`behind <a href="/console/deliveries/${id}">an earlier callback</a> of its email account: next attempt
    ${when}`
}

type Attempt = DeliveryRow['attempts'][number]

function lastAnswer({ attempts }: DeliveryRow): string | null {
  const last = attempts.at(-1)
  return last === undefined ? null : outcomeOf(last)
}

const outcomeOf = ({ error, status_code }: Attempt): string => error ?? String(status_code)

export const delivery = page('/console/deliveries/{id}', z.object({}), async ({ path }, { engine, call, form }) => {
  const seen = await deliveryOf(engine, path.id, call.signal)
  const again = form(`/console/deliveries/${path.id}/redeliver`, html`<button>Send it again</button>`)
  const content = html`${card(null, html`${deliveryFacts(seen)} ${again}`)}
  ${card('Why it matched', verdictTable(seen.why))}
  ${card('Attempts, newest first', html`${seen.attempts.toReversed().map(attempt)}`)} ${card('Request', request(seen))}`
  return { title: 'Callback', content }
})

function request({ request: { method, url, headers, body, why_no_body: why }, data }: DeliveryDetail): Html {
  const text = (value: unknown): string => JSON.stringify(value, null, 2)
  const lines = [
    `${method} ${url ?? '(no URL)'}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : ['', text(body)]),
  ]
  const words = 'Made anew of what the index has now, without texts of the mail; signatures are made at each attempt.'
  return html`<p class="soft"><small>${words}</small></p>
    ${scrolling('Request', html`<pre class="box">${lines.join('\n')}</pre>`)}
    ${why !== null && html`<p>There is no body to show: ${why}.</p>`}
    <details>
      <summary>What is kept of the event</summary>
      <pre class="box">${text(data)}</pre>
    </details>`
}

function deliveryFacts(seen: DeliveryDetail): Html {
  const { due, channel_id: channel, webhook_id: webhookId, email_account: accountId } = seen
  return facts({
    State: html`${pill(seen.state)}${seen.reason !== null && html` ${seen.reason}`}`,
    Event: seen.event ?? seen.kind,
    Next: seen.waits === null ? null : html`${waitWords(seen.waits)}, ${ordinal(seen.attempt_count + 1)} try`,
    Receiver: seen.url,
    Created: moment(seen.created),
    Finished: seen.finished === null ? null : moment(seen.finished),
    Callback: html`<code>${seen.delivery_id}</code>`,
    Webhook: webhookId === null ? null : idLink(`/console/webhooks/${webhookId}`, webhookId),
    Queue:
      due === null || channel === webhookId
        ? null
        : html`<a href="/console/webhooks/${channel}">the callbacks to this URL</a>`,
    Developer: developerLink(seen.developer_id),
    Account: accountId === null ? null : idLink(`/console/accounts/${accountId}`, accountId),
    Message: seen.message_id === null ? null : html`<code>${seen.message_id}</code>`,
  })
}

function verdictTable(rows: DeliveryDetail['why']): Html {
  return table(rows, 'It is no callback of a message: no filter was asked.', {
    Filter: ({ filter }) => html`<code>${filter}</code>`,
    Matched: ({ matched }) => (matched ? 'yes' : 'no'),
    Why: ({ why }) => why,
  })
}

function attempt(one: Attempt): Html {
  return html`<h3>${moment(one.timestamp)}: ${outcomeOf(one)}, after ${lasted(one.duration_ms)}</h3>
    ${one.response !== null && one.response !== '' && html`<pre class="box">${one.response}</pre>`}`
}

export const redeliverAction = action(
  '/console/deliveries/{id}/redeliver',
  z.object({}),
  async ({ path }, { engine }) => {
    const again = (await redeliver(engine, path.id)) > 0
    return {
      to: `/console/deliveries/${path.id}`,
      notice: again ? 'It is sent again, under the same webhook-id.' : 'It is on its way already.',
    }
  },
)
