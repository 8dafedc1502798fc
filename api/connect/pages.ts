/** The contents of the wizard's pages, each in the words of one language. */
import type { ConnectTry, DiscoveredSettings, HelpPage } from '../../engine/index.ts'
import { html, type Html } from '../html.ts'
import type { Words } from './en.ts'

/** The mailbox that is going to be connected. */
export interface Mailbox {
  readonly email: string
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly username: string
  /** What discovery says of it. null = nothing, so the settings are a guess. */
  readonly found: DiscoveredSettings | null
  /** Of the email account that the token is for: only the credentials may be another. */
  readonly fixed: boolean
}

export type Failure = keyof Words['failures']
export type End = keyof Words['ends']
export type Field = 'email' | 'password' | 'server' | 'port' | 'username'

/** Why a step has to be done again: a field is wrong, or the try has failed. */
export type Problem =
  | { readonly field: Field; readonly words: string; readonly title?: string }
  | { readonly failure: Failure; readonly detail: string | null }

/** At the provider, in the place of a password. */
interface SignIn {
  /** As people know the provider. */
  readonly name: string
}

/** What a page of a token is made with. */
export interface Setting {
  readonly words: Words
  /** The application that asks for the mailbox. */
  readonly app: string
  readonly csrf: string
  /** Address of a step. */
  at(step: string): string
}

/** A long address may go on in the next line behind its @. */
function breakable(address: string): Html {
  const at = address.lastIndexOf('@') + 1
  return html`${address.slice(0, at)}<wbr />${address.slice(at)}`
}

/** The browser puts the focus on it; a screen reader reads it. */
function problemBox(words: Words, problem: Problem | null): Html | null {
  if (problem === null) return null
  if ('field' in problem)
    return alert(
      problem.title ?? words.problem,
      html`<p id="problem"><a href="#${problem.field}">${problem.words}</a></p>`,
    )
  const detail = html`<details>
    <summary>${words.serverSaid}</summary>
    <p>${problem.detail}</p>
  </details>`
  return alert(
    words.problem,
    html`<p>${words.failures[problem.failure]}</p>
      ${problem.detail !== null && detail}`,
  )
}

