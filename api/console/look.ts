/** The style of the console, its script, and the frame around each page. */
import { basics, html, Html, pageHeaders, wholePage } from '../html.ts'

/** The style of the charts (chart.ts), for a picture of a chart without a page too. */
export const chartStyle = `
:root { --edge: #98a3b8; --timer: #a05a00; }
@media (prefers-color-scheme: dark) { :root { --edge: #5d6a82; --timer: #e6a957; } }
svg.chart { display: block; margin: 0 auto; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.chart rect { fill: var(--paper); stroke: var(--line); } .chart .outer > rect { fill: var(--accent); fill-opacity: .035; stroke: var(--edge); }
.chart .leaf > rect { stroke: var(--edge); } .chart .leaf > text { text-anchor: middle; }
.chart .on > rect { stroke: var(--accent); stroke-width: 1.5; } .chart .on > text { font-weight: 600; } .chart .on.leaf > rect { fill: var(--accent); } .chart .on.leaf > text { fill: var(--paper); }
.chart path { fill: none; stroke: var(--edge); stroke-width: 1.2; } .chart .head { fill: var(--edge); stroke: none; }
.chart .label { font: 10.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--soft); }
.chart .lit path { stroke: var(--accent); stroke-width: 2.6; } .chart .lit .head { fill: var(--accent); stroke-width: 2; } .chart .label .lit, .chart .label .runs { font-weight: 700; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; } .chart .label .lit { fill: var(--accent); }
.legend b { margin-right: 18px; font-weight: 400; font-size: 13px; } .legend b::before { content: ""; display: inline-block; width: 22px; margin-right: 7px; vertical-align: middle; border-top: 3px solid var(--accent); } .legend .on::before { height: 14px; border-radius: 4px; background: var(--accent); } .legend .runs::before { border-top: 2px dashed var(--timer); }
.chart .runs path { stroke: var(--timer); stroke-dasharray: 5 3; } .chart .runs .head { fill: var(--timer); } .chart .label .runs { fill: var(--timer); }
`

