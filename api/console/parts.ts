/** Building blocks of the console's pages: times, states, tables, filters of lists, small charts, steps of an actor. */
import { nameOfDeveloper, utc } from '../../engine/index.ts'
import type { DeliveryLog } from '../admin/deliveries.ts'
import type { StepRow } from '../admin/shared.ts'
import { html, Html } from '../html.ts'
import type { Visit } from './frame.ts'
import type { Shown } from './look.ts'

/** A countdown, which runs in the browser. Times in this file are Unix timestamps in seconds. */
export function until(at: number): Html {
  return html`<time datetime="${iso(at)}" data-until="${at}">${clock(at)}</time>`
}

/** The time that has passed since `at`: it counts up in the browser. */
export function since(at: number): Html {
  return html`<time datetime="${iso(at)}" title="${clock(at)}" data-since="${at}">since ${clock(at)}</time>`
}

export function moment(at: number): Html {
  return html`<time datetime="${iso(at)}">${clock(at)}</time>`
}

const iso = (at: number): string => new Date(at * 1000).toISOString()
const clock = (at: number): string => utc(at * 1000)
const clockWithMs = (at: number): string => iso(at).slice(0, 23).replace('T', ' ')

/** A duration: 350 ms, 1.2 s, 3 min 20 s, 5 h 2 min. */
export function lasted(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = Math.floor(ms / 1000)
  if (seconds < 60) return `${(ms / 1000).toFixed(1)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? '' : ` ${seconds % 60} s`}`
  const minutes = Math.floor((seconds % 3600) / 60)
  return `${Math.floor(seconds / 3600)} h${minutes === 0 ? '' : ` ${minutes} min`}`
}

const tones = {
  good: 'up watching OK delivered',
  busy: 'syncing connecting queued draining probing pending',
  bad: 'down waiting throttled disabled DISABLED dead resting recovering failing failed revoked',
}

export function toneOf(state: string): string {
  return Object.entries(tones).find(([, states]) => states.split(' ').includes(state))?.[0] ?? ''
}

export function pill(state: string, tone = toneOf(state)): Html {
  return html`<span class="pill ${tone}">${state}</span>`
}

/** The state of an API key or a token. `revoked`: when it was revoked; null = it is in force. */
export function keyState(revoked: number | null): Html {
  return revoked === null ? pill('OK') : html`${pill('revoked')}<br /><small>${moment(revoked)}</small>`
}

/** Content of a cell or of a fact; null = the cell is empty, the fact is left out. */
type Content = Html | string | number | null

/** The cells of each column, by its heading; the heading of a column of numbers begins with #. */
type Columns<T> = Readonly<Record<string, (row: T) => Content>>

