/** The list of email accounts, searched and filtered. */
import type { z } from 'zod'
import { failureClasses } from '../../engine/index.ts'
import { accountQuery } from '../admin/account-routes.ts'
import { listAccounts } from '../admin/accounts.ts'
import type { accountRow } from '../admin/views.ts'
import { html, type Html } from '../html.ts'
import { page } from './frame.ts'
import { field, link, nextWords, pager, pill, scrolling, select, since, table } from './parts.ts'

const states = [
  'watching',
  'syncing',
  'connecting',
  'queued',
  'waiting',
  'throttled',
  'disabled',
  'paused',
  'dead',
] as const

const ages = [
  ['60', 'a minute'],
  ['600', '10 minutes'],
  ['3600', 'an hour'],
  ['86400', 'a day'],
] as const

type Query = z.output<typeof accountQuery>

export const accounts = page('/console/accounts', accountQuery, async ({ values }, { engine, live }) => {
  const { accounts: rows, total } = await listAccounts(engine, values)
  const at = (from: number) => link('/console/accounts', { ...values, offset: from })
  const list = html`${scrolling('Accounts', accountTable(rows), 'wide')}
  ${pager({ offset: values.offset, limit: values.limit, count: total, shown: rows.length, at })}`
  const content = html`<section class="card">${filters(values)}</section>
    <section class="card">${live('accounts', list)}</section>`
  return { title: 'Accounts', content }
})

function filters(values: Query): Html {
  const same = (words: readonly string[]) => words.map((one) => [one, one] as const)
  return html`<form class="row" method="get" action="/console/accounts">
    ${field('Address, label or id', 'q', values.q, 'search')}
    ${select({ label: 'State', name: 'state', value: values.state, options: same(states) })}
    ${select({ label: 'Status', name: 'status', value: values.status, options: same(['OK', 'DISABLED']) })}
    ${field('Host', 'host', values.host)} ${field('User id', 'user', values.user)}
    ${field('Developer id', 'developer', values.developer)}
    ${select({ label: 'Failure', name: 'failure', value: values.failure, options: same(failureClasses) })}
    ${select({ label: 'In this state for', name: 'older_than', value: String(values.older_than ?? ''), options: ages })}
    <button class="main">Show</button>
    <a class="button" href="/console/accounts">All</a>
  </form>`
}

function accountTable(rows: readonly z.output<typeof accountRow>[]): Html {
  return table(
    ['Account', 'State', 'For', 'Status', 'Host', 'Failure', 'Next'],
    rows.map((row) => [
      html`<a href="/console/accounts/${row.id}">${row.email}</a>`,
      pill(row.state),
      since(row.since),
      pill(row.status),
      html`<a href="${link('/console/accounts', { host: row.server })}">${row.server}</a>`,
      row.failure === null
        ? html``
        : html`<a href="${link('/console/accounts', { failure: row.failure })}">${row.failure}</a> <br /><small
              >${row.message}</small
            >`,
      nextWords(row.next, row.attempt),
    ]),
    'No account is like this.',
  )
}
