/** One email account: its chart, what it has done, its wire, and what an operator can do about it. */
import { z } from 'zod'
import { charts, type Engine } from '../../engine/index.ts'
import {
  checkAccount,
  pauseAccount,
  readFolderAnew,
  reconnectAccount,
  resumeAccount,
} from '../admin/account-actions.ts'
import { type AccountDetail, accountDetail } from '../admin/accounts.ts'
import { html, type Html } from '../html.ts'
import { filledText } from '../values.ts'
import { chartCard } from './chart.ts'
import { action, page, type Visit } from './frame.ts'
import { facts, instant, lasted, link, moment, nextWords, pill, plain, scrolling, since, table } from './parts.ts'

export const account = page('/console/accounts/{id}', z.object({}), async ({ path }, visit) => {
  const seen = await accountDetail(visit.engine, path.id)
  const { live } = visit
  const content = html`<section class="card">${live('how', how(seen))} ${buttons(seen.id, visit)}</section>
    <section class="card">
      <h2>Why</h2>
      ${live('why', why(seen.explain))}
    </section>
    ${chartCard(charts.account, seen.active, live)}
    <div class="halves">
      <section class="card">
        <h2>Steps, newest first</h2>
        ${scrolling('Steps', live('steps', steps(seen.steps)))}
      </section>
      <section class="card">
        <h2>Wire</h2>
        ${scrolling('Wire', live('wire', wire(seen.wire)), 'scroll tail')}
        ${seen.frozen !== null && frozen(seen.frozen)}
      </section>
      <section class="card">
        <h2>Folders</h2>
        ${scrolling('Folders', live('folders', folders(seen.folders)))} ${anew(seen, visit)}
      </section>
      <section class="card">
        <h2>Queues</h2>
        ${live('queues', queues(seen.queues))}
      </section>
    </div>`
  return { title: seen.email, content }
})

function how(seen: AccountDetail): Html {
  return facts([
    ['State', html`${pill(seen.state)} for ${since(seen.since)}`],
    ['Status', pill(seen.status)],
    ['Next', nextWords(seen.next, seen.attempt)],
    ['Failure', seen.failure === null ? null : html`<span class="bad">${seen.failure}</span>: ${seen.message}`],
    [
      'Server',
      html`<a href="${link('/console/accounts', { host: seen.server })}">${seen.server}</a
        >:${seen.port}${seen.use_ssl && ', TLS'}`,
    ],
    ['Login', html`${seen.username}, ${seen.auth_type}`],
    ['Label', html`<code>${seen.label}</code>`],
    ['Account', html`<code>${seen.id}</code>`],
    ['User', html`<a href="${link('/console/accounts', { user: seen.user_id })}"><code>${seen.user_id}</code></a>`],
    ['Developer', html`<a href="/console/developers#${seen.developer_id}"><code>${seen.developer_id}</code></a>`],
    ['Made', moment(seen.created)],
    ['Last connected', seen.last_connected === null ? plain('never') : html`${since(seen.last_connected)} ago`],
  ])
}

type Deed = (engine: Engine, id: string) => Promise<string>

/** By the name in the path: the words of the button, and what it does; answers what came of it. */
const deeds: Readonly<Record<string, readonly [words: string, act: Deed]>> = {
  reconnect: ['Reconnect', (engine, id) => reconnectAccount(engine, id).then(() => 'It connects again.')],
  check: ['Check status', checked],
  pause: ['Pause', (engine, id) => pauseAccount(engine, id).then(() => 'It is paused, until it is resumed.')],
  resume: ['Resume', (engine, id) => resumeAccount(engine, id).then(() => 'It goes on.')],
}

async function checked(engine: Engine, id: string): Promise<string> {
  const { success, message } = await checkAccount(engine, id)
  return success ? 'Its login was checked: it works.' : `Its login was checked: ${message ?? 'it failed'}.`
}

function buttons(id: string, { form }: Visit): Html {
  return html`<div>
    ${Object.entries(deeds).map(([name, [words]]) =>
      form(`/console/accounts/${id}/${name}`, html`<button>${words}</button>`),
    )}
  </div>`
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

export function steps(rows: AccountDetail['steps']): Html {
  return table(
    ['At (UTC)', 'What came', 'It led to', '#Stayed'],
    rows
      .toReversed()
      .map(({ at, event, state, ms }) => [
        instant(at),
        plain(event),
        pill(state),
        plain(ms === null ? '' : lasted(ms)),
      ]),
    'No step since the start.',
  )
}

function wire(lines: readonly string[]): Html {
  return lines.length === 0 ? html`<p class="soft">No line yet.</p>` : html`<pre class="box">${lines.join('\n')}</pre>`
}

function frozen({ at, failure, lines }: NonNullable<AccountDetail['frozen']>): Html {
  return html`<details>
    <summary>At the last failure (${failure}, ${moment(at)})</summary>
    ${scrolling('Wire at the last failure', wire(lines), 'scroll tail')}
  </details>`
}

function folders(rows: AccountDetail['folders']): Html {
  return table(
    ['Folder', '#Messages', '#Unseen', '#Read', 'Older mail'],
    rows.map(({ name, messages, indexed, unseen, complete }) => [
      plain(name),
      plain(messages),
      plain(unseen),
      plain(messages === 0 ? 'all' : `${Math.min(100, Math.floor((indexed / messages) * 100))} %`),
      complete ? html`<small>complete</small>` : html`<small>is being read</small>`,
    ]),
    'No folder is known yet.',
  )
}

function anew({ id, folders: rows }: AccountDetail, { form }: Visit): Html | null {
  if (rows.length === 0) return null
  const fields = html`<label
      >Folder
      <select name="folder">
        ${rows.map(({ name }) => html`<option value="${name}">${name}</option>`)}
      </select></label
    ><button>Read it anew</button>`
  return form(`/console/accounts/${id}/read-anew`, fields, 'row')
}

function queues(rows: AccountDetail['queues']): Html {
  return table(
    ['Queue', '#Running', '#Waiting'],
    rows.map(({ name, running, waiting }) => [plain(name), plain(running), plain(waiting)]),
    'Nothing runs and nothing waits.',
  )
}

const pageOf = (id: string): string => `/console/accounts/${id}`

export const accountActions = [
  ...Object.entries(deeds).map(([name, [, act]]) =>
    action(`/console/accounts/{id}/${name}`, z.object({}), async ({ path: { id } }, { engine }) => {
      return { to: pageOf(id), notice: await act(engine, id) }
    }),
  ),
  action('/console/accounts/{id}/read-anew', z.object({ folder: filledText }), async ({ path, values }, { engine }) => {
    await readFolderAnew(engine, path.id, values.folder)
    return { to: pageOf(path.id), notice: `${values.folder} is read anew.` }
  }),
]
