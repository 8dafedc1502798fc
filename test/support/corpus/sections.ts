/** The bytes of an IMAP section of a raw message, as BODY[section] would give them, for tests without a server. */

/** Splits a message into header and body at the first empty line. */
function bodyOf(raw: Buffer): Buffer {
  const text = raw.toString('latin1')
  const empty = /(?:^|\n)\r?\n/.exec(text)
  return empty ? raw.subarray(empty.index + empty[0].length) : Buffer.alloc(0)
}

function boundaryOf(raw: Buffer): string | null {
  const header = raw.subarray(0, raw.length - bodyOf(raw).length).toString('latin1')
  return /^content-type:\s*multipart\/[^\n]*?boundary="?([^"\r\n;]+)"?/im.exec(header)?.[1] ?? null
}

/** Written apart from the code under test, with split: only for well-formed boundaries. */
export function sectionOf(raw: Buffer, section: string): Buffer {
  const boundary = section === 'TEXT' ? null : boundaryOf(raw)
  if (boundary === null) return bodyOf(raw)
  const [first = '', ...deeper] = section.split('.')
  const text = `\r\n${bodyOf(raw).toString('latin1')}`
  const parts = text.split(`\r\n--${boundary}--`)[0]?.split(`\r\n--${boundary}\r\n`) ?? []
  const entity = Buffer.from(parts[Number(first)] ?? '', 'latin1')
  return deeper.length > 0 ? sectionOf(entity, deeper.join('.')) : bodyOf(entity)
}
