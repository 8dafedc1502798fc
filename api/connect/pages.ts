/** The contents of the wizard's pages. The words of the language are a parameter. */
import type { AccountRecord, ConnectTry, DiscoveredSettings, HelpPage } from '../../engine/index.ts'
import { html, type Html } from '../html.ts'
import type { Words } from './en.ts'

export interface Mailbox extends Pick<AccountRecord, 'email' | 'server' | 'port' | 'useSsl' | 'username'> {
  /** The answer of discovery; null = it found nothing, so the settings are a guess. */
  readonly found: DiscoveredSettings | null
  /** The token is for an email account that exists: only the credentials may change. */
  readonly fixed: boolean
}

export type Failure = keyof Words['failures']
export type End = keyof Words['ends']
export type Field = 'email' | 'password' | 'server' | 'port' | 'username'

/** Why the user has to repeat a step: a field is wrong, or the try has failed. */
export type Problem =
  /** `similar` is there when an address is only doubted: the one that may be meant, or null. */
  | { readonly field: Field; readonly words: string; readonly similar?: string | null }
  | { readonly failure: Failure; readonly detail: string | null }

/** The parts that all pages of a token share. */
export interface Setting {
  readonly words: Words
  readonly app: string
  readonly csrf: string
  /** Address of a step. */
  at(step: string): string
}

/** A long address may break after its @. */
function breakable(address: string): Html {
  const at = address.lastIndexOf('@') + 1
  return html`${address.slice(0, at)}<wbr />${address.slice(at)}`
}

function problemBox(words: Words, problem: Problem | null): Html | null {
  if (problem === null) return null
  const isField = 'field' in problem
  const content = isField
    ? html`<p id="problem"><a href="#${problem.field}">${problem.words}</a></p>`
    : failureText(words, problem)
  return html`<div class="problem" role="alert" tabindex="-1" autofocus>
    <h2>${isField && problem.similar !== undefined ? words.doubt : words.problem}</h2>
    ${content}
  </div>`
}

function failureText(words: Words, { failure, detail }: Extract<Problem, { failure: Failure }>): Html {
  const details = html`<details>
    <summary>${words.serverSaid}</summary>
    <p>${detail}</p>
  </details>`
  return html`<p>${words.failures[failure]}</p>
    ${detail !== null && details}`
}

interface Input {
  readonly name: Field
  readonly label: string
  readonly value?: string | number
  readonly type?: string
  readonly autocomplete?: string
  readonly hint?: string
  readonly more?: Html
}