const style = `${basics}
:root { --good: #0a7d55; --busy: #2457d6; --bad: #b3261e; --calm: #5b6678; --tint: #eef3ff; }
@media (prefers-color-scheme: dark) { :root { --good: #4fd1a0; --busy: #86a8ff; --bad: #ff8f86; --calm: #9aa6ba; --tint: #1b2540; } }
body { background: var(--panel); }
a { color: var(--accent); }
header { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; padding: 10px 24px; border-bottom: 1px solid var(--line); background: var(--paper); }
header strong { font-size: 16px; } header form.inline { margin: 0; } header nav { display: flex; flex-wrap: wrap; gap: 2px; flex: 1; }
header [role=search] input { width: 178px; max-width: 100%; } header nav a { padding: 5px 8px; border-radius: 7px; text-decoration: none; color: var(--ink); }
header nav a:hover { background: var(--panel); } header nav a[aria-current] { background: var(--tint); color: var(--accent); font-weight: 600; }
main { max-width: 1360px; margin: 0 auto; padding: 22px 24px 80px; overflow-wrap: anywhere; }
h1 { margin: 0 0 14px; font-size: 24px; letter-spacing: -.01em; } h2 { margin: 0 0 10px; font-size: 16px; } h3 { margin: 14px 0 6px; font-size: 14px; }
p { margin: 0 0 10px; } .soft { color: var(--soft); } .bad { color: var(--bad); } small { color: var(--soft); }
.card { margin: 0 0 16px; padding: 16px 18px; border: 1px solid var(--line); border-radius: 12px; background: var(--paper); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 16px; margin-bottom: 16px; }
.card > :last-child, .card > :last-child > :last-child { margin-bottom: 0; } .grid > .card { margin: 0; padding: 14px; } .grid h2 { margin: 0; font-size: 13.5px; color: var(--soft); } .number { white-space: nowrap; } .halves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 0 16px; align-items: start; }
.halves > * { min-width: 0; }
.card dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 3px 16px; margin: 0; } dt { color: var(--soft); } dd { margin: 0; }
.number { margin: 0; font-size: 25px; font-weight: 600; font-variant-numeric: tabular-nums; } .number small { font-size: 13px; font-weight: 400; }
.scroll { overflow: auto; max-height: 480px; } .wide { overflow-x: auto; } .wide table { min-width: 900px; } .wide svg.chart { min-width: 860px; max-width: 100%; height: auto; }
.tail { display: flex; flex-direction: column-reverse; } .tail > * { flex: none; }
.scroll + *, .wide + *, [data-live] + *, table + p, form.row + .wide, dl + form.inline, dl + .scroll { margin-top: 12px; } summary { cursor: pointer; color: var(--soft); } details > * + * { margin-top: 10px; }
table { width: 100%; border-collapse: collapse; font-size: 14px; overflow-wrap: break-word; } time { white-space: nowrap; } th, td { padding: 6px 12px 6px 0; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
thead th { position: sticky; top: 0; border-top: 0; font-size: 12.5px; font-weight: 600; color: var(--soft); background: var(--paper); white-space: nowrap; }
tbody tr:hover td { background: var(--panel); } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td .words { display: inline-block; min-width: 150px; max-width: 420px; } td small code { white-space: nowrap; } td.keep { white-space: nowrap; overflow-wrap: normal; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; } code { overflow-wrap: anywhere; }
pre.box { padding: 12px 14px; border-radius: 8px; color: var(--code-ink); background: var(--code); }
.pill { display: inline-block; padding: 1px 9px; border: 1px solid currentColor; border-radius: 99px; font-size: 12.5px; font-weight: 600; white-space: nowrap; color: var(--calm); }
.pill.good { color: var(--good); } .pill.busy { color: var(--busy); } .pill.bad { color: var(--bad); }
form.row { display: flex; flex-wrap: wrap; gap: 10px; align-items: end; } form.inline, .button { display: inline-block; } form.inline { margin: 0 6px 6px 0; } td > .button, td form.inline { margin: 0 6px 6px 0; }
label { display: grid; gap: 3px; font-size: 13px; color: var(--soft); } label.check { display: flex; gap: 6px; align-items: center; padding: 7px 0; color: var(--ink); }
input, select, button, .button { padding: 7px 11px; border: 1px solid #8b95a7; border-radius: 8px; font: inherit; font-size: 14px; color: var(--ink); background: var(--paper); }
input:not([type=checkbox]), select { height: 38px; } input[type=number] { width: 130px; } button, .button { cursor: pointer; text-decoration: none; } button:hover, .button:hover { border-color: var(--accent); color: var(--accent); }
button.danger, .button.danger { color: var(--bad); } button.main { color: var(--paper); border-color: var(--accent); background: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.note { margin: 0 0 16px; padding: 10px 16px; border: 1px solid var(--accent); border-radius: 10px; background: var(--tint); } .note code { font-size: 14px; user-select: all; }
.pager { display: flex; gap: 14px; align-items: center; margin-top: 12px; }
svg.line { display: block; width: 100%; height: 54px; margin-top: 8px; } svg.line path { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke; } svg.line path.area { fill: var(--tint); stroke: none; }
figure { margin: 0 0 14px; } figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 14px; font-size: 12.5px; color: var(--soft); }
svg.bars { display: block; width: 100%; height: 72px; margin-bottom: 4px; border-bottom: 1px solid var(--line); } svg.bars .good { fill: var(--good); } svg.bars .bad { fill: var(--bad); }
svg.bar { width: 100%; height: 8px; } svg.bar rect { fill: var(--line); } svg.bar rect.part { fill: var(--calm); } svg.bar rect.good { fill: var(--good); } svg.bar rect.busy { fill: var(--busy); } svg.bar rect.bad { fill: var(--bad); }
svg.strip { display: block; width: 100%; height: 24px; border-radius: 5px; } .strip rect { fill: var(--calm); } .strip .good { fill: var(--good); } .strip .busy { fill: var(--busy); } .strip .bad { fill: var(--bad); } .strip rect:hover { opacity: .6; }
.ends { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 16px; margin: 6px 0 0; }
.wire { margin: 0; padding: 10px 14px; border-radius: 8px; list-style: none; font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; color: var(--code-ink); background: var(--code); }
.wire li { display: grid; grid-template-columns: 92px 34px minmax(0, 1fr); gap: 8px; overflow-wrap: anywhere; } .wire time { color: #98a4ba; } .wire b { font-weight: 600; }
.wire .c0 b { color: #8fb3ff; } .wire .c1 b { color: #6fd8ae; } .wire .c2 b { color: #f0b86a; } .wire .c3 b { color: #e79be0; } .wire .step span { color: #fff; font-weight: 700; }
${chartStyle}/* For those who hear the page. */
.away { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.login { max-width: 380px; margin: 12vh auto 0; } .login form { display: grid; gap: 12px; } [hidden] { display: none !important; }
#stale, #gone { margin: 0; color: var(--bad); font-size: 13px; }
@media (max-width: 640px) { header { padding: 10px 14px; } header nav { order: 1; flex: 1 0 100%; } header form.inline { margin-left: auto; } header [role=search], header [role=search] input { order: 2; width: 100%; } main { padding: 16px 14px 60px; } .card { padding: 13px 14px; } h1 { font-size: 20px; } .words { max-width: 260px; } form.row label { width: calc(50% - 5px); } form.row select, form.row input:not([type=checkbox]) { width: 100%; } form.row label.check { width: auto; }
  .wire li { grid-template-columns: 84px minmax(0, 1fr); gap: 0 6px; padding: 2px 0; font-size: 11.5px; } .wire span { grid-column: 1 / -1; }
  /* Each row of a list is a card. */
  .wide table { min-width: 0; } table, tbody, tr { display: block; } thead { display: none; }
  tr { margin-bottom: 10px; padding: 9px 12px; border: 1px solid var(--line); border-radius: 10px; } tbody tr:hover td { background: none; }
  td, td.n { display: flow-root; min-height: 26px; padding: 2px 0 2px 118px; border: 0; text-align: left; } td:empty { display: none; }
  td::before { content: attr(data-label); float: left; width: 110px; margin-left: -118px; color: var(--soft); font-size: 12.5px; }
  td:first-child { padding: 0 0 5px; font-weight: 600; } td:first-child::before { content: none; } }
`

