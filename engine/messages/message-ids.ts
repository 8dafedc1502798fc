/** Message-IDs out of Message-ID, In-Reply-To and References, as senders really write them. */
import { maxMessageIdLength, maxReferences } from './limits.ts'

/** What RFC 5322 allows in an id is narrower; white space and brackets are what no id may hold. */
const bracketed = /<([^<>]{1,2000})>/g

function cleaned(text: string): string {
  // A folded id got white space where the line broke.
  return text.replace(/\s+/g, '')
}

/**
 * Every id of an unfolded value, without angle brackets, in order, each once. Ids without brackets are found when there is no
 * bracketed one. Never throws.
 */
export function messageIdsOf(text: string): string[] {
  const inBrackets = Array.from(text.matchAll(bracketed), (match) => cleaned(match[1] ?? ''))
  const found = inBrackets.length > 0 ? inBrackets : bareIds(text)
  return [...new Set(found)].filter((id) => id !== '' && id.length <= maxMessageIdLength)
}

function bareIds(text: string): string[] {
  const tokens = text.split(/[\s<>,;"()]+/).filter((token) => token.length <= maxMessageIdLength)
  return tokens.filter((token) => /^[^@]+@/.test(token))
}

/**
 * The id of a message: the first that any Message-ID field holds; when none looks like an id, the value itself
 * (`Message-ID: 12345`), as long as it is one word. null = absent.
 */
export function ownMessageId(values: readonly string[]): string | null {
  for (const value of values) {
    const [first] = messageIdsOf(value)
    if (first !== undefined) return first
  }
  const word = values.map((value) => value.trim()).find((value) => /^[^\s<>]{1,998}$/.test(value))
  return word ?? null
}

/** References, oldest first. Of a very long list the root and the newest stay: the root names the thread, the newest the parent. */
export function cappedReferences(ids: readonly string[]): string[] {
  if (ids.length <= maxReferences) return [...ids]
  return [...ids.slice(0, 1), ...ids.slice(1 - maxReferences)]
}
