/** The audit trail: actions of operators. */
import { operatorScopes } from '../../engine/index.ts'
import { auditQuery, type AuditRow, auditTrail } from '../admin/audit.ts'
import { html, type Html } from '../html.ts'
import { page } from './frame.ts'
import { field, moment, searchedList, table } from './parts.ts'

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
    Details: detailWords,
    Outcome: ({ outcome, status }) =>
      html`<span class="${outcome !== 'done' && 'bad'}">${outcome}</span>
        ${outcome !== 'done' && html`<small>${status}</small>`}`,
  })
}

const isNone = (value = ''): boolean => value === '' || value === 'null'

/** The parameters of an action in words. A flag is its name; a parameter that the target column shows is left out. */
function detailWords({ action, target, details: { what, pace, seconds, ...others } }: AuditRow): string {
  if (action === 'hosts') {
    if (what?.startsWith('stop') || pace === '0') return 'logins stopped'
    return what === 'free' || isNone(pace) ? 'logins as configured' : `at most ${pace} logins a minute`
  }
  if (action === 'retention') return isNone(seconds) ? 'as the environment says' : `kept for ${seconds} s`
  return Object.entries(others)
    .filter(([, value]) => !isNone(value) && value !== target)
    .map(([name, value]) => (operatorScopes.some((scope) => scope === name) ? name : `${name} ${value}`))
    .join(', ')
}
