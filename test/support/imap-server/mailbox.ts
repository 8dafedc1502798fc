/** Mailboxes in memory: users, folders, messages, and who has to hear of a change. */
import { createHash, randomBytes } from 'node:crypto'
import { parseMime, type Part } from './mime.ts'

export interface Message {
  uid: number
  readonly raw: Buffer
  flags: Set<string>
  readonly internalDate: number
  modseq: bigint
  /** Decimal: X-GM-MSGID; with an M before it: EMAILID. Kept by COPY and MOVE. */
  readonly identity: string
  readonly thread: string
  labels: Set<string>
  mime?: Part
}

export interface Folder {
  readonly user: string
  name: string
  uidValidity: number
  uidNext: number
  highestModseq: bigint
  /** Ascending UIDs. */
  messages: Message[]
  attributes: string[]
  subscribed: boolean
  /** Counts every change: a connection that has seen this number has nothing to tell. */
  version: number
  readonly watchers: Set<() => void>
}

/** What XOAUTH2 and OAUTHBEARER accept: this one, or what the function says yes to; null = none. */
export type AccessToken = string | null | ((token: string) => Promise<boolean>)

export interface User {
  readonly name: string
  password: string
  accessToken: AccessToken
  readonly folders: Map<string, Folder>
}

export function mimeOf(message: Message): Part {
  message.mime ??= parseMime(message.raw)
  return message.mime
}

/** Folder names without case where IMAP has none: INBOX. */
export function folderKey(name: string): string {
  return name.toUpperCase() === 'INBOX' ? 'INBOX' : name
}

export function createFolder(user: User, name: string, attributes: readonly string[] = []): Folder {
  const folder: Folder = {
    user: user.name,
    name: folderKey(name),
    uidValidity: 1 + (randomBytes(4).readUInt32BE() % 2_000_000_000),
    uidNext: 1,
    highestModseq: 1n,
    messages: [],
    attributes: [...attributes],
    subscribed: true,
    version: 0,
    watchers: new Set(),
  }
  user.folders.set(folder.name, folder)
  return folder
}

export function renameFolder(user: User, folder: Folder, name: string): void {
  user.folders.delete(folder.name)
  folder.name = name
  user.folders.set(name, folder)
  changed(folder)
}

/** Tells every connection that has the folder open; call after each change. */
export function changed(folder: Folder): void {
  folder.version += 1
  for (const watcher of [...folder.watchers]) watcher()
}

export function nextModseq(folder: Folder): bigint {
  folder.highestModseq += 1n
  return folder.highestModseq
}

function numberFrom(text: string): string {
  return (BigInt(`0x${createHash('sha256').update(text).digest('hex').slice(0, 15)}`) + 1n).toString()
}

export interface NewMessage {
  readonly raw: Buffer
  readonly flags?: Iterable<string>
  readonly internalDate?: number
  /** From a copy: same identity. */
  readonly like?: Message
}

/** A UID that is given again is another message. */
function identityOf({ user, name, uidValidity }: Folder, uid: number, raw: Buffer): string {
  return numberFrom(`${user} ${name} ${uidValidity} ${uid} ${raw.toString('latin1')}`)
}

export function addMessage(folder: Folder, fresh: NewMessage): Message {
  const uid = folder.uidNext
  folder.uidNext += 1
  const mime = fresh.like?.mime
  const message: Message = {
    uid,
    raw: fresh.raw,
    flags: new Set(fresh.flags ?? []),
    internalDate: fresh.internalDate ?? Date.now(),
    modseq: nextModseq(folder),
    identity: fresh.like?.identity ?? identityOf(folder, uid, fresh.raw),
    thread: fresh.like?.thread ?? threadOf(folder, fresh.raw),
    labels: new Set(fresh.like?.labels ?? []),
    ...(mime ? { mime } : {}),
  }
  folder.messages.push(message)
  return message
}

/** Messages of one conversation share the first Message-ID that they refer to. */
function threadOf(folder: Folder, raw: Buffer): string {
  const header = raw.subarray(0, 16_384).toString('latin1')
  const root =
    /^references:\s*(<[^>]*>)/im.exec(header) ??
    /^in-reply-to:\s*(<[^>]*>)/im.exec(header) ??
    /^message-id:\s*(<[^>]*>)/im.exec(header)
  return numberFrom(`${folder.user} thread ${root?.[1] ?? randomBytes(8).toString('hex')}`)
}

export function removeMessages(folder: Folder, gone: (message: Message) => boolean): Message[] {
  const removed = folder.messages.filter(gone)
  if (removed.length === 0) return removed
  const lost = new Set(removed)
  folder.messages = folder.messages.filter((message) => !lost.has(message))
  nextModseq(folder)
  return removed
}

/** Binary search by UID. */
export function messageByUid(folder: Folder, uid: number): Message | null {
  let low = 0
  let high = folder.messages.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const message = folder.messages[middle]
    if (!message) return null
    if (message.uid === uid) return message
    if (message.uid < uid) low = middle + 1
    else high = middle - 1
  }
  return null
}
