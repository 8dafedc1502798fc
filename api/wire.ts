/** Texts on the wire: the request target, percent-encoding, and name=value pairs. */
import { badParameter } from '../engine/index.ts'

export type Pair = readonly [name: string, value: string]

/**
 * Cuts `req.url` at the first '?' into the path and the query, without '?' and unchanged. The URL is ASCII: Node's
 * parser refuses other bytes.
 */
export function parseTarget(url: string): { readonly path: string; readonly query: string } {
  // In the absolute form (RFC 9112 section 3.2.2) the path follows the authority.
  const start = url.startsWith('/') ? 0 : (/^https?:\/\/[^/?#]*/i.exec(url)?.[0].length ?? 0)
  const mark = url.indexOf('?', start)
  if (mark === -1) return { path: url.slice(start) || '/', query: '' }
  return { path: url.slice(start, mark) || '/', query: url.slice(mark + 1) }
}

const malformed = 'invalid percent-encoding'

/** Percent-decodes one path parameter; '+' stays '+'. Throws `bad_request`, which names the parameter. */
export function decodePathValue(name: string, raw: string): string {
  const value = decodePercent(raw)
  if (value === null || value.includes('\0')) throw badParameter(name, malformed)
  return value
}

/** Far more than any call has. */
export const mostParameters = 1000

/** Parses application/x-www-form-urlencoded. Throws `bad_request`, which names `where`. */
export function parsePairs(text: string, where: 'query' | 'body'): Pair[] {
  const pairs: Pair[] = []
  // One piece at a time: nothing is decoded beyond the limit.
  for (let at = 0, end = 0; at < text.length; at = end + 1) {
    end = text.indexOf('&', at)
    if (end === -1) end = text.length
    if (end === at) continue
    const piece = text.slice(at, end)
    if (pairs.length === mostParameters) throw badParameter(where, `more than ${mostParameters} parameters`)
    const mark = piece.indexOf('=')
    const name = decodeFormText(mark === -1 ? piece : piece.slice(0, mark))
    const value = mark === -1 ? '' : decodeFormText(piece.slice(mark + 1))
    if (name === null || value === null) throw badParameter(where, malformed)
    pairs.push([name, value])
  }
  return pairs
}

export type Entries = readonly (readonly [name: string, value: unknown])[]

/**
 * Makes a record without a prototype: parameters may have any name. The last value of a name wins. The values of
 * `name[]` become the list `name`, without empty ones.
 */
export function valuesOf(entries: Entries): Record<string, unknown> {
  const values = Object.create(null) as Record<string, unknown>
  const lists = new Map<string, unknown[]>()
  for (const [name, value] of entries) {
    if (!name.endsWith('[]')) values[name] = value
    else if (value !== '') {
      const key = name.slice(0, -2)
      const list = lists.getOrInsert(key, [])
      list.push(...[value].flat())
      values[key] = list
    }
  }
  return values
}

function decodeFormText(text: string): string | null {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text)
}

/** null when a '%' is not followed by two hex digits or the bytes are not UTF-8. */
export function decodePercent(text: string): string | null {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Everything but RFC 3986's unreserved characters (RFC 5849 section 3.6). */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
