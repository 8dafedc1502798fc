/** A raw message as a session would fetch it, for tests without a server. */
import { bodyNodeOf } from '../../../engine/messages/structure.ts'
import { indexedHeaders, type FetchedMessage } from '../../../engine/accounts/session-types.ts'

/** The lines of the header block that BODY.PEEK[HEADER.FIELDS (…)] answers with. */
function indexedBlock(raw: Buffer): Buffer {
  const names = new Set(indexedHeaders.map((name) => name.toLowerCase()))
  const lines: string[] = []
  let kept = false
  for (const line of raw.toString('latin1').split('\n')) {
    if (line === '' || line === '\r') break
    if (!/^[ \t]/.test(line)) kept = names.has(line.slice(0, line.indexOf(':')).trim().toLowerCase())
    if (kept) lines.push(`${line.replace(/\r$/, '')}\r\n`)
  }
  return Buffer.from(`${lines.join('')}\r\n`, 'latin1')
}

export function fetchedOf(raw: Buffer, more: Partial<FetchedMessage> = {}): FetchedMessage {
  return {
    uid: 1,
    flags: [],
    modseq: null,
    internalDate: Date.UTC(2024, 2, 6),
    size: raw.length,
    body: bodyNodeOf(raw),
    headers: indexedBlock(raw),
    emailId: null,
    threadId: null,
    ...more,
  }
}