/** Updates times, and live parts by their ids. Without live parts there is no stream; a hidden page closes it. */
const script = `
const main = document.querySelector('main')
const ahead = Number(main.dataset.now) * 1000 - Date.now()
const two = (n) => String(n).padStart(2, '0')
const span = (s) => s < 3600 ? Math.floor(s / 60) + ':' + two(s % 60)
  : s < 172800 ? Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min' : Math.floor(s / 86400) + ' days'
function tick() {
  const now = Math.floor((Date.now() + ahead) / 1000)
  for (const one of document.querySelectorAll('[data-until]')) {
    const left = Number(one.dataset.until) - now
    one.textContent = left > 0 ? 'in ' + span(left) : 'now'
  }
  for (const one of document.querySelectorAll('time[data-since]')) one.textContent = span(Math.max(0, now - Number(one.dataset.since)))
}
tick()
setInterval(tick, 1000)
// A chart wider than its place opens where the active state is.
const active = document.querySelector('svg.chart .on.leaf')
const place = active?.closest('.wide')
place?.scrollBy(active.getBoundingClientRect().left - place.getBoundingClientRect().left - place.clientWidth / 3, 0)
let events = null
function follow() {
  if (document.hidden) { events?.close(); events = null; return }
  if (events !== null || document.querySelector('[data-live]') === null) return
  events = new EventSource('/console/events?page=' + encodeURIComponent(location.pathname + location.search))
  events.addEventListener('message', ({ data }) => {
    document.getElementById('stale').hidden = true
    for (const [id, text] of Object.entries(JSON.parse(data))) {
      const part = document.getElementById(id)
      if (part !== null) part.innerHTML = text
    }
    tick()
  })
  events.addEventListener('error', () => { document.getElementById('stale').hidden = false })
  events.addEventListener('over', () => { events.close(); document.getElementById('stale').hidden = false })
  events.addEventListener('gone', () => { events.close(); document.getElementById('gone').hidden = false })
}
document.addEventListener('visibilitychange', follow)
follow()
`

export const consoleHeaders = { ...pageHeaders(style, script, true), 'Cache-Control': 'no-store' }

const places = [
  ['/console', 'Overview'],
  ['/console/accounts', 'Accounts'],
  ['/console/webhooks', 'Webhooks'],
  ['/console/deliveries', 'Deliveries'],
  ['/console/hosts', 'Hosts'],
  ['/console/developers', 'Developers'],
  ['/console/tokens', 'Tokens'],
  ['/console/audit', 'Audit'],
  ['/console/retention', 'Retention'],
  ['/console/nodes', 'Processes'],
] as const

export interface Shown {
  readonly title: string
  readonly content: Html
}

/** `notice`: of the last action. */
export function consolePage(path: string, { title, content }: Shown, notice: string | null, logout: Html): string {
  const links = places.map(([place, name]) => {
    const here = path === place || (place !== '/console' && path.startsWith(`${place}/`))
    return html`<a href="${place}" ${here && new Html('aria-current="page"')}>${name}</a>`
  })
  const body = html`<header>
      <strong>Mailroom</strong>
      <nav aria-label="Console">${links}</nav>
      <form role="search" action="/console/search">
        <input
          type="search"
          name="q"
          required
          aria-label="Search: address, id, Message-ID, URL or name"
          placeholder="Address, id or URL"
        />
      </form>
      <p id="stale" role="status" hidden>No live updates at the moment.</p>
      <p id="gone" role="status" hidden>What this page shows is gone.</p>
      ${logout}
    </header>
    <main data-now="${Math.floor(Date.now() / 1000)}">
      <h1>${title}</h1>
      ${notice !== null && html`<p class="note" role="status">${notice}</p>`} ${content}
    </main>
    ${new Html(`<script>${script}</script>`)}`
  return wholePage(`${title} · Mailroom console`, style, body)
}

/** A page without a session: the login, or a refusal. */
export function plainPage(title: string, content: Html): string {
  const body = html`<main class="login">
    <div class="card">
      <h1>${title}</h1>
      ${content}
    </div>
  </main>`
  return wholePage(`${title} · Mailroom console`, style, body)
}
