/** The page of a message's trail; and the cards on the page of its account that lead there. */
import { webhookQuery, listWebhooks } from '../admin/webhooks.ts'
import { deliveryLog, logQuery } from '../admin/deliveries.ts'
import { findAccount } from '../admin/accounts.ts'
import { type Trail, type TrailMessage, trailOf, trailQuery } from '../admin/trail.ts'
import { html, type Html } from '../html.ts'
import { attempt, deliveryCard, request, verdictTable, waitWords } from './deliveries.ts'
import { page, type Visit } from './frame.ts'
import { card, facts, field, link, moment, named, pill, scrolling, searchForm, table } from './parts.ts'
import { webhookTable } from './webhooks.ts'

const pathOf = (account: string): string => `/console/accounts/${account}/trail`

export const trail = page('/console/accounts/{id}/trail', trailQuery, async ({ path: { id }, values }, visit) => {
  const { engine, call } = visit
  const { email } = await findAccount(engine, id)
  const seen = await trailOf(engine, id, call.signal, values.q)
  const { messages, known } = seen
  const [message, ...others] = messages
  const question = html`<p>Account: ${named(`/console/accounts/${id}`, email, id)}</p>
    ${searchFor(id, values.q)}`
  if (values.q !== undefined && message !== undefined && others.length === 0)
    return { title: titleOf(message), content: html`${card(null, question)} ${way(message, seen)}` }
  const list = card(values.q === undefined ? 'Newest messages' : 'Which one?', listOf(id, messages))
  const content = html`${card(null, question)} ${messages.length > 0 ? list : absent(known)}`
  return { title: whyAbsent, content }
})

const whyAbsent = 'Why did this mail not arrive?'
const titleOf = ({ subject }: TrailMessage): string => subject || '(no subject)'

function searchFor(id: string, q?: string): Html {
  return searchForm(pathOf(id), field('Message-ID, subject or message id', 'q', { q }, 'search'), 'Show its trail')
}

function listOf(id: string, rows: readonly TrailMessage[]): Html {
  const list = table(rows, '', {
    Subject: (one) => named(link(pathOf(id), { q: one.id }), titleOf(one), one.id),
    From: ({ from }) => from.join(', '),
    Received: ({ received }) => moment(received),
    Folders: ({ folders }) => folders.join(', '),
  })
  return scrolling('Messages', list, 'wide')
}

function absent(known: readonly string[]): Html {
  const words = html`<p>No message of this account has this id, Message-ID or subject. What is known of the account:</p>
    <ul>
      ${known.map((fact) => html`<li>${fact}</li>`)}
    </ul>`
  return card('It is not in the index', words)
}

function way(message: TrailMessage, { events, webhooks, more_webhooks: more, others }: Trail): Html {
  const { id, email_message_id: name, from, to, sent, received, indexed, folders } = message
  const came = facts({
    From: from.join(', '),
    To: to.join(', '),
    Sent: moment(sent),
    Received: moment(received),
    'In the index': moment(indexed),
    Folders: folders.length === 0 ? 'none: it was deleted or moved away' : folders.join(', '),
    'Message-ID': name === null ? null : html`<code>${name}</code>`,
    Message: html`<code>${id}</code>`,
  })
  const changes = table(events, 'No event is kept: it was there before the account, or the change log is past it.', {
    Event: ({ kind }) => kind,
    Folder: ({ folder }) => folder,
    Seen: ({ seen }) => moment(seen),
  })
  const none = html`<p>No webhook hears of this account.</p>`
  return html`${card('Received', html`${came} ${scrolling('Events', changes)}`)}
  ${webhooks.length + others.length === 0 ? card('Webhooks', none) : webhooks.map(ofWebhook)}
  ${more > 0 && card('More webhooks', html`<p>${more} more hear of this account.</p>`)}
  ${others.length > 0 && card('Callbacks of webhooks that are gone', html`${others.map(sentOne)}`)}`
}

function ofWebhook({ id, callback_url: url, active, matched, why, callbacks }: Trail['webhooks'][number]): Html {
  const verdict = matched ? pill('wanted', 'good') : pill('not wanted', '')
  const content = html`<h2>${named(`/console/webhooks/${id}`, url, id)}</h2>
    <p>${verdict}${!active && html` <small>The webhook is inactive.</small>`}</p>
    ${scrolling(`Why, by the filters of ${id}`, verdictTable(why))} ${callbacks.map(sentOne)}`
  return card(null, content)
}

function sentOne(one: Trail['others'][number]): Html {
  const { delivery_id: id, event, kind, state, waits, reason, attempts } = one
  return html`<h3>Callback ${named(`/console/deliveries/${id}`, event ?? kind, id)}</h3>
    <p>${pill(state)} ${reason} ${waits !== null && waitWords(waits)}</p>
    ${attempts.map(attempt)}
    <details>
      <summary>Request</summary>
      ${request(one)}
    </details>`
}

/** Cards of the account's page: the search for a trail, its webhooks, its last callbacks. */
export async function trailCards(id: string, { engine, live }: Visit): Promise<Html> {
  const { webhooks, total } = await listWebhooks(engine, webhookQuery.parse({ account: id, limit: 10 }))
  const { deliveries } = await deliveryLog(engine, logQuery.parse({ account: id, within: 30 * 86_400, limit: 10 }))
  const hooks = html`${webhookTable(webhooks)}
  ${total > webhooks.length && html`<p><a href="${link('/console/webhooks', { account: id })}">All ${total}</a></p>`}`
  return html`${card(whyAbsent, searchFor(id))}
  ${card('Webhooks', scrolling('Webhooks', live('webhooks', hooks), 'wide'))}
  ${deliveryCard('Last callbacks', deliveries, { account: id }, live)}`
}
