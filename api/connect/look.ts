/** The languages of the connect wizard, its style, its script, and the frame around each page. */
import { type Brand, logoOrigin, own } from '../../engine/index.ts'
import { basics, html, Html, pageHeaders, wholePage } from '../html.ts'
import type { Call } from '../route.ts'
import { de } from './de.ts'
import { en, type Words } from './en.ts'

export const languages = { en, de } as const satisfies Record<string, Words>
export type Language = keyof typeof languages

export function isLanguage(code: string): code is Language {
  return own(languages, code) !== undefined
}

/** The language that the browser prefers, or English. */
export function preferredLanguage(client: Pick<Call, 'acceptsLanguages'>): Language {
  return (client.acceptsLanguages(Object.keys(languages)) || 'en') as Language
}

function styleOf({ color, ink }: Brand): string {
  return `${basics}
:root { --brand: ${color}; --brand-ink: ${ink}; --bad: #a3211a; --bad-paper: #fdf1f0; --good: #0a7d55; --edge: #7b8597; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9d95; --bad-paper: #2c1a1b; --good: #4fd1a0; --edge: #7f8ba0; } }
body { display: flex; flex-direction: column; align-items: center; min-height: 100vh; padding: 32px 20px; background: var(--panel); font-size: 16px; overflow-wrap: anywhere; }
main { width: 100%; max-width: 500px; padding: 30px 34px 34px; border: 1px solid var(--line); border-radius: 16px; background: var(--paper); box-shadow: 0 1px 2px rgb(0 0 0 / .05), 0 10px 30px rgb(0 0 0 / .06); }
header { display: flex; gap: 12px; align-items: center; margin-bottom: 22px; font-weight: 600; } header p { margin: 0; color: var(--ink); }
header img { display: block; height: 38px; max-width: 150px; object-fit: contain; }
header .badge { display: grid; place-items: center; flex: none; width: 38px; height: 38px; border-radius: 10px; font-size: 19px; color: var(--brand-ink); background: var(--brand); }
h1 { margin: 0 0 6px; font-size: 25px; line-height: 1.25; letter-spacing: -.01em; } h2 { margin: 0; font-size: 16px; }
p { margin: 0 0 16px; color: var(--soft); } a { color: var(--accent); text-underline-offset: 2px; }
.step { margin: 0 0 4px; font-size: 14px; } .hint { margin: 4px 0 0; font-size: 14px; } .address { margin: 0 0 20px; color: var(--ink); font-weight: 600; }
form { display: grid; gap: 18px; margin: 20px 0 0; } .field { display: grid; gap: 5px; } label { font-weight: 600; font-size: 15px; }
input, select { width: 100%; min-height: 46px; padding: 9px 12px; border: 1px solid var(--edge); border-radius: 9px; font: inherit; color: var(--ink); background: var(--paper); }
input[aria-invalid] { border: 2px solid var(--bad); } .pair { display: grid; grid-template-columns: 1fr 110px; gap: 12px; }
.secret { display: flex; gap: 8px; } .secret button { flex: none; }
button, .button { min-height: 46px; padding: 10px 18px; border: 1px solid var(--edge); border-radius: 9px; font: inherit; text-align: center; text-decoration: none; cursor: pointer; color: var(--ink); background: var(--paper); }
.main { display: block; width: 100%; border-color: color-mix(in srgb, var(--brand) 70%, var(--ink)); font-weight: 600; color: var(--brand-ink); background: var(--brand); } .main:hover { box-shadow: inset 0 0 0 99px rgb(128 128 128 / .12); }
button[disabled] { opacity: .65; cursor: default; } :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; } [hidden] { display: none !important; }
.problem { margin: 0 0 20px; padding: 13px 16px; border: 1px solid var(--bad); border-left-width: 5px; border-radius: 9px; background: var(--bad-paper); } .problem h2 { margin: 0 0 3px; color: var(--bad); } .problem p { margin: 0; color: var(--ink); } .problem p + * { margin-top: 6px; } .problem details { font-size: 14px; }
.note { padding: 13px 16px; border: 1px solid var(--line); border-radius: 9px; background: var(--panel); font-size: 15px; } .note p { margin: 3px 0 6px; } .note ul { margin: 0; padding-left: 20px; }
summary { cursor: pointer; padding: 4px 0; } details > div { display: grid; gap: 14px; margin-top: 12px; }
.or { display: flex; gap: 12px; align-items: center; margin: 20px 0 0; font-size: 14px; } .or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.progress { margin: 20px 0; padding: 0; list-style: none; } .progress li { display: flex; gap: 12px; align-items: center; padding: 7px 0; color: var(--soft); }
.progress li::before { content: ""; flex: none; width: 20px; height: 20px; border: 2px solid var(--line); border-radius: 50%; }
.progress .done { color: var(--ink); } .progress .done::before { content: "✓"; display: grid; place-items: center; border-color: var(--good); font-size: 13px; font-weight: 700; color: var(--paper); background: var(--good); }
.progress .now { color: var(--ink); font-weight: 600; } .progress .now::before { border-color: var(--line) var(--line) var(--line) var(--accent); animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } } @media (prefers-reduced-motion: reduce) { .progress .now::before { animation: none; } }
.tick { display: grid; place-items: center; width: 54px; height: 54px; margin-bottom: 16px; border-radius: 50%; font-size: 28px; font-weight: 700; color: var(--paper); background: var(--good); }
.away { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.privacy { margin: 22px 0 0; padding-top: 16px; border-top: 1px solid var(--line); font-size: 14px; } .links { margin: 16px 0 0; }
footer { margin-top: 18px; font-size: 14px; } footer nav { display: flex; gap: 14px; } footer a, footer span { padding: 6px 2px; } footer span { color: var(--soft); }
@media (max-width: 560px) { body { padding: 0; background: var(--paper); } main { border: 0; border-radius: 0; box-shadow: none; padding: 22px 20px 26px; } h1 { font-size: 22px; } footer { padding: 0 20px 20px; align-self: flex-start; margin: 0; } }
`
}

