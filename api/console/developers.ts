/** Developers and their API keys. A secret is shown once, in the answer that makes it. */
import { z } from 'zod'
import type { Authenticated } from '../../engine/index.ts'
import { listDevelopers } from '../admin/keys.ts'
import { html, type Html } from '../html.ts'
import { filledText, limitOf, offset } from '../values.ts'
import { action, page, type Visit } from './frame.ts'
import { link, moment, nameForm, pager, pill, plain, scrolling, shownOnce, table } from './parts.ts'

const developersPath = '/console/developers'
const nothing = z.object({})

export const developers = page(
  developersPath,
  z.object({ limit: limitOf(50, 200), offset }),
  async ({ values }, visit) => {
    const rows = await listDevelopers(visit.engine, values)
    const content = html`<section class="card">
        ${scrolling(
          'Developers',
          table(
            ['Name', 'API key', 'Made', 'Users', 'Accounts', 'Key', 'What can be done'],
            rows.map((row) => [
              html`<span id="${row.id}">${row.name}</span><br /><small><code>${row.id}</code></small>`,
              html`<code>${row.api_key}</code>`,
              moment(row.created),
              plain(row.users),
              html`<a href="${link('/console/accounts', { developer: row.id })}">${row.accounts}</a>`,
              row.revoked === null ? pill('OK') : html`${pill('revoked')}<br /><small>${moment(row.revoked)}</small>`,
              developerButtons(row, visit),
            ]),
            'There are none yet.',
          ),
          'wide',
        )}
        ${pager({ ...values, count: null, shown: rows.length, at: (from) => link(developersPath, { offset: from }) })}
      </section>
      ${nameForm('A new developer', developersPath, visit)}`
    return { title: 'Developers', content }
  },
)

function developerButtons(
  { id, revoked }: { readonly id: string; readonly revoked: number | null },
  { form }: Visit,
): Html {
  const button = (name: string, words: string, kind = '') =>
    form(`${developersPath}/${id}/${name}`, html`<button class="${kind}">${words}</button>`)
  return html`${button('rotate', 'New secret')}
  ${revoked === null ? button('revoke', 'Revoke', 'danger') : button('restore', 'Restore')}`
}

const withSecret = (title: string, { developer, secret }: Authenticated) =>
  shownOnce(
    title,
    [
      ['API key', developer.apiKey],
      ['API secret', secret],
    ],
    developersPath,
  )

export const developerActions = [
  action(developersPath, z.object({ name: filledText }), async ({ values }, { engine }) =>
    withSecret('A new developer', await engine.developers.create(values.name)),
  ),
  action(`${developersPath}/{id}/rotate`, nothing, async ({ path }, { engine }) =>
    withSecret('A new secret', await engine.developers.rotate(path.id)),
  ),
  action(`${developersPath}/{id}/revoke`, nothing, async ({ path }, { engine }) => {
    await engine.developers.setRevoked(path.id, true)
    return { to: developersPath, notice: 'The key is refused from now on.' }
  }),
  action(`${developersPath}/{id}/restore`, nothing, async ({ path }, { engine }) => {
    await engine.developers.setRevoked(path.id, false)
    return { to: developersPath, notice: 'The key is in force again.' }
  }),
]
