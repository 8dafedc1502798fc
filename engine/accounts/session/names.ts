/** Mailbox names: UTF-8 with us, modified UTF-7 (RFC 3501 §5.1.3) on the wire. */
import { decode, encode } from 'iconv-lite'

export interface Names {
  toWire(path: string): string
  fromWire(wire: string): string
}

function encodeName(path: string): string {
  return /^[\x20-\x25\x27-\x7e]*$/.test(path) ? path : encode(path, 'utf-7-imap').toString('latin1')
}

/** One name from its wire form, as it is when it is not valid in that code. */
export function inflateName(wire: string): string {
  return wire.includes('&') ? decode(Buffer.from(wire, 'latin1'), 'utf-7-imap') : wire
}

/** Every `&` begins `&-` or a run of at least one UTF-16 unit that ends with `-`. */
const shiftedWell = /^(?:[^&]|&(?:[A-Za-z0-9+,]{3,})?-)*$/

/** A server may list others each time. */
const mostOdd = 10_000

/**
 * Servers list names that are not valid in that code ("R&D", raw UTF-8): these are shown as they are, and remembered with what
 * has to be sent for them.
 */
export function createNames(): Names {
  const odd = new Map<string, string>()
  return {
    toWire: (path) => odd.get(path) ?? encodeName(path),
    fromWire(wire) {
      if (wire.toUpperCase() === 'INBOX') return 'INBOX'
      const decoded = inflateName(wire)
      if (encodeName(decoded) === wire) return decoded
      const shown = shiftedWell.test(wire) && !decoded.includes('\ufffd') ? decoded : wire
      odd.delete(shown)
      odd.set(shown, wire)
      const [oldest = shown] = odd.keys()
      if (odd.size > mostOdd) odd.delete(oldest)
      return shown
    },
  }
}
