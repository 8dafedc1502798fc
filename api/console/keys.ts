/** Developers and their API keys; the page of a developer: users, pending callbacks, brand; tokens of the admin API. */
import { z } from 'zod'
import { type Authenticated, type Engine, operatorScopes } from '../../engine/index.ts'
import type { AccountRow } from '../admin/accounts.ts'
import {
  brandBody,
  type DeveloperDetail,
  type DeveloperRow,
  developerOf,
  findDeveloper,
  listDevelopers,
  listTokens,
} from '../admin/keys.ts'
import { paging } from '../admin/shared.ts'
import { html, type Html } from '../html.ts'
import { filledText, flag } from '../values.ts'
import { action, confirmed, page, type Visit } from './frame.ts'
import { card, facts, keyState, link, moment, nameForm, nextWords, pager, pill, scrolling, shownOnce } from './parts.ts'
import { since, table } from './parts.ts'

const developersPath = '/console/developers'

const developers = page(developersPath, z.object(paging), async ({ values }, visit) => {
  const rows = await listDevelopers(visit.engine, values)
  const list = table(rows, 'There are none yet.', {
    Name: ({ id, name, api_key: key }) =>
      html`<a id="${id}" href="${developersPath}/${id}">${name || key}</a><br /><small><code>${id}</code></small>`,
    'API key': (row) => html`<code>${row.api_key}</code>`,
    Created: (row) => moment(row.created),
    Users: (row) => row.users,
    Accounts: (row) => html`<a href="${link('/console/accounts', { developer: row.id })}">${row.accounts}</a>`,
    Key: (row) => keyState(row.revoked),
    Actions: (row) => keyButtons(row, visit),
  })
  const pages = pager(developersPath, values, { shown: rows.length, total: null })
  const content = html`${card(null, html`${scrolling('Developers', list, 'wide')} ${pages}`)}
  ${nameForm('A new developer', developersPath, visit)}`
  return { title: 'Developers', content }
})

function keyButtons(
  { id, api_key: key, revoked, old_secret_until: until }: DeveloperRow,
  { form, engine }: Visit,
): Html {
  const at = `${developersPath}/${id}`
  const other =
    revoked === null
      ? html`<a class="button danger" href="${at}/revoke">Revoke</a>`
      : form(`${at}/restore`, html`<button>Restore</button>`)
  const old = form(`${at}/end-overlap`, html`<button class="danger">Revoke the old secret</button>`)
  const renew =
    key === engine.config.MAILROOM_API_KEY
      ? html`<small>secret of MAILROOM_API_SECRET</small>`
      : html`<a class="button" href="${at}/rotate">New secret</a>`
  return html`${renew} ${other}
  ${until !== null && html`<br /><small>old secret accepted until ${moment(until)}</small> ${old}`}`
}

const withSecret = (title: string, { developer, secret }: Authenticated) =>
  shownOnce(title, { 'API key': developer.apiKey, 'API secret': secret }, developersPath)

async function nameOf(engine: Engine, id: string): Promise<string> {
  const { name, apiKey } = await findDeveloper(engine, id)
  return `${name || 'the developer'} (API key ${apiKey})`
}

const developerActions = [
  action(developersPath, z.object({ name: filledText }), async ({ values }, { engine, call }) => {
    const made = await engine.developers.create(values.name)
    call.made(made.developer.id)
    return withSecret('A new developer', made)
  }),
  ...confirmed({
    path: `${developersPath}/{id}/rotate`,
    ...{ title: 'A new secret', button: 'Make a new secret' },
    async words(engine, id) {
      const hours = Math.round(engine.config.MAILROOM_API_SECRET_OVERLAP / 3_600_000)
      return `The secret of ${await nameOf(engine, id)} is replaced. The one of today is accepted for ${hours} more hours, unless it is revoked. Callbacks are signed with the new one at once.`
    },
    act: async (engine, id) => withSecret('A new secret', await engine.developers.rotate(id)),
  }),
  ...confirmed({
    path: `${developersPath}/{id}/revoke`,
    ...{ title: 'Revoke an API key', button: 'Revoke' },
    words: async (engine, id) =>
      `Calls of ${await nameOf(engine, id)} are refused at once, until the key is restored. Users and mail stay.`,
    async act(engine, id) {
      await engine.developers.setRevoked(id, true)
      return { to: developersPath, notice: 'The key is refused from now on.' }
    },
  }),
  action(`${developersPath}/{id}/end-overlap`, z.object({}), async ({ path }, { engine }) => {
    await engine.developers.endReplaced(path.id)
    return { to: developersPath, notice: 'The old secret is refused from now on.' }
  }),
  action(`${developersPath}/{id}/brand`, brandBody, async ({ path, values }, { engine }) => {
    await engine.developers.setBrand(path.id, values)
    return { to: `${developersPath}/${path.id}`, notice: 'The connect wizard shows it from now on.' }
  }),
  action(`${developersPath}/{id}/restore`, z.object({}), async ({ path }, { engine }) => {
    await engine.developers.setRevoked(path.id, false)
    return { to: developersPath, notice: 'The key is in force again.' }
  }),
]