function alert(title: string, content: Html): Html {
  return html`<div class="problem" role="alert" tabindex="-1" autofocus>
    <h2>${title}</h2>
    ${content}
  </div>`
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

function field(
  { name, label, value, type = 'text', autocomplete = 'off', hint, more }: Input,
  problem: Problem | null,
) {
  const wrong = problem !== null && 'field' in problem && problem.field === name
  const invalid = wrong && html`aria-invalid="true"`
  const notes = [wrong ? 'problem' : '', hint === undefined ? '' : `${name}-hint`].join(' ').trim()
  const described = notes !== '' && html`aria-describedby="${notes}"`
  const input = html`<input
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
    ${more === undefined ? input : html`<div class="secret">${input}${more}</div>`}
    ${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
  </div>`
}

function form({ csrf, at }: Setting, step: string, content: Html): Html {
  return html`<form method="post" action="${at(step)}" novalidate>
    <input type="hidden" name="csrf" value="${csrf}" />${content}
  </form>`
}

/** An address that may be a mistake: sent once more as it is, it is taken. */
export interface Doubt {
  readonly similar: string | null
  readonly kept: string
}

export function addressPage(setting: Setting, email: string, problem: Problem | null, doubt: Doubt | null): Html {
  const { words, app } = setting
  const { emailLabel: label, emailHint: hint } = words
  const input = field({ name: 'email', label, value: email, type: 'email', autocomplete: 'email', hint }, problem)
  const kept = doubt !== null && html`<input type="hidden" name="kept" value="${doubt.kept}" />`
  return html`<p class="step">${words.stepOf(1, 3)}</p>
    <h1>${words.title}</h1>
    <p>${words.asks(app)}.</p>
    ${problemBox(words, problem)} ${doubt !== null && doubt.similar !== null && similarForm(setting, doubt.similar)}
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
  readonly signIn: SignIn | null
  /** Whether the page has the password form. */
  readonly passwords: boolean
  /** The address may be another one. */
  readonly changeable: boolean
}

const hosts: Readonly<Record<string, 'google' | 'microsoft'>> = {
  gmail: 'google',
  googleapps: 'google',
  outlook: 'microsoft',
  office365: 'microsoft',
}

/** The company that hosts the mailbox, where discovery names the server; null for other hosts. */
export function hostOf({ found, server }: Mailbox): 'google' | 'microsoft' | null {
  return found?.server === server ? (hosts[found.type] ?? null) : null
}

export function loginPage(setting: Setting, { mailbox, problem, signIn, passwords, changeable }: LoginPage): Html {
  const { words, app, at } = setting
  const address = changeable && html`<input type="hidden" name="email" value="${mailbox.email}" />`
  const signInButton = signIn !== null && html`<button class="main">${words.signIn(signIn.name)}</button>`
  return html`<p class="step">${words.stepOf(2, 3)}</p>
    <h1>${words.loginTitle}</h1>
    <p>${mailbox.fixed ? words.asksAgain(app) : words.asks(app)}.</p>
    ${problemBox(words, problem)}
    <p class="address">${breakable(mailbox.email)}</p>
    ${mailbox.fixed && html`<p class="hint">${words.serverLabel}: ${mailbox.server}:${mailbox.port}</p>`}
    ${signIn !== null && form(setting, 'sign-in', html`${address} ${signInButton}`)}
    ${signIn !== null && passwords && html`<p class="or">${words.or}</p>`}
    ${(passwords || signIn === null) && passwordNote(setting, mailbox, signIn)}
    ${
      passwords &&
      form(
        setting,
        'login',
        html`${address} ${password(words, problem)} ${!mailbox.fixed && settings(words, mailbox, problem)}
          <button class="${signIn === null && 'main'}">${words.connect}</button>`,
      )
    }
    ${changeable && html`<p class="links"><a href="${at('')}">${words.otherAddress}</a></p>`}
    <p class="privacy">${passwords ? words.privacy(app) : words.privacySignIn(app)}</p>`
}

/** By the type of discovery: who refuses the password that its users log in with on its pages. */
const appPasswordsAt: Readonly<Record<string, string>> = {
  aol: 'AOL',
  fastmail: 'Fastmail',
  icloud: 'Apple',
  yahoo: 'Yahoo',
}
/** Providers that let programs in only after IMAP is turned on in the settings of the mailbox. */
const offUntilAsked: ReadonlySet<string> = new Set(['gmx', 'webde'])

/** The provider's condition for a password login, or its refusal of passwords. */
function passwordNote({ words, app }: Setting, mailbox: Mailbox, signIn: SignIn | null): Html | null {
  const { documentation: help = [], type = '' } = mailbox.found ?? {}
  const host = hostOf(mailbox)
  if (host === 'google') {
    const { title, text, link: description } = words.googlePassword
    return helpNote({ title, text }, words, [{ description, url: 'https://myaccount.google.com/apppasswords' }])
  }
  if (host === 'microsoft' && signIn === null) return helpNote(words.microsoftPassword(app), words, [])
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

/** The server settings have nothing to do with it: discovery knows them. */
const besides: ReadonlySet<Failure | Field> = new Set([
  'password',
  'auth_rejected',
  'token_rejected',
  'consent_lost',
  'consent_denied',
  'consent_partial',
  'consent_short',
  'provider_down',
  'provider_refuses',
  'sign_in_old',
  'other_address',
])

/** Hidden while they are known and nothing is wrong with them. */
function settings(words: Words, mailbox: Mailbox, problem: Problem | null): Html {
  const about = problem === null ? null : 'field' in problem ? problem.field : problem.failure
  const open = mailbox.found === null || (about !== null && !besides.has(about))
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

/** The browser goes on by itself. */
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

/** `again`: where one may begin again. */
export function endPage(words: Words, end: End, again: string | undefined): Html {
  const { title, text } = words.ends[end]
  return html`<h1>${title}</h1>
    <p>${text}</p>
    ${again !== undefined && html`<p><a href="${again}">${words.startAgain}</a></p>`}`
}
