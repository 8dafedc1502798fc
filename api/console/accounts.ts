/** The list of email accounts, and the page of an account: state, chart, steps, wire, folders, and actions on it. */
import { z } from 'zod'
import { conditions, drawings, type Engine, failureClasses, sentence, shownStates } from '../../engine/index.ts'
import { type AccountDetail, accountDetail, type LineRow, readFolderAnew, reconnectLink } from '../admin/account.ts'
import { accountQuery, findAccount, listAccounts } from '../admin/accounts.ts'
import { html, type Html } from '../html.ts'
import { filledText } from '../values.ts'
import { chartCard } from './chart.ts'
import { action, page, type Visit } from './frame.ts'
import { trailCards } from './trail.ts'
import { card, choose, developerFilter, developerLink, facts, field, link, moment, named, nextWords } from './parts.ts'
import { pill, scrolling, searchedList, select, shownOnce, since, steps, strip, table } from './parts.ts'

const ages = Object.entries({ 'a minute': '60', '10 minutes': '600', 'an hour': '3600', 'a day': '86400' })

const pageOf = (id: string): string => `/console/accounts/${id}`

const accounts = page('/console/accounts', accountQuery, async ({ values }, visit) => {
  const { accounts: rows, total, silent } = await listAccounts(visit.engine, values)
  const filters = html`${field('Address, label or id', 'q', values, 'search')}
  ${select('Status', 'condition', conditions, values)} ${select('State', 'state', shownStates.account, values)}
  ${select('API status', 'status', ['OK', 'DISABLED'], values)} ${field('Host', 'host', values)}
  ${field('User id', 'user', values)} ${await developerFilter(visit, values)}
  ${select('Failure', 'failure', failureClasses, values)} ${select('Minimum duration', 'older_than', ages, values)}`
  const list = table(rows, 'No account matches.', {
    Account: (row) => html`<a href="${pageOf(row.id)}">${row.email}</a>`,
    Status: (row) => pill(row.condition),
    Duration: (row) => since(row.since),
    State: (row) => pill(row.state),
    Host: (row) => html`<a href="${link('/console/accounts', { host: row.server })}">${row.server}</a>`,
    Failure: ({ failure, message }) =>
      failure === null
        ? null
        : html`<a href="${link('/console/accounts', { failure })}">${failure}</a> <br /><small>${message}</small>`,
    Next: (row) => nextWords(row.next, row.attempt),
  })
  return searchedList({ title: 'Accounts', values, filters, list, shown: rows.length, total, silent }, visit)
})

const account = page('/console/accounts/{id}', z.object({}), async ({ path }, visit) => {
  const seen = await accountDetail(visit.engine, path.id)
  const { live } = visit
  const content = html`${card(null, html`${live('how', how(seen))} ${buttons(seen, visit)}`)}
    ${card('Why', live('why', why(seen.explain)))} ${await trailCards(path.id, visit)}
    ${chartCard(`State chart of ${seen.email}`, drawings.account, seen, live)}
    ${card('The last steps', live('strip', strip(seen.steps)))} ${live('quarantine', quarantine(seen, visit))}
    <div class="halves">
      ${card('Steps, newest first', scrolling('Steps', live('steps', steps(seen.steps))))}
      ${card('Wire (UTC), with the steps', html`${scrolling('Wire', live('wire', wire(seen.wire)), 'scroll tail')} ${frozen(seen.frozen, live)}`)}
      ${card('Folders', html`${scrolling('Folders', live('folders', folders(seen.folders)))} ${anew(seen, visit)}`)}
      ${card('Queues', live('queues', queues(seen.queues)))}
    </div>`
  return { title: seen.email, content }
})

function how(seen: AccountDetail): Html {
  const host = html`<a href="${link('/console/accounts', { host: seen.server })}">${seen.server}</a>`
  return facts({
    Status: html`${pill(seen.condition)} for ${since(seen.since)}`,
    State: html`${pill(seen.state)} for ${since(seen.state_since)}`,
    'API status': pill(seen.status),
    Next: nextWords(seen.next, seen.attempt),
    Failure: seen.failure === null ? null : html`<span class="bad">${seen.failure}</span>: ${seen.message}`,
    Server: html`${host}:${seen.port}${seen.use_ssl && ', TLS'}`,
    'User name': `${seen.username}, ${seen.auth_type}`,
    Label: html`<code>${seen.label}</code>`,
    Account: html`<code>${seen.id}</code>`,
    User: named(link('/console/accounts', { user: seen.user_id }), seen.user_name, seen.user_id),
    Developer: developerLink(seen.developer_id, seen.developer_name),
    Audit: html`<a href="${link('/console/audit', { target: seen.id })}">Actions of operators</a>`,
    Created: moment(seen.created),
    'Last connected': seen.last_connected === null ? 'never' : html`${since(seen.last_connected)} ago`,
  })
}

/** Button and notice of each operation; the name is that of the engine's command and of the last part of the path. */
const operations = {
  reconnect: ['Reconnect', 'It connects again.'],
  check: ['Check status'],
  pause: ['Pause', 'It is paused, until it is resumed.'],
  resume: ['Resume', 'It goes on.'],
} as const
type Operation = keyof typeof operations
const names = Object.keys(operations) as Operation[]

