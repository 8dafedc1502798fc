/** Mail servers: how their accounts and logins are; slow down, stop or free one. */
import { z } from 'zod'
import { adminHosts, setHostPace } from '../admin/hosts.ts'
import { html, type Html } from '../html.ts'
import { integer, text } from '../values.ts'
import { action, page, type Visit } from './frame.ts'
import { hosts as hostTable } from './overview.ts'
import { scrolling } from './parts.ts'

const path = '/console/hosts'

export const hosts = page(path, z.object({}), async (_input, visit) => {
  const rows = await adminHosts(visit.engine)
  const content = html`<section class="card">
      ${scrolling('Hosts', visit.live('hosts', hostTable(rows)), 'wide')}
    </section>
    ${rows.length > 0 && paceForms(rows, visit)}`
  return { title: 'Hosts', content }
})

function paceForms(rows: readonly { readonly host: string }[], { form }: Visit): Html {
  const choose = html`<label
    >Host
    <select name="host">
      ${rows.map(({ host }) => html`<option>${host}</option>`)}
    </select></label
  >`
  return html`<section class="card">
    <h2>Slow down, stop or free a host</h2>
    <p class="soft">Logins that are open stay. A stopped host gets no new logins until it is freed.</p>
    ${form(
      path,
      html`${choose}<label>Logins a minute <input type="number" name="pace" min="0" max="10000" value="10" /></label>
        <button name="what" value="slow">Slow down</button>
        <button name="what" value="stop" class="danger">Stop</button>
        <button name="what" value="free">Free</button>`,
      'row',
    )}
  </section>`
}

const body = z.object({ host: text, what: z.enum(['slow', 'stop', 'free']), pace: integer(0, 10_000).optional() })

export const paceAction = action(path, body, async ({ values: { host, what, pace } }, { engine }) => {
  const next = what === 'free' ? null : what === 'stop' ? 0 : (pace ?? 10)
  await setHostPace(engine, host, next)
  const words = next === null ? 'as configured again' : next === 0 ? 'stopped' : `at most ${next} a minute`
  return { to: path, notice: `Logins at ${host}: ${words}.` }
})
