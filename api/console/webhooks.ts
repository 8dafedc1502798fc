/** Webhooks, one webhook with its callbacks, and one callback. */
import { z } from 'zod'
import { type Backlog, charts } from '../../engine/index.ts'
import { deliveriesQuery, webhookQuery } from '../admin/webhook-routes.ts'
import { type DeliveryDetail, deliveryOf, type DeliveryRow, listWebhooks, redeliver } from '../admin/webhooks.ts'
import { webhookDeliveries, type WebhookDetail, webhookDetail, type WebhookList } from '../admin/webhooks.ts'
import { seconds } from '../addresses.ts'
import { html, type Html } from '../html.ts'
import { steps } from './account.ts'
import { chartCard } from './chart.ts'
import { action, page } from './frame.ts'
import { facts, field, lasted, link, moment, nextWords, ordinal, pager, pill, plain } from './parts.ts'
import { scrolling, select, since, table, until } from './parts.ts'

const states = ['idle', 'draining', 'waiting', 'probing', 'resting', 'recovering', 'paused', 'dead'] as const

function oldestOf(backlog: Backlog | undefined): Html {
  return backlog === undefined || backlog.oldestAt === null ? html`` : since(seconds(backlog.oldestAt))
}

const outcomes = ['pending', 'delivered', 'failed', 'skipped'] as const

export const webhooks = page('/console/webhooks', webhookQuery, async ({ values }, { engine, live }) => {
  const { total, webhooks: rows } = listWebhooks(engine, values)
  const { state, developer, limit, offset: from } = values
  const failing = values.failing === undefined ? '' : String(Number(values.failing))
  const at = (start: number) => link('/console/webhooks', { state, developer, failing, offset: start })
  const backlogs = await Promise.all(rows.map(({ id }) => engine.store.outbox.backlog(id)))
  const list = html`${scrolling('Webhooks', webhookTable(rows, backlogs), 'wide')}
  ${pager({ offset: from, limit, count: total, shown: rows.length, at })}`
  const content = html`<section class="card">
      <form class="row" method="get" action="/console/webhooks">
        ${select({ label: 'State', name: 'state', value: state, options: states.map((one) => [one, one] as const) })}
        ${select({
          label: 'Receiver',
          name: 'failing',
          value: failing,
          options: [
            ['1', 'fails'],
            ['0', 'does not fail'],
          ],
        })}
        ${field('Developer id', 'developer', developer)}
        <button class="main">Show</button>
        <a class="button" href="/console/webhooks">All</a>
      </form>
    </section>
    <section class="card">${live('webhooks', list)}</section>`
  return { title: 'Webhooks', content }
})

function webhookTable(rows: WebhookList['webhooks'], backlogs: readonly Backlog[]): Html {
  return table(
    ['Receiver', 'State', 'For', '#Waiting', 'The oldest for', 'Failing for', '#Failures', 'Next', 'Developer'],
    rows.map((row, index) => [
      html`<a href="/console/webhooks/${row.id}">${row.callback_url}</a
        >${!row.active && html` <small>inactive</small>`}`,
      pill(row.state),
      since(row.since),
      plain(backlogs[index]?.pending ?? 0),
      oldestOf(backlogs[index]),
      row.failing_since === null ? html`` : html`${since(row.failing_since)} <br /><small>${row.message}</small>`,
      plain(row.failures),
      nextWords(row.next),
      html`<a href="/console/developers#${row.developer_id}"><code>${row.developer_id}</code></a>`,
    ]),
    'No webhook is like this.',
  )
}

export const webhook = page('/console/webhooks/{id}', deliveriesQuery, async ({ path, values }, { engine, live }) => {
  const seen = await webhookDetail(engine, path.id)
  const { state, limit, offset: from } = values
  const deliveries = await webhookDeliveries(engine, path.id, values)
  const at = (start: number) => link(`/console/webhooks/${seen.id}`, { state, offset: start })
  const content = html`<section class="card">${live('how', how(seen, deliveries))}</section>
    ${chartCard(charts.webhook, seen.active_states, live)}
    <section class="card">
      <h2>Callbacks</h2>
      <form class="row" method="get" action="/console/webhooks/${seen.id}">
        ${select({ label: 'State', name: 'state', value: state, options: outcomes.map((one) => [one, one] as const) })}
        <button>Show</button>
      </form>
      ${scrolling('Callbacks', live('deliveries', deliveryTable(deliveries)), 'wide')}
      ${pager({ offset: from, limit, count: null, shown: deliveries.length, at })}
    </section>
    <section class="card">
      <h2>Steps, newest first</h2>
      ${scrolling('Steps', live('steps', steps(seen.steps)))}
    </section>`
  return { title: seen.callback_url, content }
})

/** How long the receiver took, in the middle of those that were delivered; null = none was. */
function medianTook(rows: readonly DeliveryRow[]): number | null {
  const took = rows.flatMap(({ attempts, state }) => (state === 'delivered' ? [attempts.at(-1)?.duration_ms ?? 0] : []))
  return took.toSorted((a, b) => a - b)[Math.floor(took.length / 2)] ?? null
}

