/**
 * The table of known mail providers: their IMAP servers and the domains of their addresses. It serves discovery
 * (settings for an address) and labels (`<local part>::<provider>`).
 */
import { domainOf } from '../messages/addresses.ts'

export interface HelpPage {
  /** In English if the provider has it; may be empty. */
  readonly description: string
  readonly url: string
}

/** IMAP settings for all addresses of a domain. */
export interface Settings {
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly oauth: boolean
  /** May hold %EMAILADDRESS%, %EMAILLOCALPART% and %EMAILDOMAIN%. */
  readonly username: string
  readonly documentation: readonly HelpPage[]
}

export interface ProviderFacts extends Settings {
  /** The type in discovery's results, and the second half of a label. */
  readonly name: string
  readonly domains: readonly string[]
  /** Endings of the MX hosts of custom domains that the provider hosts. */
  readonly mxSuffixes: readonly string[]
}

/** `domains`: the domains of its addresses, separated by spaces. */
function provider(name: string, server: string, domains: string, more: Partial<ProviderFacts> = {}): ProviderFacts {
  const usual = { port: 993, useSsl: true, oauth: false, username: '%EMAILADDRESS%', mxSuffixes: [], documentation: [] }
  return { ...usual, ...more, name, server, domains: domains.split(' ').filter((domain) => domain !== '') }
}

/** A page of the provider: how to get a password for mail programs, or how to switch IMAP on. */
function help(description: string, url: string) {
  return { documentation: [{ description, url }] }
}

const passwordOfGmail = help('Sign in with app passwords', 'https://support.google.com/accounts/answer/185833')
const helpOfGmail = help('Add Gmail to another email client', 'https://support.google.com/mail/answer/7126229')
const helpOfOutlook = help(
  'POP, IMAP and SMTP settings for Outlook.com',
  'https://support.microsoft.com/office/d088b986-291d-42b8-9564-9c414e2aa040',
)
const helpOfYahoo = help('Generate and manage app passwords', 'https://help.yahoo.com/kb/SLN15241.html')
const helpOfApple = help('Sign in with app-specific passwords', 'https://support.apple.com/en-us/102654')
const helpOfAol = help(
  'Create and manage app passwords',
  'https://help.aol.com/articles/Create-and-manage-app-password',
)
const helpOfFastmail = help('App passwords', 'https://www.fastmail.help/hc/en-us/articles/360058752854-App-passwords')
const helpOfZoho = help('IMAP access, and app passwords', 'https://www.zoho.com/mail/help/imap-access.html')
const helpOfGmx = help('POP3 und IMAP einschalten', 'https://hilfe.gmx.net/pop-imap/einschalten.html')
const helpOfWebde = help('POP3 und IMAP einschalten', 'https://hilfe.web.de/pop-imap/einschalten.html')

const gmail = { oauth: true, documentation: [...passwordOfGmail.documentation, ...helpOfGmail.documentation] }
const outlook = { oauth: true, ...helpOfOutlook }
const outlookDomains =
  'outlook.com hotmail.com live.com msn.com hotmail.co.uk hotmail.fr hotmail.de live.co.uk live.fr outlook.de outlook.fr'
// Yahoo Japan (yahoo.co.jp) is another company, with servers of its own.
const yahooDomains =
  'yahoo.com yahoo.co.uk yahoo.fr yahoo.de yahoo.es yahoo.it yahoo.ca yahoo.co.in yahoo.com.br ymail.com rocketmail.com'
const localPart = { username: '%EMAILLOCALPART%' }

/** The provider hosts custom domains whose MX hosts have these endings. */
function hosts(...mxSuffixes: string[]) {
  return { mxSuffixes }
}

