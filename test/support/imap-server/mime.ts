/** A small MIME reader: what ENVELOPE, BODYSTRUCTURE and BODY[…] need of a message. */
import { quote } from './tokens.ts'

export interface Part {
  /** Header block with the empty line. */
  readonly header: Buffer
  readonly body: Buffer
  readonly fields: readonly { readonly name: string; readonly value: string; readonly raw: string }[]
  readonly type: string
  readonly subtype: string
  readonly parameters: ReadonlyMap<string, string>
  readonly children: readonly Part[]
  /** message/rfc822: the message within. */
  readonly message: Part | null
}

function splitHeader(raw: Buffer): { header: Buffer; body: Buffer } {
  if (raw[0] === 13 && raw[1] === 10) return { header: raw.subarray(0, 2), body: raw.subarray(2) }
  const end = raw.indexOf('\r\n\r\n')
  return end < 0
    ? { header: raw, body: Buffer.alloc(0) }
    : { header: raw.subarray(0, end + 4), body: raw.subarray(end + 4) }
}

function readFields(header: Buffer): Part['fields'] {
  const lines = header.toString('latin1').split('\r\n')
  const raws: string[] = []
  for (const line of lines) {
    if (line === '') break
    if (/^[ \t]/.test(line) && raws.length > 0) raws.push(`${raws.pop() ?? ''}\r\n${line}`)
    else raws.push(line)
  }
  return raws.map((raw) => {
    const colon = raw.indexOf(':')
    const name = (colon < 0 ? raw : raw.slice(0, colon)).trim()
    const value =
      colon < 0
        ? ''
        : raw
            .slice(colon + 1)
            .replace(/\r\n[ \t]+/g, ' ')
            .trim()
    return { name, value, raw: `${raw}\r\n` }
  })
}

export function fieldOf(part: Part, name: string): string | null {
  return part.fields.find((field) => field.name.toLowerCase() === name.toLowerCase())?.value ?? null
}

/** 'text/plain; charset="utf-8"' → value and parameters in their order. */
function readParameters(value: string): { value: string; parameters: Map<string, string> } {
  const parameters = new Map<string, string>()
  const pattern = /;\s*([^=;\s]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;\s]*))/g
  for (const match of value.matchAll(pattern)) {
    parameters.set((match[1] ?? '').toLowerCase(), match[2]?.replace(/\\(.)/g, '$1') ?? match[3] ?? '')
  }
  return { value: (value.split(';')[0] ?? '').trim().toLowerCase(), parameters }
}

function splitMultipart(body: Buffer, boundary: string): Buffer[] {
  const text = body.toString('latin1')
  const marker = `--${boundary}`
  const parts: Buffer[] = []
  let start = -1
  let at = text.startsWith(marker) ? 0 : text.indexOf(`\r\n${marker}`)
  while (at >= 0) {
    const line = text.startsWith(marker, at) ? at : at + 2
    if (start >= 0) parts.push(body.subarray(start, Math.max(start, at)))
    if (text.startsWith('--', line + marker.length)) return parts
    const next = text.indexOf('\r\n', line)
    if (next < 0) return parts
    start = next + 2
    at = text.startsWith(marker, start) ? start : text.indexOf(`\r\n${marker}`, next)
  }
  if (start >= 0) parts.push(body.subarray(start))
  return parts
}

export function parseMime(raw: Buffer, depth = 0): Part {
  const { header, body } = splitHeader(raw)
  const fields = readFields(header)
  const stated = fields.find((field) => field.name.toLowerCase() === 'content-type')?.value ?? ''
  const { value, parameters } = readParameters(stated)
  const [type = 'text', subtype = 'plain'] = value.includes('/') ? value.split('/') : ['text', 'plain']
  if (!stated) parameters.set('charset', 'us-ascii')
  const boundary = parameters.get('boundary')
  const children =
    type === 'multipart' && boundary && depth < 30
      ? splitMultipart(body, boundary).map((child) => parseMime(child, depth + 1))
      : []
  const message = type === 'message' && subtype === 'rfc822' && depth < 30 ? parseMime(body, depth + 1) : null
  return { header, body, fields, type, subtype, parameters, children, message }
}

/** '1.2' … of the tree; multiparts count their children, a message/rfc822 counts those of the message within. */
function findPart(root: Part, numbers: readonly number[]): Part | null {
  let part: Part = root
  for (const number of numbers) {
    const holder = part.message ?? part
    if (holder.type === 'multipart') {
      const child = holder.children[number - 1]
      if (!child) return null
      part = child
    } else {
      if (number !== 1) return null
      part = holder
    }
  }
  return part
}

function listOf(parameters: ReadonlyMap<string, string>): string {
  if (parameters.size === 0) return 'NIL'
  return `(${[...parameters].map(([name, value]) => `${quote(name)} ${quote(value)}`).join(' ')})`
}