const developer = page(`${developersPath}/{id}`, z.object(paging), async ({ path, values }, visit) => {
  const { engine, live, form } = visit
  const seen = await developerOf(engine, path.id, values)
  const at = `${developersPath}/${seen.id}`
  const pages = pager(at, values, { shown: seen.page.length, total: seen.users })
  const content = html`${card(null, how(seen))}
  ${card('Pending callbacks', scrolling('Pending callbacks', live('late', late(seen.late)), 'wide'))}
  ${card('Users', html`${scrolling('Users', live('users', users(seen.page)), 'wide')} ${pages}`)}
  ${card('Brand in the connect wizard', form(`${at}/brand`, brandFields(seen), 'row'))}`
  return { title: seen.name || 'Developer', content }
})

function brandFields({ brand }: DeveloperDetail): Html {
  return html`<label>Name <input name="name" value="${brand.name}" maxlength="100" /></label>
    <label>Logo <input type="url" name="logo" value="${brand.logo}" placeholder="https://" maxlength="1000" /></label>
    <label
      >Colour <input name="color" value="${brand.color}" placeholder="#2457d6" pattern="#[0-9a-fA-F]{6}" size="8"
    /></label>
    <button>Save</button>`
}

function how({ id, revoked, api_key: key, created, users: count, accounts }: DeveloperDetail): Html {
  return facts({
    Key: revoked === null ? pill('OK') : html`${pill('revoked')} ${moment(revoked)}: callbacks wait`,
    'API key': html`<code>${key}</code>`,
    Developer: html`<code>${id}</code>`,
    Created: moment(created),
    Users: count,
    Accounts: html`<a href="${link('/console/accounts', { developer: id })}">${accounts}</a>`,
    Webhooks: html`<a href="${link('/console/webhooks', { developer: id })}">all of its webhooks</a>`,
  })
}

function late(rows: DeveloperDetail['late']): Html {
  return table(rows, 'No callback is pending.', {
    Receiver: ({ id, callback_url: url }) => html`<a href="/console/webhooks/${id}">${url ?? id}</a>`,
    '#Pending': ({ pending }) => pending,
    Oldest: ({ oldest }) => (oldest === null ? null : since(oldest)),
    'Last failure': ({ message }) => message,
    Next: ({ next }) => nextWords(next),
  })
}

function users(rows: DeveloperDetail['page']): Html {
  return table(rows, 'There are none yet.', {
    User: ({ id, email }) => html`<a href="${link('/console/accounts', { user: id })}">${email ?? id}</a>`,
    'Email accounts': ({ accounts }) => html`${accounts.map(accountLine)}`,
  })
}

function accountLine({ id, email, condition, since: at }: AccountRow): Html {
  return html`<a href="/console/accounts/${id}">${email}</a> ${pill(condition)} ${since(at)}<br />`
}

const tokensPath = '/console/tokens'

const tokens = page(tokensPath, z.object(paging), async ({ values }, visit) => {
  const scopes = html`${operatorScopes.map(
    (scope) => html`<label class="check"><input type="checkbox" name="${scope}" value="1" />${scope}</label>`,
  )}`
  const rows = await listTokens(visit.engine, values)
  const list = table(rows, 'There are none yet.', {
    Name: ({ name, id }) => html`${name}<br /><small><code>${id}</code></small>`,
    Scopes: (row) => row.scopes.join(', '),
    Created: ({ created }) => moment(created),
    Token: ({ revoked }) => keyState(revoked),
    Actions: ({ id, revoked }) =>
      revoked === null ? html`<a class="button danger" href="${tokensPath}/${id}/revoke">Revoke</a>` : null,
  })
  const words =
    'Tokens of the admin API: read = look, act = accounts, webhooks and hosts, keys = developers and tokens.'
  const pages = pager(tokensPath, values, { shown: rows.length, total: null })
  const lists = html`${scrolling('Tokens', list, 'wide')} ${pages}
    <p class="soft"><small>${words}</small></p>`
  const content = html`${card(null, lists)} ${nameForm('A new token', tokensPath, visit, scopes)}`
  return { title: 'Tokens of the admin API', content }
})

const isOn = flag.optional()
const tokenBody = z.object({ name: filledText, read: isOn, act: isOn, keys: isOn })

const makeToken = action(tokensPath, tokenBody, async ({ values }, { engine, call }) => {
  const scopes = operatorScopes.filter((scope) => values[scope] === true)
  const { token, record } = await engine.operators.createToken(values.name, scopes)
  call.made(record.id)
  return shownOnce('A new token', { Token: token }, tokensPath)
})

const revokeToken = confirmed({
  path: `${tokensPath}/{id}/revoke`,
  ...{ title: 'Revoke a token', button: 'Revoke' },
  async words({ operators }, id) {
    return `The token ${(await operators.token(id)).name} is refused at once, for good.`
  },
  async act({ operators }, id) {
    await operators.revokeToken(id)
    return { to: tokensPath, notice: 'The token is refused from now on.' }
  },
})

export const keyRoutes = [developers, developer, ...developerActions, tokens, makeToken, ...revokeToken]