function how(seen: WebhookDetail, deliveries: readonly DeliveryRow[]): Html {
  const took = medianTook(deliveries)
  return facts([
    ['State', html`${pill(seen.state)} for ${since(seen.since)}${!seen.active && ', inactive'}`],
    [
      'Health',
      seen.failing_since === null
        ? plain('well')
        : html`<span class="bad">failing for ${since(seen.failing_since)}; failures in a row: ${seen.failures}</span>:
            ${seen.message}`,
    ],
    ['Next', nextWords(seen.next)],
    [
      'Callbacks that wait',
      html`${seen.pending}${seen.oldest !== null && html`, the oldest for ${since(seen.oldest)}`}`,
    ],
    [
      'Receiver answers',
      plain(took === null ? 'nothing yet' : `in ${lasted(took)}, the median of the callbacks below`),
    ],
    ['Webhook', html`<code>${seen.id}</code>`],
    [
      'User',
      seen.user_id === null
        ? plain('all users of the developer')
        : html`<a href="${link('/console/accounts', { user: seen.user_id })}"><code>${seen.user_id}</code></a>`,
    ],
    ['Developer', html`<a href="/console/developers#${seen.developer_id}"><code>${seen.developer_id}</code></a>`],
    ['Made', moment(seen.created)],
  ])
}

function deliveryTable(rows: readonly DeliveryRow[]): Html {
  return table(
    ['Callback', 'State', 'Event', 'Made', 'Took, or is sent', '#Attempts', 'Last answer'],
    rows.map((row) => [
      html`<a href="/console/deliveries/${row.delivery_id}"><code>${row.delivery_id}</code></a>`,
      pill(row.state),
      plain(row.event ?? row.kind),
      moment(row.created),
      tookOrDue(row),
      plain(row.attempt_count),
      row.reason === null ? lastAnswer(row) : html`<small>${row.reason}</small>`,
    ]),
    'There are none yet.',
  )
}

function tookOrDue({ created, finished, due }: DeliveryRow): Html {
  if (finished !== null) return plain(lasted((finished - created) * 1000))
  return due === null ? html`` : until(due)
}

function lastAnswer({ attempts }: DeliveryRow): Html {
  const last = attempts.at(-1)
  return plain(last === undefined ? '' : (last.error ?? String(last.status_code)))
}

export const delivery = page('/console/deliveries/{id}', z.object({}), async ({ path }, { engine, call, form }) => {
  const seen = await deliveryOf(engine, path.id, call.signal)
  const content = html`<section class="card">
      ${deliveryFacts(seen)} ${form(`/console/deliveries/${path.id}/redeliver`, html`<button>Send it again</button>`)}
    </section>
    <section class="card">
      <h2>Why it matched</h2>
      ${verdictTable(seen.why)}
    </section>
    <section class="card">
      <h2>Answers, newest first</h2>
      ${seen.attempts.toReversed().map(attempt)}
    </section>
    <section class="card">
      <h2>What is kept of the request</h2>
      ${scrolling('Request', html`<pre class="box">${JSON.stringify(seen.data, null, 2)}</pre>`)}
    </section>`
  return { title: 'Callback', content }
})

function deliveryFacts(seen: DeliveryDetail): Html {
  return facts([
    ['State', html`${pill(seen.state)}${seen.reason !== null && html` ${seen.reason}`}`],
    ['Event', plain(seen.event ?? seen.kind)],
    ['Next', seen.due === null ? null : html`is sent ${until(seen.due)}, ${ordinal(seen.attempt_count + 1)} try`],
    ['Receiver', seen.url === null ? null : plain(seen.url)],
    ['Made', moment(seen.created)],
    ['Finished', seen.finished === null ? null : moment(seen.finished)],
    ['Callback', html`<code>${seen.delivery_id}</code>`],
    [
      'Webhook',
      seen.webhook_id === null
        ? null
        : html`<a href="/console/webhooks/${seen.webhook_id}"><code>${seen.webhook_id}</code></a>`,
    ],
    [
      'Account',
      seen.email_account === null
        ? null
        : html`<a href="/console/accounts/${seen.email_account}"><code>${seen.email_account}</code></a>`,
    ],
    ['Message', seen.message_id === null ? null : html`<code>${seen.message_id}</code>`],
  ])
}

function verdictTable(rows: DeliveryDetail['why']): Html {
  return table(
    ['Filter', 'Matched', 'Why'],
    rows.map(({ filter, matched, why }) => [html`<code>${filter}</code>`, plain(matched ? 'yes' : 'no'), plain(why)]),
    'It is no callback of a message: no filter was asked.',
  )
}

function attempt(one: DeliveryRow['attempts'][number]): Html {
  const outcome = one.error ?? String(one.status_code)
  return html`<h3>${moment(one.timestamp)}: ${outcome}, after ${lasted(one.duration_ms)}</h3>
    ${one.response !== null && one.response !== '' && html`<pre class="box">${one.response}</pre>`}`
}

export const deliveryActions = [
  action('/console/deliveries/{id}/redeliver', z.object({}), async ({ path }, { engine }) => {
    const again = (await redeliver(engine, path.id)) > 0
    return {
      to: `/console/deliveries/${path.id}`,
      notice: again ? 'It is sent again, under the same webhook-id.' : 'It is on its way already.',
    }
  }),
]
