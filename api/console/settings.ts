/** Settings that operators change: the pace of logins at a mail server, and how long data is kept. */
import { z } from 'zod'
import { keptNames } from '../../engine/index.ts'
import { adminHosts, hostQuery, type HostRow, mostPace, setHostPace } from '../admin/hosts.ts'
import { keptSeconds, retentionOf } from '../admin/store.ts'
import { html, type Html } from '../html.ts'
import { choice, filledText, integer } from '../values.ts'
import { action, page, question, type Visit } from './frame.ts'
import { card, choose, field, formCard, link, scrolling, searchedList, since, table, toneOf } from './parts.ts'

const hostsPath = '/console/hosts'

const hosts = page(hostsPath, hostQuery, async ({ values }, visit) => {
  const { hosts: rows, total, silent } = await adminHosts(visit.engine, values)
  const filters = field('Host name', 'q', values, 'search')
  const more = rows.length > 0 ? paceForm(rows, visit) : null
  const list = hostTable(rows)
  return searchedList({ title: 'Hosts', values, filters, list, shown: rows.length, total, silent, more }, visit)
})

export function hostTable(rows: readonly HostRow[]): Html {
  return table(rows, 'There are none.', {
    Host: ({ host }) => html`<a href="${link('/console/accounts', { host })}">${host}</a>`,
    '#Accounts': (row) => row.accounts,
    'By state': (row) => counts(row.states),
    'Down for': (row) => (row.since === null ? null : since(row.since)),
    'Logins in the last minute': (row) => counts(row.logins),
    'Login limit': (row) => paceWords(row.pace),
  })
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

function paceForm(rows: readonly HostRow[], { form }: Visit): Html {
  const names = rows.map(({ host }) => host)
  const fields = html`${choose('Host', 'host', [['choose a host', ''], ...names])}<label
      >Logins a minute <input type="number" name="pace" min="0" max="${mostPace}" value="10"
    /></label>
    <button name="what" value="slow">Slow down</button>
    <button name="what" value="stop" class="danger">Stop</button>
    <button name="what" value="free">Free</button>`
  const words = 'Logins that are open stay. A stopped host gets no new logins until it is freed.'
  return formCard('Limit, stop or free logins at a host', words, form(hostsPath, fields, 'row'))
}

const paceBody = z.object({
  host: filledText,
  what: z.enum(['slow', 'stop', 'free', 'stop now']),
  pace: integer(0, mostPace).optional(),
})

const paceAction = action(hostsPath, paceBody, async ({ values }, { engine, form, call }) => {
  const { host, what, pace = 10 } = values
  if (what === 'stop') {
    call.actsAs(null)
    const words = `No account at ${host} logs in again until the host is freed. Logins that are open stay.`
    const button = html`<button name="what" value="stop now" class="danger">Stop logins at ${host}</button>`
    const stop = form(hostsPath, html`<input type="hidden" name="host" value="${host}" />${button}`)
    return question('Stop logins', words, stop, hostsPath)
  }
  const next = { free: null, 'stop now': 0, slow: pace }[what]
  await setHostPace(engine, host, next)
  const words = next === null ? 'as configured again' : next === 0 ? 'stopped' : `at most ${next} a minute`
  return { to: hostsPath, notice: `Logins at ${host}: ${words}.` }
})

const retentionPath = '/console/retention'
const daySeconds = 86_400

const retention = page(retentionPath, z.object({}), (_input, { engine, form }) => {
  const list = table(retentionOf(engine), '', {
    Data: ({ what }) => what,
    'Kept for': ({ seconds }) => (seconds % daySeconds === 0 ? `${seconds / daySeconds} days` : `${seconds} s`),
    'Set by': ({ set, setting }) =>
      set ? html`an operator; <code>${setting}</code> does not count` : html`<code>${setting}</code>`,
  })
  const fields = html`${choose('Data', 'what', keptNames)}
    <label>Seconds <input type="number" name="seconds" min="60" placeholder="as the environment says" /></label>
    <button class="danger">Set</button>`
  const words =
    'What is older goes for good, in steps every ten minutes. The time of deliveries holds for callbacks that wait for ' +
    'a receiver that is away, too: those that wait for longer are given up. A day has 86400 seconds.'
  const content = html`${card(null, scrolling('Retention', list, 'wide'))}
  ${formCard('Change a retention time', words, form(retentionPath, fields, 'row'))}`
  return Promise.resolve({ title: 'Retention', content })
})

const retentionBody = z.object({ what: choice(keptNames), seconds: keptSeconds })

const setRetention = action(retentionPath, retentionBody, async ({ values: { what, seconds } }, { engine }) => {
  await engine.settings.keep(what, seconds === null ? null : seconds * 1000)
  const words = seconds === null ? 'as the environment says' : `for ${seconds} s`
  return { to: retentionPath, notice: `${what}: kept ${words}.` }
})

export const settingRoutes = [hosts, paceAction, retention, setRetention]