/** Returns the notice. */
async function operate({ accounts }: Engine, name: Operation, id: string): Promise<string> {
  if (name !== 'check') return accounts[name](id).then(() => operations[name][1])
  const { failure } = await accounts.checkNow(id)
  return sentence(`Its login was checked: ${failure === null ? 'it works' : failure.message}`)
}

function buttons({ id, status, paused }: AccountDetail, { form }: Visit): Html {
  const other = paused ? 'pause' : 'resume'
  const all = names
    .filter((name) => name !== other)
    .map((name) => form(`${pageOf(id)}/${name}`, html`<button>${operations[name][0]}</button>`))
  const link = form(`${pageOf(id)}/link`, html`<button>Make a reconnect link</button>`)
  return html`<div>${all} ${status === 'DISABLED' && link}</div>`
}

function why({ why: words, since: at, next, would_change: changes }: AccountDetail['explain']): Html {
  return html`<p>${words} <span class="soft">For ${since(at)}.</span></p>
    <p>${next}</p>
    ${
      changes.length > 0 &&
      html`<h3>What would change it</h3>
        <ul>
          ${changes.map((one) => html`<li>${one}</li>`)}
        </ul>`
    }`
}

/** Lines of the connections, with the number of the connection, and between them the steps of the actor. */
function wire(lines: readonly LineRow[]): Html {
  if (lines.length === 0) return html`<p class="soft">No line yet.</p>`
  const rows = lines.map(({ at, connection, line }) => {
    const from = connection === null ? '' : `#${connection}`
    return html`<li class="${connection === null ? 'step' : `c${connection % 4}`}">
      <time>${new Date(at * 1000).toISOString().slice(11, 23)}</time><b>${from}</b><span>${line}</span>
    </li>`
  })
  return html`<ol class="wire">
    ${rows}
  </ol>`
}

/** The live parts are inside of <details>: an update does not close it. */
function frozen(seen: AccountDetail['frozen'], live: Visit['live']): Html {
  const from = seen?.connection === null ? '' : `, connection #${seen?.connection}`
  const words = seen === null ? html`none yet` : html`${seen.failure}, ${moment(seen.at)}${from}`
  return html`<details>
    <summary>At the last failure: ${live('frozen-at', words, 'span')}</summary>
    ${scrolling('Wire at the last failure', live('frozen', wire(seen?.lines ?? [])), 'scroll tail')}
  </details>`
}

function folders(rows: AccountDetail['folders']): Html {
  return table(rows, 'No folder is known yet.', {
    Folder: ({ name }) => name,
    '#Messages': ({ messages }) => messages,
    '#Unseen': ({ unseen }) => unseen,
    '#Indexed': ({ messages, indexed }) =>
      messages === 0 ? 'all' : `${Math.min(100, Math.floor((indexed / messages) * 100))} %`,
    'Older mail': ({ complete }) => html`<small>${complete ? 'complete' : 'is being read'}</small>`,
  })
}

function quarantine({ id, explain }: AccountDetail, { form }: Visit): Html {
  const rows = explain.quarantined
  if (rows.length === 0) return html``
  const list = table(rows, '', {
    Folder: ({ folder }) => folder,
    '#UID': ({ uid }) => uid,
    'What the mail server said': ({ reason }) => reason,
    'Next try': ({ next_try: at }) => moment(at),
  })
  const again = [...new Set(rows.map(({ folder }) => folder))].map((folder) => {
    const button = html`<button name="folder" value="${folder}">Try those in ${folder} again</button>`
    return form(`${pageOf(id)}/read-anew`, button)
  })
  return card('Messages that the mail server does not give', html`${scrolling('Quarantine', list)} ${again}`)
}

function anew({ id, folders: rows }: AccountDetail, { form }: Visit): Html | null {
  if (rows.length === 0) return null
  const folders = rows.map(({ name }) => name)
  const fields = html`${choose('Folder', 'folder', folders)}<button>Compare again</button>`
  return form(`${pageOf(id)}/read-anew`, fields, 'row')
}

function queues(rows: AccountDetail['queues']): Html {
  return table(rows, 'All queues are empty.', {
    Queue: ({ name }) => name,
    '#Running': ({ running }) => running,
    '#Pending': ({ waiting }) => waiting,
  })
}

export const accountRoutes = [
  accounts,
  account,
  ...names.map((name) =>
    action(`/console/accounts/{id}/${name}`, z.object({}), async ({ path: { id } }, { engine }) => {
      return { to: pageOf(id), notice: await operate(engine, name, id) }
    }),
  ),
  action('/console/accounts/{id}/link', z.object({}), async ({ path: { id } }, { engine }) => {
    const account = await findAccount(engine, id)
    const { url } = await reconnectLink(engine, account)
    return shownOnce('A reconnect link', { [`For ${account.email}, 24 hours`]: url }, pageOf(id))
  }),
  action('/console/accounts/{id}/read-anew', z.object({ folder: filledText }), async ({ path, values }, { engine }) => {
    await readFolderAnew(engine, path.id, values.folder)
    return { to: pageOf(path.id), notice: `${values.folder} is compared again.` }
  }),
]
