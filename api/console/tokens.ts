/** Tokens of the admin API: made, shown once, revoked. */
import { z } from 'zod'
import { type OperatorScope, operatorScopes } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { html } from '../html.ts'
import { filledText, flag } from '../values.ts'
import { action, page } from './frame.ts'
import { moment, nameForm, pill, plain, scrolling, shownOnce, table } from './parts.ts'

const tokensPath = '/console/tokens'
const nothing = z.object({})

export const tokens = page(tokensPath, nothing, async (_input, visit) => {
  const rows = await visit.engine.operators.tokens()
  const scopes = html`${operatorScopes.map(
    (scope) => html`<label class="check"><input type="checkbox" name="${scope}" value="1" />${scope}</label>`,
  )}`
  const content = html`<section class="card">
      ${scrolling(
        'Tokens',
        table(
          ['Name', 'Scopes', 'Made', 'Token', 'What can be done'],
          rows.map(({ id, name, scopes: held, createdAt, revokedAt }) => [
            html`${name}<br /><small><code>${id}</code></small>`,
            plain(held.join(', ')),
            moment(seconds(createdAt)),
            revokedAt === null
              ? pill('OK')
              : html`${pill('revoked')}<br /><small>${moment(seconds(revokedAt))}</small>`,
            revokedAt === null
              ? visit.form(`${tokensPath}/${id}/revoke`, html`<button class="danger">Revoke</button>`)
              : html``,
          ]),
          'There are none yet.',
        ),
        'wide',
      )}
      <p class="soft">
        <small
          >Tokens of the admin API: read = look, act = accounts, webhooks and hosts, keys = developers and
          tokens.</small
        >
      </p>
    </section>
    ${nameForm('A new token', tokensPath, visit, scopes)}`
  return { title: 'Tokens of the admin API', content }
})

const tokenBody = z.object({
  name: filledText,
  read: flag.optional(),
  act: flag.optional(),
  keys: flag.optional(),
})

export const tokenActions = [
  action(tokensPath, tokenBody, async ({ values }, { engine }) => {
    const scopes: OperatorScope[] = operatorScopes.filter((scope) => values[scope] === true)
    const { token } = await engine.operators.createToken(values.name, scopes)
    return shownOnce('A new token', [['Token', token]], tokensPath)
  }),
  action(`${tokensPath}/{id}/revoke`, nothing, async ({ path }, { engine }) => {
    await engine.operators.revokeToken(path.id)
    return { to: tokensPath, notice: 'The token is refused from now on.' }
  }),
]
