/**
 * Settings that a domain publishes for mail clients (Autoconfig, the format of ISPDB): XML at autoconfig.<domain> or
 * under the domain's /.well-known. Only https, since a password is going to follow the answer.
 */
import { Parser } from 'htmlparser2'
import type { HttpClient } from '../net/http.ts'
import type { HelpPage, Settings } from './providers.ts'

interface AutoconfigDeps {
  readonly http: Pick<HttpClient, 'get'>
  readonly allowPrivate: boolean
  readonly timeoutMs: number
}

const fileBytes = 65_536
/** Hosts of many domains keep the file in one place. */
const mostRedirects = 2

/** [] when the domain publishes nothing. Never rejects: a host that cannot be reached publishes nothing. */
export async function autoconfig(deps: AutoconfigDeps, domain: string): Promise<Settings[]> {
  const files = await Promise.all(
    addressesOf(domain).map((url) => fetchFile(deps, url, performance.now() + deps.timeoutMs).catch(() => null)),
  )
  for (const file of files) {
    const settings = file === null ? [] : settingsIn(file)
    if (settings.length > 0) return settings
  }
  return []
}

function addressesOf(domain: string): string[] {
  return [
    `https://autoconfig.${domain}/mail/config-v1.1.xml`,
    `https://${domain}/.well-known/autoconfig/mail/config-v1.1.xml`,
  ]
}

async function fetchFile(deps: AutoconfigDeps, first: string, until: number): Promise<string | null> {
  let url = first
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    const timeoutMs = Math.round(until - performance.now())
    if (timeoutMs <= 0) return null
    const limits = { timeoutMs, allowPrivate: deps.allowPrivate, maxResponseBytes: fileBytes }
    const answer = await deps.http.get(url, { accept: 'text/xml, application/xml' }, limits)
    if (answer.status === 200) return answer.body
    const next = URL.parse(answer.headers['location'] ?? '', url)
    if (answer.status < 300 || answer.status > 399 || next?.protocol !== 'https:') return null
    url = next.href
  }
  return null
}

export interface XmlElement {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: XmlElement[]
  /** Its own text, without that of its children, trimmed. */
  text: string
}

const deepest = 32
const mostElements = 2000

/**
 * The root element; null for a file that has none or several, does not end, is larger than a configuration file is, or
 * has a document type (and so entities of its own).
 */
export function readXml(source: string): XmlElement | null {
  if (source.length > fileBytes) return null
  const top: XmlElement = { name: '', attributes: {}, children: [], text: '' }
  const open = [top]
  let elements = 0
  const parser = new Parser(
    {
      onprocessinginstruction(name) {
        if (name.startsWith('!')) parser.pause()
      },
      onopentag(name, attributes) {
        const element: XmlElement = { name, attributes, children: [], text: '' }
        open.at(-1)?.children.push(element)
        open.push(element)
        elements += 1
        // What is open then is never closed.
        if (open.length > deepest || elements > mostElements) parser.pause()
      },
      ontext(text) {
        const element = open.at(-1)
        if (element !== undefined) element.text += text
      },
      onclosetag() {
        const element = open.pop()
        if (element !== undefined) element.text = element.text.trim()
      },
    },
    { xmlMode: true },
  )
  parser.write(source)
  const [root = null] = top.children
  return open.length === 1 && top.children.length === 1 ? root : null
}

/** IMAP servers of the file, those with TLS from the first byte first. */
export function settingsIn(file: string): Settings[] {
  const root = readXml(file)
  if (root?.name !== 'clientConfig') return []
  const found = childrenOf(root, 'emailProvider').flatMap((provider) => {
    const documentation = childrenOf(provider, 'documentation').flatMap(helpPage)
    return childrenOf(provider, 'incomingServer').flatMap((server) => settingsOf(server, documentation))
  })
  return found.sort((left, right) => Number(right.useSsl) - Number(left.useSsl))
}

function settingsOf(server: XmlElement, documentation: readonly HelpPage[]): Settings[] {
  const host = textOf(server, 'hostname').toLowerCase()
  const port = Number(textOf(server, 'port'))
  const username = textOf(server, 'username')
  const usable =
    server.attributes['type']?.toLowerCase() === 'imap' &&
    /^[a-z0-9._-]{1,253}$/.test(host) &&
    Number.isInteger(port) &&
    port > 0 &&
    port < 65_536
  if (!usable) return []
  const oauth = childrenOf(server, 'authentication').some(({ text }) => text.toLowerCase() === 'oauth2')
  const useSsl = textOf(server, 'socketType').toUpperCase() === 'SSL'
  return [{ server: host, port, useSsl, oauth, username: username === '' ? '%EMAILADDRESS%' : username, documentation }]
}

function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child.name === name)
}

function textOf(element: XmlElement, name: string): string {
  return childrenOf(element, name)[0]?.text ?? ''
}

/** Described in several languages, or in none. */
function helpPage(element: XmlElement): HelpPage[] {
  const { url } = element.attributes
  if (url === undefined || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return []
  const texts = childrenOf(element, 'descr')
  const english = texts.find(({ attributes }) => /^en\b/i.test(attributes['lang'] ?? ''))
  const description = (english ?? texts[0])?.text.replaceAll(/\s+/g, ' ') ?? ''
  return [{ description, url }]
}
