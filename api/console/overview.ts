/** The first page: how everything is, and what needs a person now. */
import { z } from 'zod'
import { adminOverview } from '../admin/overview.ts'
import type { overviewView } from '../admin/views.ts'
import { html, type Html } from '../html.ts'
import { page } from './frame.ts'
import { bar, facts, lineChart, link, moment, pill, plain, scrolling, since, table, toneOf } from './parts.ts'

type Overview = z.output<typeof overviewView>

export const overview = page('/console', z.object({}), async (_input, { engine, live }) => {
  const seen = await adminOverview(engine)
  const content = html`<section class="card">
      <h2>Needs a person now</h2>
      ${scrolling('What needs a person', live('attention', attention(seen.attention)))}
    </section>
    ${live('now', now(seen))}
    <div class="halves">
      <section class="card">
        <h2>Accounts by state</h2>
        ${live('accounts', accounts(seen.accounts))}
      </section>
      <section class="card">
        <h2>Webhooks by state</h2>
        ${live('webhooks', webhooks(seen.webhooks))}
      </section>
    </div>
    <section class="card">
      <h2>Hosts with accounts that are not well</h2>
      ${scrolling('Hosts', live('hosts', hosts(seen.hosts)), 'wide')}
      <p><a href="/console/hosts">All hosts</a></p>
    </section>
    <section class="card">
      <h2>This service</h2>
      ${live(
        'service',
        facts([
          ['Version', plain(seen.version)],
          ['Started', moment(seen.started)],
          ['Ready', seen.ready ? plain('yes') : html`<strong class="bad">no</strong>`],
        ]),
      )}
    </section>`
  return { title: 'Overview', content }
})

type Kind = Overview['attention'][number]['kind']

const pageOf: Readonly<Record<Kind, (id: string) => string>> = {
  account: (id) => `/console/accounts/${id}`,
  webhook: (id) => `/console/webhooks/${id}`,
  host: (host) => link('/console/accounts', { host }),
  service: () => '/console',
}

function attention(rows: Overview['attention']): Html {
  return table(
    ['What', 'For'],
    rows.map(({ kind, id, what, since: at }) => [html`<a href="${pageOf[kind](id)}">${what}</a>`, since(at)]),
    'Nothing does.',
  )
}

function now({ now: rates, history, webhooks: { pending, oldest } }: Overview): Html {
  const cards: readonly (readonly [string, number, string, readonly number[]])[] = [
    ['Events', rates.events_per_second, 'a second', history.events_per_second],
    ['Deliveries', rates.deliveries_per_second, 'a second', history.deliveries_per_second],
    ['Delivery takes', rates.delivery_ms, 'ms', history.delivery_ms],
    ['Memory', rates.memory_mib, 'MiB', history.memory_mib],
    ['Event loop held', rates.loop_delay_ms, 'ms at most', history.loop_delay_ms],
  ]
  return html`<div class="grid">
    ${cards.map(([name, value, unit, values]) => {
      const label = `${name}, last hour: at most ${rounded(Math.max(0, ...values))} ${unit}`
      return html`<section class="card">
        <h2>${name}</h2>
        <p class="number">${rounded(value)} <small>${unit}</small></p>
        ${lineChart(label, values)}
        <small>most in the last hour: ${rounded(Math.max(0, ...values))}</small>
      </section>`
    })}
    <section class="card">
      <h2>Callbacks that wait</h2>
      <p class="number">${pending}</p>
      <small>${oldest === null ? plain('none is late') : html`the oldest for ${since(oldest)}`}</small>
    </section>
  </div>`
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
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([state, count]) => [
      html`<a href="${at(state)}">${pill(state)}</a>`,
      plain(count),
      html`${bar(count / Math.max(1, total), toneOf(state))}`,
    ])
  return table(['State', '#Number', 'Share'], rows, 'There are none yet.')
}

export function hosts(rows: Overview['hosts']): Html {
  return table(
    ['Host', '#Accounts', 'By state', 'Logins in the last minute', 'Pace'],
    rows.map(({ host, accounts: count, states, logins, pace }) => [
      html`<a href="${link('/console/accounts', { host })}">${host}</a>`,
      plain(count),
      counts(states),
      counts(logins),
      paceWords(pace),
    ]),
    'There are none.',
  )
}

function counts(values: Readonly<Record<string, number>>): Html {
  const given = Object.entries(values).filter(([, count]) => count > 0)
  if (given.length === 0) return html`<span class="soft">none</span>`
  return html`${given.map(([name, count]) => html`<span class="${toneOf(name)}">${name} ${count}</span> `)}`
}

function paceWords(pace: number | null): Html {
  if (pace === null) return html`<span class="soft">as configured</span>`
  return pace === 0 ? html`<strong class="bad">stopped</strong>` : html`${pace} logins a minute`
}