export function table<T>(rows: readonly T[], none: string, columns: Columns<T>): Html {
  if (rows.length === 0) return html`<p class="soft">${none}</p>`
  const all = Object.entries(columns).map(([head, cell]) => ({
    name: head.replace('#', ''),
    kind: head.startsWith('#') ? 'n' : '',
    cell,
  }))
  return html`<table>
    <thead>
      <tr>
        ${all.map(({ name, kind }) => html`<th scope="col" class="${kind}">${name}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${all.map(({ name, kind, cell }) => html`<td class="${kind}" data-label="${name}">${cell(row)}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`
}

/** Content that may be larger than its place scrolls, by keyboard too. */
export function scrolling(label: string, content: Html, className = 'scroll'): Html {
  return html`<div class="${className}" role="region" aria-label="${label}" tabindex="0">${content}</div>`
}

export function facts(values: Readonly<Record<string, Content>>): Html {
  const shown = Object.entries(values).filter(([, value]) => value !== null)
  return html`<dl>
    ${shown.map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`
}

export function card(title: string | null, content: Html): Html {
  return html`<section class="card">${title !== null && html`<h2>${title}</h2>`} ${content}</section>`
}

export function formCard(title: string, words: string, form: Html): Html {
  const note = html`<p class="soft">${words}</p>`
  return card(title, html`${note} ${form}`)
}

/** A name that links to its page, with the id beside it, to be copied. `name`: null = there is none, or it is gone. */
export function named(to: string, name: string | null, id: string): Html {
  const code = html`<code>${id}</code>`
  return name === null ? html`<a href="${to}">${code}</a>` : html`<a href="${to}">${name}</a> <small>${code}</small>`
}

/** The link to a webhook. Webhooks of many users share a URL: `owner` (of `ownerOf`; null = not known) stands below. */
export function receiver(id: string | null, url: string | null, owner: string | null): Html | null {
  if (id === null) return url === null ? null : html`${url}`
  return html`<a href="/console/webhooks/${id}">${url ?? 'gone'}</a><br /><small>${owner} <code>${id}</code></small>`
}

export const developerLink = (id: string, name: string | null): Html => named(`/console/developers/${id}`, name, id)

/** A bar. `share`: 0 to 1. */
export function bar(share: number, tone: string): Html {
  const width = Math.max(0, Math.min(100, share * 100)).toFixed(1)
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect width="100" height="8" rx="2" />
    <rect class="part ${tone}" width="${width}" height="8" rx="2" />
  </svg>`
}

/** A drawing that fills its place. `size`: width and height of its own coordinates. */
function picture(className: string, size: readonly number[], label: string, content: Html): Html {
  const box = `0 0 ${size.join(' ')}`
  return html`<svg class="${className}" viewBox="${box}" preserveAspectRatio="none" role="img" aria-label="${label}">
    ${content}
  </svg>`
}

const [chartWidth, chartHeight] = [360, 54]

export function stackedBars({ from, until: end, step, bars }: DeliveryLog): Html {
  const begin = from - (from % step)
  const width = chartWidth / Math.max(1, Math.ceil((end - begin) / step))
  const top = Math.max(1, ...bars.map(({ delivered, failed }) => delivered + failed))
  const heightOf = (value: number): number => (value / top) * chartHeight
  const rect = (at: number, tone: string, value: number, below: number): Html =>
    html`<rect
      class="${tone}"
      x="${(((at - begin) / step) * width).toFixed(2)}"
      y="${(chartHeight - heightOf(value) - heightOf(below)).toFixed(2)}"
      width="${(width * 0.86).toFixed(2)}"
      height="${heightOf(value).toFixed(2)}"
    />`
  const sum = (of: 'delivered' | 'failed'): number => bars.reduce((all, one) => all + one[of], 0)
  const label = `${sum('delivered')} delivered, ${sum('failed')} failed; at most ${top} in ${lasted(step * 1000)}`
  const pairs = bars.map(
    (one) => html`${rect(one.at, 'good', one.delivered, 0)}${rect(one.at, 'bad', one.failed, one.delivered)}`,
  )
  return html`<figure>
    ${picture('bars', [chartWidth, chartHeight], label, html`${pairs}`)}
    <figcaption>${moment(from)} <span>${label}</span> ${moment(end)}</figcaption>
  </figure>`
}

/** Values over time as a line. The scale is from zero to the highest value. */
export function lineChart(label: string, known: readonly number[]): Html {
  const values = known.length < 2 ? [0, 0] : known
  const top = Math.max(...values, 1e-9)
  const step = chartWidth / (values.length - 1)
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)} ${(chartHeight - 2 - (value / top) * (chartHeight - 6)).toFixed(1)}`,
  )
  const line = `M${points.join('L')}`
  const paths = html`<path class="area" d="${line}L${chartWidth} ${chartHeight}L0 ${chartHeight}Z" />
    <path d="${line}" />`
  return picture('line', [chartWidth, chartHeight], label, paths)
}

type Parameters = Readonly<Record<string, string | number | boolean | undefined>>

/** A parameter as text: flags are 1 and 0, undefined is ''. */
function spelled(value: Parameters[string]): string {
  return value === undefined ? '' : String(typeof value === 'boolean' ? Number(value) : value)
}

/** `path` with a query of these parameters; parameters that are empty or 0 are left out. */
export function link(path: string, values: Parameters): string {
  const given = Object.entries(values).filter(([, value]) => value !== 0 && spelled(value) !== '')
  const query = new URLSearchParams(given.map(([name, value]) => [name, spelled(value)])).toString()
  return query === '' ? path : `${path}?${query}`
}

/** A value, or the text that is shown for a value, and the value. */
type Option = string | readonly [words: string, value: string]

export function choose(label: string, name: string, options: readonly Option[], chosen?: string): Html {
  const shown = options.map((option) => {
    const [words, value] = typeof option === 'string' ? [option, option] : option
    return html`<option value="${value}" ${value === chosen && new Html('selected')}>${words}</option>`
  })
  return html`<label
    >${label}
    <select name="${name}">
      ${shown}
    </select></label
  >`
}

/** A filter of a list: a select box that has 'any' as well. `values`: the parameters of the page. */
export function select(label: string, name: string, options: readonly Option[], values: Parameters): Html {
  return choose(label, name, [['any', ''], ...options], spelled(values[name]))
}

/** A filter of a list: a select box with the first 200 developers. */
export async function developerFilter({ engine }: Visit, values: Parameters): Promise<Html> {
  const developers = await engine.store.developers.list({ limit: 200, offset: 0 })
  const names = developers.map((developer) => [nameOfDeveloper(developer), developer.id] as const)
  return select('Developer', 'developer', names, values)
}

export function field(label: string, name: string, values: Parameters, type = 'text'): Html {
  return html`<label>${label} <input type="${type}" name="${name}" value="${spelled(values[name])}" /></label>`
}

/** Numbers of entries: on this page, and on all pages (null = not counted). */
interface Counted {
  readonly shown: number
  readonly total: number | null
}

type Paged = Parameters & { readonly offset: number; readonly limit: number }

/** Links to the next and the previous page. Returns null for an empty list. */
export function pager(path: string, values: Paged, { shown, total }: Counted): Html | null {
  const { offset, limit } = values
  if (shown + offset === 0) return null
  const more = total === null ? shown === limit : offset + shown < total
  const range = shown === 0 ? 'none' : `${offset + 1}–${offset + shown}`
  const at = (from: number): string => link(path, { ...values, offset: from })
  return html`<nav class="pager" aria-label="Pages">
    ${offset > 0 && html`<a class="button" href="${at(Math.max(0, offset - limit))}">Previous</a>`}
    <span class="soft">${range}${total !== null && ` of ${total}`}</span>
    ${more && html`<a class="button" href="${at(offset + limit)}">Next</a>`}
  </nav>`
}

interface Searched extends Counted {
  readonly title: string
  readonly values: Paged
  readonly filters: Html
  readonly list: Html
  readonly more?: Html | null
  /** Addresses of the nodes that did not answer. */
  readonly silent?: readonly string[]
}

export function searchForm(path: string, fields: Html, button: string, more: Html | null = null): Html {
  return html`<form class="row" action="${path}">${fields}<button class="main">${button}</button>${more}</form>`
}

/** A live page with a list, its filters and its pager. */
export function searchedList(
  { title, values, filters, list, more, silent = [], ...counted }: Searched,
  { live }: Visit,
): Shown {
  const id = title.toLowerCase()
  const path = `/console/${id}`
  const form = searchForm(path, filters, 'Show', html` <a class="button" href="${path}">All</a>`)
  const missing = `No answer from ${silent.join(', ')}: what is known there is missing.`
  const shown = html`${silent.length > 0 && html`<p class="bad">${missing}</p>`} ${scrolling(title, list, 'wide')}
  ${pager(path, values, counted)}`
  return { title, content: html`${card(null, form)} ${card(null, live(id, shown))} ${more}` }
}

/** The timed action that comes next. `attempt`: failed attempts so far. */
export function nextWords(next: { readonly what: string; readonly at: number } | null, attempt = 0): Html {
  if (next === null) return html`<span class="soft">nothing scheduled</span>`
  const tries = attempt > 0 ? `, ${ordinal(attempt + 1)} try` : ''
  return html`${next.what} ${until(next.at)}${tries}`
}

export function ordinal(n: number): string {
  const words = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']
  return words[n - 1] ?? `${n}th`
}

/** A form that creates something with a name. `more`: further fields. */
export function nameForm(title: string, to: string, { form }: Pick<Visit, 'form'>, more: Html | null = null): Html {
  const fields = html`<label>Name <input name="name" required maxlength="200" /></label>${more}<button class="main">
      Create
    </button>`
  return card(title, form(to, fields, 'row'))
}

/** The page that shows new secrets, by name. */
export function shownOnce(title: string, secrets: Readonly<Record<string, string>>, back: string): Shown {
  const shown = Object.entries(secrets).map(([name, secret]) => [name, html`<code>${secret}</code>`] as const)
  const content = html`<div class="note">
      <p><strong>This is shown once.</strong> Keep it now; only a hash or a sealed copy is stored.</p>
      ${facts(Object.fromEntries(shown))}
    </div>
    <p><a class="button" href="${back}">Continue</a></p>`
  return { title, content }
}

export function steps(rows: readonly StepRow[]): Html {
  return table(rows.toReversed(), 'No step since the start.', {
    'At (UTC)': ({ at }) => html`<time datetime="${iso(at)}">${clockWithMs(at)}</time>`,
    Event: ({ event }) => event,
    State: ({ state }) => pill(state),
    '#Duration': ({ ms }) => (ms === null ? null : lasted(ms)),
  })
}

/** A strip with a part for each step. The width grows with the logarithm of the duration: milliseconds to days. */
export function strip(rows: readonly StepRow[]): Html {
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined) return html`<p class="soft">No step since the start.</p>`
  let whole = 0
  const parts = rows.map(({ at, event, state, ms }) => {
    const left = whole
    const width = 6 + Math.log10(1 + (ms ?? 10_000)) ** 2
    whole += width
    const words = `${clockWithMs(at)} ${event}: ${state}${ms === null ? '' : `, ${lasted(ms)}`}`
    return html`<rect class="${toneOf(state)}" x="${left.toFixed(1)}" width="${(width - 1.5).toFixed(1)}" height="24"
      ><title>${words}</title></rect
    >`
  })
  const label = `The last ${rows.length} steps, from ${clock(first.at)} to ${clock(last.at)}`
  return html`${picture('strip', [Math.round(whole), 24], label, html`${parts}`)}
    <p class="ends soft">
      <small>${moment(first.at)}</small><small>${rows.length} steps</small><small>${moment(last.at)}</small>
    </p>`
}
