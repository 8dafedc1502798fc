/**
 * Mailbox names: UTF-8 with us, modified UTF-7 (RFC 3501 §5.1.3) on the wire. And what a mailbox is for: by attribute
 * (RFC 6154, XLIST), else by its name; each use is given once.
 */
import { decode, encode } from 'iconv-lite'
import { own } from '../../own.ts'
import type { SpecialUse } from '../../store/records.ts'
import type { ListedMailbox } from '../session-types.ts'
import { specialUse as guess } from './below.ts'

export type Names = ReturnType<typeof createNames>

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

/** Names that are not valid in that code ("R&D", raw UTF-8) are shown as they are, and sent as they came. */
export function createNames() {
  const odd = new Map<string, string>()
  return {
    toWire: (path: string): string => odd.get(path) ?? encodeName(path),
    fromWire(wire: string): string {
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

/** As LIST tells it. */
export type Listed = Pick<ListedMailbox, 'path' | 'attributes' | 'delimiter'> &
  Partial<Pick<ListedMailbox, 'status' | 'byName'>>

const byAttribute: Readonly<Record<string, SpecialUse>> = {
  '\\all': '\\All',
  '\\allmail': '\\All',
  '\\archive': '\\Archive',
  '\\drafts': '\\Drafts',
  '\\flagged': '\\Flagged',
  '\\starred': '\\Flagged',
  '\\junk': '\\Junk',
  '\\spam': '\\Junk',
  '\\sent': '\\Sent',
  '\\trash': '\\Trash',
  '\\important': '\\Important',
  '\\inbox': '\\Inbox',
}

function isSelectable({ attributes }: Listed): boolean {
  return !attributes.some((attribute) => ['\\noselect', '\\nonexistent'].includes(attribute.toLowerCase()))
}

function levelsOf({ path, delimiter }: Listed): string[] {
  return delimiter === '' ? [path] : path.split(delimiter)
}

interface Claim {
  readonly use: SpecialUse
  /** Lower wins: told by the server, the very name, a name like it. */
  readonly rank: number
}

function claimOf(listed: Listed): Claim | null {
  if (listed.path === 'INBOX') return { use: '\\Inbox', rank: 0 }
  const told = listed.attributes
    .map((attribute) => own(byAttribute, attribute.toLowerCase()))
    .find((use) => use !== undefined)
  if (told !== undefined && told !== '\\Inbox') return { use: told, rank: 0 }
  if (!isSelectable(listed)) return null
  const { flag, source } = guess(false, { flags: new Set(), name: levelsOf(listed).at(-1) ?? '' })
  const use = flag === null ? undefined : own(byAttribute, flag.toLowerCase())
  return use === undefined || use === '\\Inbox' ? null : { use, rank: source === 'name' ? 1 : 2 }
}

/** In the server's order. The shallower mailbox wins among equals. */
export function assignSpecialUse(all: readonly Listed[]): ListedMailbox[] {
  const claims = all.flatMap((listed) => {
    const claim = claimOf(listed)
    return claim === null ? [] : [{ ...claim, listed, depth: levelsOf(listed).length }]
  })
  const given = new Map<SpecialUse, Listed>()
  for (const { use, listed } of claims.sort((a, b) => a.rank - b.rank || a.depth - b.depth))
    if (!given.has(use)) given.set(use, listed)
  const uses = new Map([...given].map(([use, listed]) => [listed, use]))
  return all.map((listed) => ({
    status: null,
    byName: false,
    ...listed,
    specialUse: uses.get(listed) ?? null,
    selectable: isSelectable(listed),
  }))
}
