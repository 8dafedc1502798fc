/** What the pages are made of: times, states, tables, small charts. */
import { utc } from '../admin/rows.ts'
import { html, Html } from '../html.ts'
import type { Shown, Visit } from './frame.ts'

/** Counts down in the browser; times are Unix timestamps in seconds. */
export function until(at: number): Html {
  return html`<time datetime="${iso(at)}" data-until="${at}">${clock(at)}</time>`
}

/** How long ago, counting up in the browser. */
export function since(at: number): Html {
  return html`<time datetime="${iso(at)}" title="${clock(at)}" data-since="${at}">since ${clock(at)}</time>`
}

export function moment(at: number): Html {
  return html`<time datetime="${iso(at)}">${clock(at)}</time>`
}

/** With milliseconds. */
export function instant(at: number): Html {
  return html`<time datetime="${iso(at)}">${iso(at).slice(0, 23).replace('T', ' ')}</time>`
}

function iso(at: number): string {
  return new Date(at * 1000).toISOString()
}

function clock(at: number): string {
  return utc(at * 1000)
}

/** 350 ms, 1.2 s, 3 min 20 s, 5 h 2 min. */
export function lasted(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = Math.floor(ms / 1000)
  if (seconds < 60) return `${(ms / 1000).toFixed(1)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

const tones: Readonly<Record<string, string>> = {
  watching: 'good',
  idle: 'good',
  OK: 'good',
  delivered: 'good',
  syncing: 'busy',
  connecting: 'busy',
  queued: 'busy',
  draining: 'busy',
  probing: 'busy',
  pending: 'busy',
  waiting: 'bad',
  throttled: 'bad',
  disabled: 'bad',
  DISABLED: 'bad',
  dead: 'bad',
  resting: 'bad',
  recovering: 'bad',
  failed: 'bad',
  revoked: 'bad',
}

export function toneOf(state: string): string {
  return tones[state] ?? ''
}

export function pill(state: string): Html {
  return html`<span class="pill ${toneOf(state)}">${state}</span>`
}

/** `heads`: those that begin with # are of numbers. */
export function table(heads: readonly string[], rows: readonly (readonly Html[])[], none: string): Html {
  if (rows.length === 0) return html`<p class="soft">${none}</p>`
  const kinds = heads.map((head) => (head.startsWith('#') ? 'n' : ''))
  const cells = (row: readonly Html[]) => row.map((cell, index) => html`<td class="${kinds[index]}">${cell}</td>`)
  return html`<table>
    <thead>
      <tr>
        ${heads.map((head, index) => html`<th scope="col" class="${kinds[index]}">${head.replace('#', '')}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${cells(row)}
          </tr>`,
      )}
    </tbody>
  </table>`
}

/** What may be larger than its place: it scrolls, also by keyboard. */
export function scrolling(label: string, content: Html, className = 'scroll'): Html {
  return html`<div class="${className}" role="region" aria-label="${label}" tabindex="0">${content}</div>`
}

export function facts(pairs: readonly (readonly [string, Html | null])[]): Html {
  return html`<dl>
    ${pairs
      .map(
        ([name, value]) =>
          value !== null &&
          html`<dt>${name}</dt>
            <dd>${value}</dd>`,
      )
      .filter((one) => one !== false)}
  </dl>`
}

export const plain = (text: string | number): Html => html`${text}`

/** A share of a whole as a bar. */
export function bar(share: number, tone: string): Html {
  const width = Math.max(0, Math.min(100, share * 100)).toFixed(1)
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect width="100" height="8" rx="2" />
    <rect class="part ${tone}" width="${width}" height="8" rx="2" />
  </svg>`
}

const [chartWidth, chartHeight] = [360, 54]

/** Values over time as a line, from nothing to the highest of them. */
export function lineChart(label: string, values: readonly number[]): Html {
  if (values.length < 2) return html`<p class="soft"><small>The line begins when there are some values.</small></p>`
  const top = Math.max(...values, 1e-9)
  const step = chartWidth / (values.length - 1)
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)} ${(chartHeight - 2 - (value / top) * (chartHeight - 6)).toFixed(1)}`,
  )
  const line = `M${points.join('L')}`
  return html`<svg
    class="line"
    viewBox="0 0 ${chartWidth} ${chartHeight}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    <path class="area" d="${line}L${chartWidth} ${chartHeight}L0 ${chartHeight}Z" />
    <path d="${line}" />
  </svg>`
}

interface Choice {
  readonly label: string
  readonly name: string
  /** undefined or '' = any. */
  readonly value: string | undefined
  /** Value and words. */
  readonly options: readonly (readonly [string, string])[]
}

export function select({ label, name, value, options }: Choice): Html {
  const chosen = (one: string) => one === value && new Html('selected')
  return html`<label
    >${label}
    <select name="${name}">
      <option value="">any</option>
      ${options.map(([one, words]) => html`<option value="${one}" ${chosen(one)}>${words}</option>`)}
    </select></label
  >`
}

export function field(label: string, name: string, value: string | undefined, type = 'text'): Html {
  return html`<label>${label} <input type="${type}" name="${name}" value="${value}" /></label>`
}

/** `path` with these parameters, without the empty ones. */
export function link(path: string, values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '' && value !== 0)
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return query === '' ? path : `${path}?${query}`
}

interface Pager {
  readonly offset: number
  readonly limit: number
  /** Entries of all pages; null = not counted. */
  readonly count: number | null
  /** Entries of this page. */
  readonly shown: number
  at(offset: number): string
}

export function pager({ offset, limit, count, shown, at }: Pager): Html {
  const more = count === null ? shown === limit : offset + shown < count
  const range = shown === 0 ? 'none' : `${offset + 1}–${offset + shown}`
  return html`<nav class="pager" aria-label="Pages">
    ${offset > 0 && html`<a class="button" href="${at(Math.max(0, offset - limit))}">Previous</a>`}
    <span class="soft">${range}${count !== null && ` of ${count}`}</span>
    ${more && html`<a class="button" href="${at(offset + limit)}">Next</a>`}
  </nav>`
}

/** What will happen by itself, and when. */
export function nextWords(next: { readonly what: string; readonly at: number } | null, attempt = 0): Html {
  if (next === null) return html`<span class="soft">nothing is timed</span>`
  const tries = attempt > 0 ? `, ${ordinal(attempt + 1)} try` : ''
  return html`${next.what} ${until(next.at)}${tries}`
}

export function ordinal(n: number): string {
  const words = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']
  return words[n - 1] ?? `${n}th`
}

/** What makes something new, by its name and what else is asked for. */
export function nameForm(title: string, to: string, { form }: Pick<Visit, 'form'>, more: Html | null = null): Html {
  return html`<section class="card">
    <h2>${title}</h2>
    ${form(to, html`<label>Name <input name="name" required maxlength="200" /></label>${more}<button class="main">Create</button>`, 'row')}
  </section>`
}

/** A secret, in the only answer that has it. */
export function shownOnce(title: string, pairs: readonly (readonly [string, string])[], back: string): Shown {
  const content = html`<div class="note">
      <p><strong>This is shown once.</strong> Keep it now; only a hash or a sealed copy is stored.</p>
      <dl>
        ${pairs.map(
          ([name, value]) =>
            html`<dt>${name}</dt>
              <dd><code>${value}</code></dd>`,
        )}
      </dl>
    </div>
    <p><a class="button" href="${back}">It is kept: go on</a></p>`
  return { title, content }
}
