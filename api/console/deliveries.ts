/** The delivery log over all webhooks, the page of a callback, and sending callbacks again. */
import { z } from 'zod'
import {
  type DeliveryDetail,
  deliveryLog,
  type DeliveryLog,
  deliveryOf,
  type DeliveryRow,
  type LogFilters,
  logFilters,
  logQuery,
  redeliver,
  resendFailed,
  type SentCallback,
  usualSeconds,
} from '../admin/deliveries.ts'
import { html, type Html } from '../html.ts'
import { deliveryStates } from '../lite/webhooks/schema.ts'
import { action, page, question, type Visit } from './frame.ts'
import { card, developerFilter, developerLink, facts, field, lasted, link, moment, named, pill } from './parts.ts'
import { ordinal, receiver, scrolling, searchedList, select, stackedBars, table, until } from './parts.ts'

const logPath = '/console/deliveries'

const times = Object.entries({
  'last hour': '3600',
  'last day': '86400',
  'last 7 days': '604800',
  'last 30 days': '2592000',
})

const deliveries = page(logPath, logQuery, async ({ values }, visit) => {
  const log = await deliveryLog(visit.engine, values)
  const { deliveries: rows, failed, silent } = log
  const filters = html`${field('Message or callback id, or subject among the newest 2,000', 'q', values, 'search')}
  ${field('Account: address or id', 'account', values)} ${field('Webhook: URL or id', 'webhook', values)}
  ${select('State', 'state', deliveryStates, values)} ${await developerFilter(visit, values)}
  ${select('Time', 'within', times, { within: lengthOf(values) })}`
  const list = html`${stackedBars(log)} ${progress(log, values)} ${deliveryTable(rows)}`
  const more = failed > 0 ? resendCard(log, values) : null
  const counted = { shown: rows.length, total: null, silent }
  return searchedList({ title: 'Deliveries', values, filters, list, ...counted, more }, visit)
})

/** The time filter as a number of seconds until now; undefined = the time begins at `from`. */
function lengthOf({ from, within }: LogFilters): number | undefined {
  return from === undefined ? (within ?? usualSeconds) : undefined
}

/** A resending that is done is shown for an hour after its start. */
const shownSeconds = 3600

function progress({ resending: last }: DeliveryLog, values: LogFilters): Html | null {
  if (last === null || (last.done && last.started < Date.now() / 1000 - shownSeconds)) return null
  const { queued, total, done, reason, started } = last
  const words = done ? 'were queued again' : 'are queued again so far'
  const all = values.state && html`<a href="${backTo({ ...values, state: undefined })}">In all states</a>`
  return html`<p class="note">
    Failed callbacks, since ${moment(started)}: ${queued} of ${total} ${words}${reason !== null && `: ${reason}`}.
    ${all}
    <progress max="${Math.max(1, total)}" value="${queued}" aria-label="Queued again"></progress>
  </p>`
}

const resendPath = `${logPath}/redeliver`

function parametersOf({ developer, account, webhook, state, q, within, from, until: end }: LogFilters) {
  return { developer, account, webhook, state, q, within, from: from && from / 1000, until: end && end / 1000 }
}

/** Address of the log with these filters. The time of `within` ends now again. */
function backTo(values: LogFilters): string {
  const time = values.within === undefined ? {} : { from: undefined, until: undefined }
  return link(logPath, { ...parametersOf(values), ...time })
}

/** The link has the time that the page shows, however long the page stays open. */
function resendCard({ from, until: end, failed }: DeliveryLog, values: LogFilters): Html {
  const to = link(resendPath, { ...parametersOf(values), within: lengthOf(values), from, until: end })
  const button = html`<a class="button danger" href="${to}">Send all failed again: ${failed}</a>`
  return card('Failed callbacks', button)
}

const resendQuestion = page(resendPath, logFilters, async ({ values }, { engine, form }) => {
  const { failed } = await deliveryLog(engine, { ...values, limit: 1, offset: 0 })
  const fields = Object.entries(parametersOf(values)).filter(([, value]) => value !== undefined)
  const hidden = fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)
  const words = `All ${failed} that match are queued again: messages alone, oldest first, under the ids they had; at most 10,000 at a time. Paused webhooks get none.`
  const send = form(resendPath, html`${hidden}<button class="danger">Send ${failed} again</button>`)
  return question('Send failed callbacks again', words, send, backTo(values))
})

const resendAction = action(resendPath, logFilters, async ({ values }, { engine }) => {
  await resendFailed(engine, values)
  return { to: backTo(values), notice: 'The failed callbacks are sent again.' }
})

function deliveryTable(rows: readonly DeliveryRow[]): Html {
  return table(rows, 'No callback matches.', {
    // The subject of the message, or the event of a callback about none.
    Callback: ({ delivery_id: id, subject, event, kind }) => {
      const title = subject === null ? (event ?? kind) : subject || '(no subject)'
      return html`<a class="words" href="/console/deliveries/${id}">${title}</a>`
    },
    Event: (row) => row.event ?? row.kind,
    State: (row) => pill(row.state),
    Receiver: (row) => receiver(row.webhook_id, row.url, row.owner),
    Mailbox: ({ mailbox, email_account: id }) => (id === null ? null : named(`/console/accounts/${id}`, mailbox, id)),
    Created: (row) => moment(row.created),
    'Duration, or wait': ({ took_ms: took, waits }) => (took === null ? waitWords(waits) : lasted(took)),
    '#Attempts': (row) => row.attempt_count,
    'Last response': ({ reason, attempts }) =>
      reason === null ? outcomeOf(attempts.at(-1)) : html`<small>${reason}</small>`,
  })
}

