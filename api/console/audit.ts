/** What operators have done. */
import { auditQuery, type AuditRow, auditTrail } from '../admin/audit.ts'
import { html, type Html } from '../html.ts'
import { page } from './frame.ts'
import { field, moment, searchedList, table } from './parts.ts'

const outcomes = { done: '', refused: 'bad', failed: 'bad', unknown: 'bad' } as const

export const audit = page('/console/audit', auditQuery, async ({ values }, visit) => {
  const rows = await auditTrail(visit.engine, values)
  const filters = field('Address, name, host or id', 'target', values, 'search')
  return searchedList({ title: 'Audit', values, filters, list: trail(rows), shown: rows.length, total: null }, visit)
})

function trail(rows: readonly AuditRow[]): Html {
  return table(rows, 'No action is recorded.', {
    Time: ({ at }) => moment(at),
    Actor: ({ by, actor, name }) => html`${by} ${name}<br /><small><code>${actor}</code></small>`,
    Address: ({ address }) => address,
    Action: ({ action }) => action,
    Target: ({ action, target, target_name: name }) => {
      if (action.startsWith('accounts ')) return html`<a href="/console/accounts/${target}">${name ?? target}</a>`
      return name === null ? target : html`${name} <small><code>${target}</code></small>`
    },
    Details: ({ details }) =>
      Object.entries(details)
        .map(([key, value]) => `${key}: ${value}`)
        .join(', '),
    Outcome: ({ outcome, status }) =>
      html`<span class="${outcomes[outcome]}">${outcome}</span> <small>${status}</small>`,
  })
}
