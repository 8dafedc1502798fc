/**
 * What only the mail server has: text bodies and the header block, read when a callback is about to go out and kept nowhere.
 * Errors of the mail server pass through as they come (AppError).
 */
import type { AccountCommands } from '../accounts/types.ts'
import { decodeBody } from '../messages/bodies.ts'
import { headerBlockText, headerObject } from '../messages/headers.ts'
import { htmlText } from '../messages/html-text.ts'
import type { BodyPartRecord, MessageRecord, WebhookRecord } from '../store/records.ts'
import { canonicalName } from './header-names.ts'
import type { BodyContent, Contents } from './message-data.ts'

export type Mail = Pick<AccountCommands, 'fetchParts' | 'fetchHeaders'>

type Wishes = Pick<WebhookRecord, 'includeBody' | 'bodyType' | 'includeHeader'>

export interface ReadContents {
  readonly contents: Contents
  /** For body_search: decoded bodies, of HTML ones the text that is seen. */
  readonly searchable: readonly string[]
}

/** Nothing read: bodies are named, not given. `truncated` when something was asked for. */
export function namedOnly(wishes: Wishes, message: MessageRecord): Contents {
  const bodies = message.bodies.map((part) => bodyContent(part))
  return { bodies, truncated: wishes.includeBody || wishes.includeHeader !== null }
}

export function wantsContents(wishes: Wishes): boolean {
  return wishes.includeBody || wishes.includeHeader !== null
}

/**
 * Reads what is asked for. `maxBytes` bounds each part as transferred; bodies that are larger than that together are not
 * given (they would not fit the callback), but are searched as far as they were read.
 */
export async function readContents(
  mail: Mail,
  message: MessageRecord,
  wishes: Wishes,
  options: { readonly search: boolean; readonly maxBytes: number },
): Promise<ReadContents> {
  const wanted = message.bodies.filter((part) => wishes.bodyType === null || part.type === wishes.bodyType)
  const fits = wanted.reduce((sum, part) => sum + part.size, 0) <= options.maxBytes
  const give = wishes.includeBody && fits
  const read =
    give || options.search ? await readTexts(mail, message, wanted, options.maxBytes) : new Map<string, string>()
  const headers = await readHeaderBlock(mail, message, wishes.includeHeader)
  const listed = wishes.includeBody ? wanted : message.bodies
  return {
    contents: {
      bodies: listed.map((part) => bodyContent(part, give ? read.get(part.section) : undefined)),
      ...(headers === undefined ? {} : { headers }),
      truncated: wishes.includeBody && (!give || wanted.some((part) => !read.has(part.section))),
    },
    searchable: wanted.flatMap((part) => searchable(part, read.get(part.section))),
  }
}

async function readTexts(
  mail: Mail,
  message: MessageRecord,
  parts: readonly BodyPartRecord[],
  maxBytes: number,
): Promise<Map<string, string>> {
  if (parts.length === 0) return new Map()
  const sections = parts.map((part) => part.section)
  const raw = await mail.fetchParts(message.accountId, message, sections, maxBytes)
  const texts = new Map<string, string>()
  for (const part of parts) {
    const bytes = raw.get(part.section)
    if (bytes !== undefined) texts.set(part.section, decodeBody(bytes, part))
  }
  return texts
}

async function readHeaderBlock(
  mail: Mail,
  message: MessageRecord,
  how: WebhookRecord['includeHeader'],
): Promise<Contents['headers']> {
  if (how === null) return undefined
  const block = await mail.fetchHeaders(message.accountId, message)
  if (how === 'raw') return headerBlockText(block)
  return Object.fromEntries(Object.entries(headerObject(block)).map(([name, values]) => [canonicalName(name), values]))
}

function bodyContent(part: BodyPartRecord, content?: string): BodyContent {
  const named = { type: part.type, charset: part.charset ?? '', body_section: part.section }
  return content === undefined ? named : { ...named, charset: 'utf-8', content }
}

function searchable(part: BodyPartRecord, text: string | undefined): string[] {
  if (text === undefined) return []
  return [part.type === 'text/html' ? htmlText(text) : text]
}