function dispositionOf(part: Part): string {
  const stated = fieldOf(part, 'content-disposition')
  if (!stated) return 'NIL'
  const { value, parameters } = readParameters(stated)
  return `(${quote(value)} ${listOf(parameters)})`
}

export function bodyStructure(part: Part, extended: boolean): string {
  if (part.type === 'multipart' && part.children.length > 0) {
    const children = part.children.map((child) => bodyStructure(child, extended)).join('')
    const extension = extended ? ` ${listOf(part.parameters)} ${dispositionOf(part)} NIL NIL` : ''
    return `(${children} ${quote(part.subtype)}${extension})`
  }
  const items = [
    quote(part.type),
    quote(part.subtype),
    listOf(part.parameters),
    quote(fieldOf(part, 'content-id')),
    quote(fieldOf(part, 'content-description')),
    quote(fieldOf(part, 'content-transfer-encoding')?.toLowerCase() ?? '7bit'),
    String(part.body.length),
  ]
  const lines = String(part.body.toString('latin1').split('\r\n').length - 1)
  if (part.message) items.push(envelope(part.message), bodyStructure(part.message, extended), lines)
  else if (part.type === 'text') items.push(lines)
  if (extended) items.push(quote(fieldOf(part, 'content-md5')), dispositionOf(part), 'NIL', 'NIL')
  return `(${items.join(' ')})`
}

function addressList(value: string | null): string {
  if (!value) return 'NIL'
  const addresses = value.match(/(?:"(?:\\.|[^"\\])*"|[^,"])+/g) ?? []
  const shown = addresses.flatMap((text) => {
    const match = /^\s*(.*?)\s*<([^<>]*)>\s*$/.exec(text)
    const name = match ? (match[1] ?? '').replace(/^"(.*)"$/, '$1').replace(/\\(.)/g, '$1') : ''
    const address = (match ? match[2] : text)?.trim() ?? ''
    if (address === '') return []
    const at = address.lastIndexOf('@')
    const [local, host] = at < 0 ? [address, ''] : [address.slice(0, at), address.slice(at + 1)]
    return [`(${quote(name === '' ? null : name)} NIL ${quote(local)} ${quote(host)})`]
  })
  return shown.length === 0 ? 'NIL' : `(${shown.join('')})`
}

export function envelope(part: Part): string {
  const from = fieldOf(part, 'from')
  return `(${[
    quote(fieldOf(part, 'date')),
    quote(fieldOf(part, 'subject')),
    addressList(from),
    addressList(fieldOf(part, 'sender') ?? from),
    addressList(fieldOf(part, 'reply-to') ?? from),
    addressList(fieldOf(part, 'to')),
    addressList(fieldOf(part, 'cc')),
    addressList(fieldOf(part, 'bcc')),
    quote(fieldOf(part, 'in-reply-to')),
    quote(fieldOf(part, 'message-id')),
  ].join(' ')})`
}

function chosenFields(part: Part, names: readonly string[], keep: boolean): Buffer {
  const wanted = new Set(names.map((name) => name.toLowerCase()))
  const kept = part.fields.filter((field) => wanted.has(field.name.toLowerCase()) === keep)
  return Buffer.from(`${kept.map((field) => field.raw).join('')}\r\n`, 'latin1')
}

/** The bytes of BODY[section]; null when there is no such section. */
export function sectionOf(root: Part, raw: Buffer, section: string): Buffer | null {
  const match = /^((?:\d+\.)*\d+)?\.?(.*)$/s.exec(section)
  const numbers = match?.[1] ? match[1].split('.').map(Number) : []
  const what = (match?.[2] ?? '').toUpperCase()
  const part = findPart(root, numbers)
  if (!part) return null
  const holder = numbers.length === 0 ? part : part.message
  if (what === '') return numbers.length === 0 ? raw : part.body
  if (what === 'MIME') return numbers.length === 0 ? null : part.header
  if (!holder) return null
  if (what === 'HEADER') return holder.header
  if (what === 'TEXT') return holder.body
  const fields = /^HEADER\.FIELDS(\.NOT)? \((.*)\)$/s.exec(what)
  if (!fields) return null
  const names = (fields[2] ?? '').split(/\s+/).map((name) => name.replace(/"/g, ''))
  return chosenFields(holder, names, fields[1] === undefined)
}

/** Text of the readable parts, decoded, for SEARCH BODY. */
export function searchableText(part: Part): string {
  if (part.children.length > 0) return part.children.map(searchableText).join('\n')
  if (part.message) return `${part.message.header.toString()}\n${searchableText(part.message)}`
  if (part.type !== 'text') return ''
  const encoding = fieldOf(part, 'content-transfer-encoding')?.toLowerCase()
  if (encoding === 'base64') return Buffer.from(part.body.toString('latin1'), 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return part.body.toString('utf8')
  const bytes = part.body
    .toString('latin1')
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