/** Some callbacks, with a link to the log. `of`: the filter of the log that shows all of them. */
export function deliveryCard(
  title: string,
  rows: readonly DeliveryRow[],
  of: Readonly<Record<string, string>>,
  live: Visit['live'],
): Html {
  const list = scrolling(title, live('deliveries', deliveryTable(rows)), 'wide')
  const all = html`<a href="${link(logPath, { ...of, within: 2_592_000 })}">All callbacks, by state and time</a>`
  return card(title, html`${list} ${all}`)
}

export function waitWords(waits: DeliveryRow['waits']): Html | null {
  if (waits === null) return null
  const { behind, callback: id, until: at } = waits
  const when = at === null ? null : until(at)
  if (behind === 'receiver') return html`behind the failing receiver: one callback is tried ${when ?? 'now'}`
  if (behind === 'turn') return html`is sent in its turn`
  if (id === null) return html`next attempt ${when}`
  return html`behind <a href="/console/deliveries/${id}">an earlier callback</a> of its email account: next attempt
    ${when}`
}

type Attempt = DeliveryRow['attempts'][number]

function outcomeOf(attempt: Attempt | undefined): string | null {
  return attempt === undefined ? null : (attempt.error ?? String(attempt.status_code))
}

const delivery = page('/console/deliveries/{id}', z.object({}), async ({ path }, { engine, call, form }) => {
  const seen = await deliveryOf(engine, path.id, call.signal)
  const again = form(`${logPath}/${path.id}/redeliver`, html`<button>Send it again</button>`)
  const kept = html`<details>
    <summary>What is kept of the event</summary>
    <pre class="box">${JSON.stringify(seen.data, null, 2)}</pre>
  </details>`
  const content = html`${card(null, html`${deliveryFacts(seen)} ${again}`)}
  ${card('Why it matched', verdictTable(seen.why))}
  ${seen.attempts.length > 0 && card('Attempts, newest first', html`${seen.attempts.toReversed().map(attempt)}`)}
  ${card('Request', html`${request(seen)} ${kept}`)}`
  return { title: 'Callback', content }
})

export function request({ delivery_id: id, request: sent }: Pick<SentCallback, 'delivery_id' | 'request'>): Html {
  const { method, url, headers, body, why_no_body: why } = sent
  const lines = [
    `${method} ${url ?? '(no URL)'}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : ['', JSON.stringify(body, null, 2)]),
  ]
  const words = 'Made anew of what the index has now, without texts of the mail; signatures are made at each attempt.'
  return html`<p class="soft"><small>${words}</small></p>
    ${scrolling(`Request of ${id}`, html`<pre class="box">${lines.join('\n')}</pre>`)}
    ${why !== null && html`<p>There is no body to show: ${why}.</p>`}`
}

function deliveryFacts(seen: DeliveryDetail): Html {
  const { due, channel_id: channel, webhook_id: webhookId, email_account: accountId, message_id: messageId } = seen
  const trail = (q: string): string => link(`/console/accounts/${accountId}/trail`, { q })
  return facts({
    State: html`${pill(seen.state)}${seen.reason !== null && html` ${seen.reason}`}`,
    Event: seen.event ?? seen.kind,
    Next: seen.waits === null ? null : html`${waitWords(seen.waits)}, ${ordinal(seen.attempt_count + 1)} try`,
    Receiver: receiver(webhookId, seen.url, seen.owner),
    Created: moment(seen.created),
    Finished: seen.finished === null ? null : moment(seen.finished),
    Callback: html`<code>${seen.delivery_id}</code>`,
    Queue:
      due === null || channel === webhookId
        ? null
        : html`<a href="/console/webhooks/${channel}">the callbacks to this URL</a>`,
    Developer: developerLink(seen.developer_id, seen.developer_name),
    Account: accountId === null ? null : named(`/console/accounts/${accountId}`, seen.mailbox, accountId),
    Message: messageId === null ? null : named(trail(messageId), seen.subject, messageId),
  })
}

export function verdictTable(rows: DeliveryDetail['why']): Html {
  return table(rows, 'It is no callback of a message: no filter was asked.', {
    Filter: ({ filter }) => html`<code>${filter}</code>`,
    Matched: ({ matched }) => (matched ? 'yes' : 'no'),
    Why: ({ why }) => why,
  })
}

export function attempt(one: Attempt): Html {
  return html`<h3>${moment(one.timestamp)}: ${outcomeOf(one)}, after ${lasted(one.duration_ms)}</h3>
    ${one.response !== null && one.response !== '' && html`<pre class="box">${one.response}</pre>`}`
}

const redeliverAction = action(`${logPath}/{id}/redeliver`, z.object({}), async ({ path }, { engine }) => {
  const isQueued = (await redeliver(engine, path.id)) > 0
  const notice = isQueued ? 'It is sent again, under the same webhook-id.' : 'It is on its way already.'
  return { to: `${logPath}/${path.id}`, notice }
})

export const deliveryRoutes = [deliveries, delivery, redeliverAction, resendQuestion, resendAction]
