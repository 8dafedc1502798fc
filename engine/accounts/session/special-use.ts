/** Special use of mailboxes: by attribute (RFC 6154, XLIST), else by name, each use given once. */
import { specialUse as guess } from 'imapflow/lib/special-use.js'
import { own } from '../../own.ts'
import type { SpecialUse } from '../../store/records.ts'
import type { ListedMailbox, MailboxStatus } from '../session-types.ts'

export interface Listed {
  readonly path: string
  readonly attributes: readonly string[]
  readonly delimiter: string
  readonly status?: MailboxStatus
  readonly byName?: boolean
}

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

function has(listed: Listed, ...names: readonly string[]): boolean {
  return listed.attributes.some((attribute) => names.includes(attribute.toLowerCase()))
}

interface Claim {
  readonly use: SpecialUse
  readonly listed: Listed
  /** Lower wins: told by the server, the very name, a name like it. */
  readonly rank: number
}

function nameClaim(listed: Listed): Claim | null {
  if (has(listed, '\\noselect', '\\nonexistent')) return null
  const name = listed.delimiter === '' ? listed.path : (listed.path.split(listed.delimiter).at(-1) ?? '')
  const { flag, source } = guess(false, { flags: new Set(), name })
  const use = flag === null ? undefined : own(byAttribute, flag.toLowerCase())
  return use === undefined || use === '\\Inbox' ? null : { use, listed, rank: source === 'name' ? 1 : 2 }
}

function claimsOf(listed: Listed): Claim[] {
  if (listed.path === 'INBOX') return [{ use: '\\Inbox', listed, rank: 0 }]
  const told = listed.attributes
    .map((attribute) => own(byAttribute, attribute.toLowerCase()))
    .find((use) => use !== undefined)
  if (told !== undefined && told !== '\\Inbox') return [{ use: told, listed, rank: 0 }]
  const named = nameClaim(listed)
  return named ? [named] : []
}

function depth({ path, delimiter }: Listed): number {
  return delimiter === '' ? 1 : path.split(delimiter).length
}

/** In the server's order. The shallower mailbox wins among equals. */
export function assignSpecialUse(all: readonly Listed[]): ListedMailbox[] {
  const claims = all.flatMap(claimsOf).sort((a, b) => a.rank - b.rank || depth(a.listed) - depth(b.listed))
  const given = new Map<Listed, SpecialUse>()
  const taken = new Set<SpecialUse>()
  for (const { use, listed } of claims) {
    if (taken.has(use)) continue
    taken.add(use)
    given.set(listed, use)
  }
  return all.map((listed) => ({
    path: listed.path,
    delimiter: listed.delimiter,
    attributes: listed.attributes,
    specialUse: given.get(listed) ?? null,
    selectable: !has(listed, '\\noselect', '\\nonexistent'),
    status: listed.status ?? null,
    byName: listed.byName ?? false,
  }))
}