/** Sends each form once, shows the password, updates the progress from events, and leaves the last page. */
const script = `
for (const form of document.forms) form.addEventListener('submit', (event) => {
  if (form.dataset.sent) { event.preventDefault(); return }
  form.dataset.sent = '1'
  for (const button of form.querySelectorAll('button:not([type])')) button.disabled = true
})
addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })
for (const button of document.querySelectorAll('[data-shows]')) {
  const input = document.getElementById(button.dataset.shows)
  button.hidden = false
  button.addEventListener('click', () => {
    const shown = input.type === 'text'
    input.type = shown ? 'password' : 'text'
    button.textContent = shown ? button.dataset.show : button.dataset.hide
    button.setAttribute('aria-pressed', String(!shown))
  })
}
const live = document.querySelector('[data-events]')
if (live !== null) {
  const events = new EventSource(live.dataset.events)
  events.addEventListener('message', ({ data }) => {
    const { list, now, to } = JSON.parse(data)
    if (list !== undefined) {
      live.innerHTML = list
      document.querySelector('[data-now]').textContent = now
    }
    if (to !== undefined) { events.close(); location.replace(to) }
  })
  events.addEventListener('error', () => { if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2000) })
}
const onward = document.querySelector('[data-onward]')
if (onward !== null) setTimeout(() => location.assign(onward.href), 1200)
`

interface Frame {
  readonly language: Language
  readonly title: string
  readonly content: Html
  readonly app?: string | undefined
  /** Address of the page in another language. */
  readonly here?: string | undefined
  /** The page goes there after so many seconds: without a script only, or always after 0 seconds. */
  readonly refresh?: { readonly seconds: number; readonly to: string }
}

export function createLook(brand: Brand) {
  const style = styleOf(brand)
  const pictures = brand.logo === null ? null : (logoOrigin(brand.logo) ?? 'data:')
  const headers = { ...pageHeaders(style, script, true, pictures), 'Cache-Control': 'no-store' }
  return {
    headers: { ...headers, Vary: 'Accept-Language, Cookie' },
    page(frame: Frame): string {
      const body = html`<main>${frame.app !== undefined && head(brand, frame.app)} ${frame.content}</main>
        ${frame.here !== undefined && switches(frame.here, frame.language)} ${new Html(`<script>${script}</script>`)}`
      return wholePage(frame.title, style, body, { language: frame.language, more: refreshOf(frame) })
    },
  }
}

function head({ logo }: Brand, app: string): Html {
  const picture =
    logo === null
      ? html`<span class="badge" aria-hidden="true">${/^./u.exec(app)?.[0].toUpperCase()}</span>`
      : html`<img src="${logo}" alt="Logo" />`
  return html`<header>
    ${picture}
    <p>${app}</p>
  </header>`
}

function refreshOf({ refresh }: Frame): Html {
  if (refresh === undefined) return html``
  const meta = html`<meta http-equiv="refresh" content="${refresh.seconds}; url=${refresh.to}" />`
  return refresh.seconds === 0 ? meta : html`<noscript>${meta}</noscript>`
}

function switches(here: string, language: Language): Html {
  const names = Object.entries(languages).map(([code, words]) =>
    code === language
      ? html`<span aria-current="true">${words.language}</span>`
      : html`<a href="${here}?lang=${code}" lang="${code}" hreflang="${code}">${words.language}</a>`,
  )
  return html`<footer>
    <nav aria-label="${languages[language].otherLanguages}">${names}</nav>
  </footer>`
}
