/** How far a reader has come in the change logs of a user's email accounts: account id → sequence number, as one opaque text. */
import { badParameter } from '../../../engine/index.ts'

export type Cursor = ReadonlyMap<string, number>

/** More accounts than a user has, and a bound on what we read. */
const longest = 65_536

export function writeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(cursor))).toString('base64url')
}

/** Throws `bad_request` naming `parameter` for anything but a cursor of ours. */
export function readCursor(parameter: string, text: string): Cursor {
  const entries = text.length > longest ? null : entriesOf(text)
  if (entries === null) throw badParameter(parameter, 'not a cursor of this API')
  return new Map(entries)
}

function entriesOf(text: string): [string, number][] | null {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const entries = Object.entries(value)
  return entries.every(isEntry) ? entries : null
}

function isEntry(entry: [string, unknown]): entry is [string, number] {
  const [id, seq] = entry
  return /^[0-9a-f]{24}$/.test(id) && Number.isSafeInteger(seq) && Number(seq) >= 0
}
