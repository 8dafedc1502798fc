/** The first page: the state of the installation, and what requires action. */
import { z } from 'zod'
import { adminOverview, type Overview } from '../admin/overview.ts'
import { html, type Html } from '../html.ts'
import { page } from './frame.ts'
import { hostTable } from './settings.ts'
import { bar, card, facts, lasted, lineChart, link, moment, pill, scrolling, since, table, toneOf } from './parts.ts'

export const overview = page('/console', z.object({}), async (_input, { engine, live }) => {
  const seen = await adminOverview(engine)
  const hosts = html`${scrolling('Hosts', live('hosts', hostTable(seen.hosts)), 'wide')}
    <p><a href="/console/hosts">All hosts</a></p>`
  const service = facts({
    Version: seen.version,
    Started: moment(seen.started),
    Ready: seen.ready ? 'yes' : html`<strong class="bad">no</strong>`,
  })
  const content = html`${card('Action required', scrolling('Action required', live('attention', attention(seen))))}
    ${live('now', now(seen))}
    <div class="halves">
      ${card('Accounts by state', live('accounts', accounts(seen.accounts)))}
      ${card('Webhooks by state', live('webhooks', webhooks(seen.webhooks)))}
    </div>
    ${card('Delivery latency since the start', live('latencies', latencyTable(seen.latencies)))}
    ${card('Hosts with unhealthy accounts', hosts)} ${card('This service', live('service', service))}`
  return { title: 'Overview', content }
})

type Kind = Overview['attention'][number]['kind']

const pageOf: Readonly<Record<Kind, (id: string) => string>> = {
  account: (id) => `/console/accounts/${id}`,
  webhook: (id) => `/console/webhooks/${id}`,
  receiver: (q) => link('/console/webhooks', { failing: true, q }),
  host: (host) => link('/console/accounts', { host }),
  service: () => '/console',
}

function attention({ attention: rows }: Overview): Html {
  return table(rows, 'No action is required.', {
    Problem: ({ kind, id, what }) => html`<a href="${pageOf[kind](id)}">${what}</a>`,
    Duration: (row) => since(row.since),
  })
}

function now({ now: rates, history, webhooks: { pending, oldest } }: Overview): Html {
  const cards: readonly (readonly [string, number, string, readonly number[]])[] = [
    ['Events', rates.events_per_second, '/s', history.events_per_second],
    ['Deliveries', rates.deliveries_per_second, '/s', history.deliveries_per_second],
    ['Latency', rates.latency_ms, 'ms', history.latency_ms],
    ['Response time', rates.attempt_ms, 'ms', history.attempt_ms],
    ['Memory', rates.memory_mib, 'MiB', history.memory_mib],
    ['Loop delay', rates.loop_delay_ms, 'ms', history.loop_delay_ms],
  ]
  const backlog = html`<p class="number">${pending}</p>`
  const late = oldest === null ? 'no callback' : html`oldest: ${since(oldest)}`
  return html`<div class="grid">
    ${cards.map(([name, value, unit, values]) => {
      const most = rounded(Math.max(0, ...values))
      const label = `${name}, last hour: maximum ${most} ${unit}`
      const number = html`<p class="number">${rounded(value)} <small>${unit}</small></p>`
      return card(name, html`${number} ${lineChart(label, values)} <small>max ${most} in 1 h</small>`)
    })}
    ${card('Pending', html`${backlog} <small>${late}</small>`)}
  </div>`
}

function latencyTable(rows: Overview['latencies']): Html {
  const total = rows.reduce((sum, { callbacks }) => sum + callbacks, 0)
  const some = rows.filter(({ callbacks }) => callbacks > 0)
  return table(some, 'No callback was delivered yet.', {
    Latency: ({ seconds }) => (seconds === null ? 'longer' : `up to ${lasted(seconds * 1000)}`),
    '#Callbacks': ({ callbacks }) => callbacks,
    Share: ({ callbacks }) => bar(callbacks / total, ''),
  })
}

function rounded(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10)
}

function accounts({ total, states, statuses }: Overview['accounts']): Html {
  const disabled = statuses['DISABLED'] ?? 0
  return html`${shares(states, total, (state) => link('/console/accounts', { state }))}
    <p class="soft">
      ${total} in all;
      ${disabled === 0 ? 'none has' : html`<a href="/console/accounts?status=DISABLED">${disabled}</a> with`} the status
      DISABLED.
    </p>`
}

function webhooks({ total, states }: Overview['webhooks']): Html {
  return html`${shares(states, total, (state) => link('/console/webhooks', { state }))}
    <p class="soft">${total} in all.</p>`
}

function shares(states: Readonly<Record<string, number>>, total: number, at: (state: string) => string): Html {
  const rows = Object.entries(states)
    .filter(([, number]) => number > 0)
    .sort(([, one], [, other]) => other - one)
  return table(rows, 'There are none yet.', {
    State: ([state]) => html`<a href="${at(state)}">${pill(state)}</a>`,
    '#Number': ([, number]) => number,
    Share: ([state, number]) => bar(number / Math.max(1, total), toneOf(state)),
  })
}