export const providers: readonly ProviderFacts[] = [
  provider('gmail', 'imap.gmail.com', 'gmail.com googlemail.com', gmail),
  provider('googleapps', 'imap.gmail.com', '', { ...gmail, ...hosts('.google.com', '.googlemail.com') }),
  provider('outlook', 'outlook.office365.com', outlookDomains, outlook),
  provider('office365', 'outlook.office365.com', '', { ...outlook, ...hosts('.mail.protection.outlook.com') }),
  provider('yahoo', 'imap.mail.yahoo.com', yahooDomains, { ...helpOfYahoo, ...hosts('.yahoodns.net') }),
  provider('icloud', 'imap.mail.me.com', 'icloud.com me.com mac.com', { ...helpOfApple, ...hosts('.mail.icloud.com') }),
  provider('aol', 'imap.aol.com', 'aol.com aim.com verizon.net', helpOfAol),
  provider('fastmail', 'imap.fastmail.com', 'fastmail.com fastmail.fm sent.com messagingengine.com', {
    ...helpOfFastmail,
    ...hosts('.messagingengine.com'),
  }),
  provider('zoho', 'imap.zoho.com', 'zoho.com zohomail.com', { ...helpOfZoho, ...hosts('.zoho.com') }),
  provider('zoho', 'imap.zoho.eu', 'zohomail.eu', { ...helpOfZoho, ...hosts('.zoho.eu') }),
  provider('gmx', 'imap.gmx.net', 'gmx.net gmx.de gmx.at gmx.ch', helpOfGmx),
  provider('gmx', 'imap.gmx.com', 'gmx.com gmx.us gmx.co.uk'),
  provider('webde', 'imap.web.de', 'web.de', { ...localPart, ...helpOfWebde }),
  provider('mailcom', 'imap.mail.com', 'mail.com email.com usa.com'),
  provider('yandex', 'imap.yandex.com', 'yandex.com yandex.ru ya.ru', hosts('.yandex.net', '.yandex.ru')),
  provider('mailru', 'imap.mail.ru', 'mail.ru inbox.ru list.ru bk.ru', hosts('.mail.ru')),
  provider('163', 'imap.163.com', '163.com'),
  provider('126', 'imap.126.com', '126.com'),
  provider('qq', 'imap.qq.com', 'qq.com foxmail.com'),
  provider('comcast', 'imap.comcast.net', 'comcast.net'),
  provider('att', 'imap.mail.att.net', 'att.net sbcglobal.net bellsouth.net'),
  provider('orange', 'imap.orange.fr', 'orange.fr wanadoo.fr'),
  provider('free', 'imap.free.fr', 'free.fr', localPart),
  provider('tonline', 'secureimap.t-online.de', 't-online.de magenta.de'),
  provider('libero', 'imapmail.libero.it', 'libero.it'),
  provider('posteo', 'posteo.de', 'posteo.de posteo.net'),
  provider('mailbox', 'imap.mailbox.org', 'mailbox.org', hosts('.mailbox.org')),
  provider('rambler', 'imap.rambler.ru', 'rambler.ru'),
]

export function usernameFor(settings: Pick<Settings, 'username'>, email: string): string {
  const at = email.lastIndexOf('@')
  const values: Readonly<Record<string, string>> = {
    '%EMAILADDRESS%': email,
    '%EMAILLOCALPART%': email.slice(0, at),
    '%EMAILDOMAIN%': email.slice(at + 1),
  }
  return settings.username.replace(/%EMAIL(?:ADDRESS|LOCALPART|DOMAIN)%/g, (name) => values[name] ?? name)
}

/** The provider half of a label: a known provider's name, else the name part of the server's domain, else 'imap'. */
export function providerName(server: string, email: string): string {
  const host = server.toLowerCase()
  const domain = domainOf(email)
  const known = providers.find((one) => one.domains.includes(domain)) ?? providers.find((one) => one.server === host)
  if (known !== undefined && known.server === host) return known.name
  if (/^[\d.]+$|:/.test(host)) return 'imap'
  const parts = host.split('.').filter((part) => part !== '')
  const name = parts.length >= 2 ? parts[parts.length - 2] : undefined
  return name?.replace(/[^a-z0-9-]/g, '') || 'imap'
}
