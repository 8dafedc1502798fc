/**
 * A small reader of XML 1.0 for configuration files of strangers: elements, attributes, text, CDATA. No document types (and so no
 * entities but the five of XML and numbers), bounded in size, depth and number of elements.
 */
import { own } from '../own.ts'

export interface XmlElement {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly XmlElement[]
  /** Its own text, without that of its children, trimmed. */
  readonly text: string
}

const longest = 65_536
const deepest = 32
const mostElements = 2000

interface Open {
  readonly name: string
  readonly attributes: Record<string, string>
  readonly children: XmlElement[]
  text: string
}

/** The root element; null for what is not well-formed, not finished, or larger than a configuration file is. */
export function readXml(source: string): XmlElement | null {
  if (source.length > longest) return null
  const top: Open = { name: '', attributes: {}, children: [], text: '' }
  const open: Open[] = [top]
  let elements = 0
  let at = 0
  while (at < source.length) {
    const current = open.at(-1) ?? top
    if (source.charCodeAt(at) !== 0x3c /* < */) {
      const end = indexOrEnd(source, '<', at)
      const text = decode(source.slice(at, end))
      if (text === null) return null
      current.text += text
      at = end
      continue
    }
    const skipped = skipSpecial(source, at, current)
    if (skipped === -1) return null
    if (skipped > at) {
      at = skipped
      continue
    }
    const end = tagEnd(source, at)
    if (end === -1) return null
    const inside = source.slice(at + 1, end)
    elements += 1
    if (elements > mostElements * 2 || !takeTag(inside, open)) return null
    at = end + 1
  }
  const [root] = top.children
  return open.length === 1 && top.children.length === 1 && root !== undefined ? root : null
}

function indexOrEnd(source: string, what: string, from: number): number {
  const found = source.indexOf(what, from)
  return found === -1 ? source.length : found
}

/** Past a comment, CDATA section or processing instruction; `at` when there is none, -1 when it is broken or a document type. */
function skipSpecial(source: string, at: number, current: Open): number {
  if (source.startsWith('<!--', at)) return past(source, '-->', at + 4)
  if (source.startsWith('<?', at)) return past(source, '?>', at + 2)
  if (source.startsWith('<![CDATA[', at)) {
    const end = source.indexOf(']]>', at)
    if (end === -1) return -1
    current.text += source.slice(at + 9, end)
    return end + 3
  }
  return source.startsWith('<!', at) ? -1 : at
}

function past(source: string, ending: string, from: number): number {
  const found = source.indexOf(ending, from)
  return found === -1 ? -1 : found + ending.length
}

/** Where the tag's '>' is; one between quotes is none. */
function tagEnd(source: string, at: number): number {
  let quote = ''
  for (let index = at + 1; index < source.length; index += 1) {
    const sign = source.charAt(index)
    if (quote !== '') quote = sign === quote ? '' : quote
    else if (sign === '"' || sign === "'") quote = sign
    else if (sign === '>') return index
    else if (sign === '<') return -1
  }
  return -1
}

/** Opens or closes an element; false when it does not fit. */
function takeTag(inside: string, open: Open[]): boolean {
  if (inside.startsWith('/')) return close(inside.slice(1).trim(), open)
  const empty = inside.endsWith('/')
  const element = readTag(empty ? inside.slice(0, -1) : inside)
  if (element === null || open.length > deepest) return false
  open.push(element)
  return empty ? close(element.name, open) : true
}

function close(name: string, open: Open[]): boolean {
  const element = open.at(-1)
  const parent = open.at(-2)
  if (element?.name !== name || parent === undefined) return false
  open.pop()
  parent.children.push({ ...element, text: element.text.trim() })
  return true
}

const nameSign = /[A-Za-z0-9_.:-]/

function readTag(inside: string): Open | null {
  let at = nameEnd(inside, 0)
  const name = inside.slice(0, at)
  if (name === '') return null
  const attributes = Object.create(null) as Record<string, string>
  for (;;) {
    while (/\s/.test(inside.charAt(at))) at += 1
    if (at >= inside.length) return { name, attributes, children: [], text: '' }
    const end = nameEnd(inside, at)
    const quote = inside.charAt(end + 1)
    if (end === at || inside.charAt(end) !== '=' || (quote !== '"' && quote !== "'")) return null
    const last = inside.indexOf(quote, end + 2)
    const value = last === -1 ? null : decode(inside.slice(end + 2, last))
    if (value === null) return null
    attributes[inside.slice(at, end)] = value
    at = last + 1
  }
}

function nameEnd(text: string, from: number): number {
  let at = from
  while (at < text.length && nameSign.test(text.charAt(at))) at += 1
  return at
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** null for an entity that is not XML's own. */
function decode(text: string): string | null {
  if (!text.includes('&')) return text
  let decoded = ''
  for (let at = 0; at < text.length;) {
    const mark = indexOrEnd(text, '&', at)
    decoded += text.slice(at, mark)
    if (mark === text.length) return decoded
    const end = text.indexOf(';', mark)
    const sign = end === -1 || end - mark > 10 ? null : entity(text.slice(mark + 1, end))
    if (sign === null) return null
    decoded += sign
    at = end + 1
  }
  return decoded
}

function entity(name: string): string | null {
  if (!name.startsWith('#')) return own(entities, name) ?? null
  const hex = name.charAt(1) === 'x'
  const digits = name.slice(hex ? 2 : 1)
  if (!(hex ? /^[0-9a-f]+$/i : /^\d+$/).test(digits)) return null
  const code = Number.parseInt(digits, hex ? 16 : 10)
  const fits = code > 0 && code <= 0x10_ffff && (code < 0xd800 || code > 0xdfff)
  return fits ? String.fromCodePoint(code) : null
}
