/** Mailbox names: UTF-8 in the engine, modified UTF-7 (RFC 3501 §5.1.3) on the wire. */
import { decode, encode } from 'iconv-lite'

function encodeName(path: string): string {
  return /^[\x20-\x25\x27-\x7e]*$/.test(path) ? path : encode(path, 'utf-7-imap').toString('latin1')
}

/** Every `&` begins `&-` or a run of at least one UTF-16 unit that ends with `-`. */
const shiftedWell = /^(?:[^&]|&(?:[A-Za-z0-9+,]{3,})?-)*$/

export function shownName(wire: string): string {
  if (wire.toUpperCase() === 'INBOX') return 'INBOX'
  const decoded = wire.includes('&') ? decode(Buffer.from(wire, 'latin1'), 'utf-7-imap') : wire
  const isValid = encodeName(decoded) === wire || (shiftedWell.test(wire) && !decoded.includes('\ufffd'))
  return isValid ? decoded : wire
}

/** Invalid names that are kept: a server may list other ones each time. */
const mostOdd = 10_000

export type Names = ReturnType<typeof createNames>

/**
 * Names that are invalid in modified UTF-7 ("R&D", raw UTF-8) are shown undecoded, and sent in the server's form. All
 * connections of an account share them, because not each connection lists.
 */
export function createNames() {
  const odd = new Map<string, string>()
  return {
    toWire: (path: string): string => odd.get(path) ?? encodeName(path),
    fromWire(wire: string): string {
      const shown = shownName(wire)
      odd.delete(shown)
      if (shown === 'INBOX' || encodeName(shown) === wire) return shown
      odd.set(shown, wire)
      const [oldest = shown] = odd.keys()
      if (odd.size > mostOdd) odd.delete(oldest)
      return shown
    },
  }
}
