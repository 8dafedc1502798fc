/** The search of every page. A single exact match leads to its page; otherwise the matches are listed by kind. */
import { find, type Found, type FoundOfKind } from '../../engine/index.ts'
import { searchQuery } from '../admin/search.ts'
import { html, type Html } from '../html.ts'
import { page } from './frame.ts'
import { card, field, link, named, scrolling, searchForm, table } from './parts.ts'

const placeOf: Readonly<Record<Found['kind'], (one: Found) => string>> = {
  account: ({ id }) => `/console/accounts/${id}`,
  user: ({ id }) => link('/console/accounts', { user: id }),
  developer: ({ id }) => `/console/developers/${id}`,
  webhook: ({ id }) => `/console/webhooks/${id}`,
  callback: ({ id }) => `/console/deliveries/${id}`,
  message: ({ id, accountId }) => link(`/console/accounts/${accountId}/trail`, { q: id }),
}

export const search = page('/console/search', searchQuery, async ({ values }, { engine }) => {
  const kinds = await find(engine, values.q)
  const [meant, ...others] = kinds.flatMap(({ found }) => found.filter(({ exact }) => exact))
  if (meant !== undefined && others.length === 0) return { to: placeOf[meant.kind](meant) }
  const form = searchForm('/console/search', field('Search', 'q', values, 'search'), 'Search')
  const none = html`<p>Nothing matches. Of a mail that is not in the index, ask on the page of its account.</p>`
  const lists = kinds.length === 0 ? card(null, none) : kinds.map(listOf)
  return { title: 'Search', content: html`${card(null, form)} ${lists}` }
})

function listOf({ kind, found, more }: FoundOfKind): Html {
  const title = `${kind[0]?.toUpperCase()}${kind.slice(1)}s`
  const list = table(found, '', {
    Name: (one) => named(placeOf[kind](one), one.name, one.id),
    Details: ({ detail }) => detail,
  })
  const others = more === 0 ? '' : html`<p>${more} more match: search for more of the text.</p>`
  return card(title, html`${scrolling(title, list, 'wide')} ${others}`)
}