function field(input: Input, problem: Problem | null): Html {
  const { name, label, value, type = 'text', autocomplete = 'off', hint, more } = input
  const wrong = problem !== null && 'field' in problem && problem.field === name
  const invalid = wrong && html`aria-invalid="true"`
  const notes = [wrong ? 'problem' : '', hint === undefined ? '' : `${name}-hint`].join(' ').trim()
  const described = notes !== '' && html`aria-describedby="${notes}"`
  const element = html`<input
    id="${name}"
    name="${name}"
    type="${type}"
    value="${value}"
    autocomplete="${autocomplete}"
    autocapitalize="none"
    spellcheck="false"
    required
    maxlength="1000"
    ${invalid}
    ${described}
  />`
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${more === undefined ? element : html`<div class="secret">${element}${more}</div>`}
    ${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
  </div>`
}

function form({ csrf, at }: Setting, step: string, content: Html): Html {
  return html`<form method="post" action="${at(step)}" novalidate>
    <input type="hidden" name="csrf" value="${csrf}" />${content}
  </form>`
}

/** When the form comes with the address that it `kept`, a doubted address is accepted. */
export function addressPage(setting: Setting, email: string, problem: Problem | null): Html {
  const { words, app } = setting
  const similar = problem !== null && 'field' in problem ? problem.similar : undefined
  const { emailLabel: label, emailHint: hint } = words
  const input = field({ name: 'email', label, value: email, type: 'email', autocomplete: 'email', hint }, problem)
  const kept = similar !== undefined && html`<input type="hidden" name="kept" value="${email}" />`
  return html`<p class="step">${words.stepOf(1, 3)}</p>
    <h1>${words.title}</h1>
    <p>${words.asks(app)}.</p>
    ${problemBox(words, problem)} ${similar && similarForm(setting, similar)}
    ${form(setting, 'address', html`${kept}${input}<button class="main">${words.next}</button>`)}
    <p class="privacy">${words.privacy(app)}</p>`
}

function similarForm(setting: Setting, similar: string): Html {
  const address = html`<input type="hidden" name="email" value="${similar}" />`
  return form(setting, 'address', html`${address}<button class="main">${setting.words.useSimilar(similar)}</button>`)
}

interface LoginPage {
  readonly mailbox: Mailbox
  readonly problem: Problem | null
  /** Name of the provider that the user may sign in with; null = none. */
  readonly provider: string | null
  /** Whether the page has the password form. */
  readonly passwords: boolean
  readonly changeable: boolean
}

const hosts: Readonly<Record<string, 'google' | 'microsoft'>> = {
  gmail: 'google',
  googleapps: 'google',
  outlook: 'microsoft',
  office365: 'microsoft',
}

/** The company that hosts the mailbox, by the answer of discovery; null = another one. */
export function hostOf({ found, server }: Mailbox): 'google' | 'microsoft' | null {
  return found?.server === server ? (hosts[found.type] ?? null) : null
}

export function loginPage(setting: Setting, page: LoginPage): Html {
  const { words, app, at } = setting
  const { mailbox, problem, provider, passwords, changeable } = page
  const address = changeable && html`<input type="hidden" name="email" value="${mailbox.email}" />`
  const signInButton = provider !== null && html`<button class="main">${words.signIn(provider)}</button>`
  const passwordFields = html`${address} ${password(words, problem)}
    ${!mailbox.fixed && settings(words, mailbox, problem)}
    <button class="${provider === null && 'main'}">${words.connect}</button>`
  return html`<p class="step">${words.stepOf(2, 3)}</p>
    <h1>${words.loginTitle}</h1>
    <p>${mailbox.fixed ? words.asksAgain(app) : words.asks(app)}.</p>
    ${problemBox(words, problem)}
    <p class="address">${breakable(mailbox.email)}</p>
    ${mailbox.fixed && html`<p class="hint">${words.serverLabel}: ${mailbox.server}:${mailbox.port}</p>`}
    ${provider !== null && form(setting, 'sign-in', html`${address} ${signInButton}`)}
    ${provider !== null && passwords && html`<p class="or">${words.or}</p>`}
    ${(passwords || provider === null) && passwordNote(setting, mailbox, provider === null)}
    ${passwords && form(setting, 'login', passwordFields)}
    ${changeable && html`<p class="links"><a href="${at('')}">${words.otherAddress}</a></p>`}
    <p class="privacy">${passwords ? words.privacy(app) : words.privacySignIn(app)}</p>`
}

/** Providers that refuse the user's own password, by the type that discovery answers. */
const appPasswordsAt: Readonly<Record<string, string>> = {
  aol: 'AOL',
  fastmail: 'Fastmail',
  icloud: 'Apple',
  yahoo: 'Yahoo',
}
/** Providers that let programs in only after IMAP is turned on in the settings of the mailbox. */
const offUntilAsked: ReadonlySet<string> = new Set(['gmx', 'webde'])

/** The provider's condition for a password login, or its refusal of passwords. */
function passwordNote({ words, app }: Setting, mailbox: Mailbox, isOnlyWay: boolean): Html | null {
  const { documentation: help = [], type = '' } = mailbox.found ?? {}
  const host = hostOf(mailbox)
  if (host === 'google') {
    const { title, text, link: description } = words.googlePassword
    return helpNote({ title, text }, words, [{ description, url: 'https://myaccount.google.com/apppasswords' }])
  }
  if (host === 'microsoft' && isOnlyWay) return helpNote(words.microsoftPassword(app), words, [])
  const note = offUntilAsked.has(type) ? words.imapOff : words.appPassword(appPasswordsAt[type])
  return help.length === 0 ? null : helpNote(note, words, help)
}

function helpNote(note: Words['imapOff'], words: Words, pages: readonly HelpPage[]): Html {
  const links = pages.map(
    ({ url, description }) =>
      html`<li><a href="${url}" rel="noreferrer noopener" target="_blank">${description || words.helpPage}</a></li>`,
  )
  return html`<div class="note">
    <h2>${note.title}</h2>
    <p>${note.text}</p>
    ${
      links.length > 0 &&
      html`<ul>
        ${links}
      </ul>`
    }
  </div>`
}

function password(words: Words, problem: Problem | null): Html {
  const { passwordLabel: label, showPassword: show, hidePassword: hide } = words
  const more = html`<button type="button" hidden data-shows="password" data-show="${show}" data-hide="${hide}">
    ${show}
  </button>`
  return field({ name: 'password', label, type: 'password', autocomplete: 'current-password', more }, problem)
}

/** Problems that are not caused by the server settings. */
const notOfSettings = /^(?:password|auth_rejected|token_rejected|consent_\w+|provider_\w+|sign_in_old|other_address)$/

/** The server settings. They are closed when discovery knows them and the problem is not about them. */
function settings(words: Words, mailbox: Mailbox, problem: Problem | null): Html {
  const about = problem === null ? null : 'field' in problem ? problem.field : problem.failure
  const open = mailbox.found === null || (about !== null && !notOfSettings.test(about))
  const option = (value: string, name: string, chosen: boolean) =>
    html`<option value="${value}" ${chosen && html`selected`}>${name}</option>`
  const { server, port, useSsl, username } = mailbox
  return html`<details ${open && html`open`}>
    <summary>${words.settingsTitle}</summary>
    <div>
      ${mailbox.found === null && html`<p class="hint">${words.settingsUnknown}</p>`}
      <div class="pair">
        ${field({ name: 'server', label: words.serverLabel, value: server }, problem)}
        ${field({ name: 'port', label: words.portLabel, value: port }, problem)}
      </div>
      <div class="field">
        <label for="security">${words.securityLabel}</label>
        <select id="security" name="security">
          ${option('tls', words.securityTls, useSsl)} ${option('starttls', words.securityStartTls, !useSsl)}
        </select>
      </div>
      ${field({ name: 'username', label: words.usernameLabel, value: username, hint: words.usernameHint }, problem)}
    </div>
  </details>`
}

const order = ['finding', 'login', 'folders', 'saving'] as const satisfies readonly ConnectTry['step'][]

export function progressList({ progress, state }: Words, step: ConnectTry['step']): Html {
  const now = order.indexOf(step)
  const items = order.map((name, index) => {
    const kind = index < now ? 'done' : index === now ? 'now' : 'later'
    return html`<li class="${kind}">
      <span>${progress[name]}<span class="away">: ${state[kind]}</span></span>
    </li>`
  })
  return html`<ol class="progress">
    ${items}
  </ol>`
}

export function connectingPage({ words, at }: Setting, email: string, step: ConnectTry['step']): Html {
  return html`<p class="step">${words.stepOf(3, 3)}</p>
    <h1>${words.connectingTitle}</h1>
    <p class="address">${breakable(email)}</p>
    <p class="away" role="status" data-now>${words.progress[step]}</p>
    <div data-events="${at('events')}">${progressList(words, step)}</div>
    <p>${words.connectingHint}</p>`
}

export function leavingPage(words: Words, provider: string, url: string): Html {
  return html`<h1>${words.leavingTitle(provider)}</h1>
    <p role="status">${words.leavingText}</p>
    <a class="button main" href="${url}">${words.leavingGo(provider)}</a>`
}

export function donePage({ words, app }: Setting, email: string, callback: string | null, onward: boolean): Html {
  return html`<div class="tick" aria-hidden="true">✓</div>
    <h1>${words.doneTitle}</h1>
    <p class="address">${breakable(email)}</p>
    <p role="status">${callback === null ? words.doneClose : words.doneText(app)}</p>
    ${callback !== null && html`<a class="button main" href="${callback}" ${onward && html`data-onward`}>${words.back(app)}</a>`}`
}

export function otherMailboxPage({ words, at }: Setting, title: string, text: string): Html {
  return html`<h1>${title}</h1>
    <p>${text}</p>
    <a class="button main" href="${at('connecting')}">${words.next}</a>`
}
