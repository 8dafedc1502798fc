/**
 * A small IMAP server for tests and the demo: mailboxes in memory, real enough for a real client, and scriptable: hooks
 * may answer any command differently and change any response, which is how tests play the servers of imap-servers.md.
 * Commands before login are not refused for want of it: the client under test has to do that right by itself.
 */
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { authHandlers } from './auth.ts'
import { serveConnection, type ServedConnection, type ServerState } from './connection.ts'
import { folderHandlers } from './folders.ts'
import type { Hooks } from './hooks.ts'
import {
  type AccessToken,
  addMessage,
  changed,
  createFolder,
  folderKey,
  messageByUid,
  nextModseq,
  removeMessages,
  renameFolder,
  type Folder,
  type Message,
  type User,
} from './mailbox.ts'
import { messageHandlers } from './messages.ts'

export type { HookAnswer, HookCall, Hooks } from './hooks.ts'
export type { Folder, Message } from './mailbox.ts'

export interface UserOptions {
  readonly password?: string
  readonly accessToken?: AccessToken
  /** Folder name → attributes. Default: INBOX, Archive, Drafts, Junk, Sent, Trash with their special use. */
  readonly folders?: Readonly<Record<string, readonly string[]>>
}

export interface ImapServerOptions {
  readonly users: Readonly<Record<string, UserOptions>>
  readonly capabilities?: readonly string[]
  readonly hooks?: Hooks
  readonly delimiter?: string
  /** Default 0: any. */
  readonly port?: number
  /** PEM. 'implicit' = TLS from the first byte, 'starttls' = offered. */
  readonly tls?: { readonly key: string; readonly cert: string; readonly mode: 'implicit' | 'starttls' }
}

export const fullCapabilities: readonly string[] = [
  'IMAP4rev1',
  'LITERAL+',
  'SASL-IR',
  'AUTH=PLAIN',
  'AUTH=XOAUTH2',
  'ID',
  'IDLE',
  'NAMESPACE',
  'ENABLE',
  'CONDSTORE',
  'UIDPLUS',
  'MOVE',
  'UNSELECT',
  'CHILDREN',
  'SPECIAL-USE',
  'LIST-EXTENDED',
  'LIST-STATUS',
]

/** What is left of it with a plain RFC 3501 server. */
export const plainCapabilities: readonly string[] = ['IMAP4rev1', 'AUTH=PLAIN']

const standardFolders: Readonly<Record<string, readonly string[]>> = {
  INBOX: [],
  Archive: ['\\Archive'],
  Drafts: ['\\Drafts'],
  Junk: ['\\Junk'],
  Sent: ['\\Sent'],
  Trash: ['\\Trash'],
}

const handlers = new Map([...authHandlers, ...folderHandlers, ...messageHandlers])

/** The last lines of talk: 'C: …' and 'S: …' with the number of the connection. */
const logLength = 5000

export interface ImapServer {
  readonly host: string
  readonly port: number
  /** Exchange them while it runs. */
  hooks: Hooks
  /** Likewise; the next CAPABILITY says so. */
  capabilities: readonly string[]
  readonly log: readonly { readonly connection: number; readonly line: string }[]
  /** Open connections. */
  readonly connections: readonly {
    readonly id: number
    readonly user: string | null
    readonly folder: string | null
    readonly idling: boolean
  }[]
  /** Connections accepted since the start. */
  readonly accepted: number
  addUser(name: string, options?: UserOptions): void
  setPassword(user: string, password: string): void
  setAccessToken(user: string, token: AccessToken): void
  folder(user: string, name: string): Folder
  folders(user: string): readonly Folder[]
  createFolder(user: string, name: string, attributes?: readonly string[]): Folder
  deleteFolder(user: string, name: string): void
  /** UIDVALIDITY and messages stay. A connection that has it open keeps it. */
  renameFolder(user: string, name: string, to: string): void
  /** Answers the UID. */
  append(user: string, folder: string, raw: string | Buffer, flags?: readonly string[], internalDate?: Date): number
  /** As COPY of another client. Answers the UID. */
  copy(user: string, from: string, uid: number, to: string): number
  setFlags(user: string, folder: string, uid: number, flags: readonly string[]): void
  expunge(user: string, folder: string, ...uids: readonly number[]): void
  /** A new UIDVALIDITY; the messages that it keeps are numbered anew from 1. */
  renumber(user: string, folder: string, keeps?: (message: Message) => boolean): void
  /** Takes the newest message out and gives its UID again, to another one: a server without a memory. */
  reuse(user: string, folder: string, raw: string | Buffer, internalDate?: Date): void
  /** Sends a line to every connection (of this user), as it is. */
  say(line: string, user?: string): void
  /** Cuts every connection (of this user) without a word. */
  dropConnections(user?: string): void
  /** The same of one connection. */
  dropConnection(id: number): void
  close(): Promise<void>
}

function userOf(state: ServerState, name: string): User {
  const user = state.users.get(name)
  if (!user) throw new Error(`no user ${name}`)
  return user
}

function folderIn(state: ServerState, user: string, name: string): Folder {
  const folder = userOf(state, user).folders.get(folderKey(name))
  if (!folder) throw new Error(`no folder ${name} of ${user}`)
  return folder
}

function messageIn(folder: Folder, uid: number): Message {
  const message = messageByUid(folder, uid)
  if (!message) throw new Error(`no message ${uid} in ${folder.name}`)
  return message
}

function addUser(state: ServerState, name: string, options: UserOptions): void {
  const { password = 'secret', accessToken = null, folders = standardFolders } = options
  const user: User = { name, password, accessToken, folders: new Map() }
  for (const [folder, attributes] of Object.entries(folders)) createFolder(user, folder, attributes)
  state.users.set(name, user)
}

/** LF in a text becomes CRLF, so that tests can write messages plainly. */
function wireBytes(raw: string | Buffer): Buffer {
  return typeof raw === 'string' ? Buffer.from(raw.replace(/\r?\n/g, '\r\n')) : raw
}

function mailboxApi(state: ServerState) {
  return {
    addUser: (name: string, options: UserOptions = {}) => addUser(state, name, options),
    setPassword: (user: string, password: string) => void (userOf(state, user).password = password),
    setAccessToken: (user: string, token: AccessToken) => void (userOf(state, user).accessToken = token),
    folder: (user: string, name: string) => folderIn(state, user, name),
    folders: (user: string) => [...userOf(state, user).folders.values()],
    createFolder: (user: string, name: string, attributes?: readonly string[]) =>
      createFolder(userOf(state, user), name, attributes),
    deleteFolder: (user: string, name: string) => void userOf(state, user).folders.delete(folderKey(name)),
    renameFolder: (user: string, name: string, to: string) =>
      renameFolder(userOf(state, user), folderIn(state, user, name), to),
    append(
      user: string,
      name: string,
      raw: string | Buffer,
      flags: readonly string[] = [],
      internalDate?: Date,
    ): number {
      const folder = folderIn(state, user, name)
      const date = internalDate ? { internalDate: internalDate.getTime() } : {}
      const { uid } = addMessage(folder, { raw: wireBytes(raw), flags, ...date })
      changed(folder)
      return uid
    },
    copy(user: string, from: string, uid: number, to: string): number {
      const like = messageIn(folderIn(state, user, from), uid)
      const folder = folderIn(state, user, to)
      const copied = addMessage(folder, { ...like, like })
      changed(folder)
      return copied.uid
    },
    setFlags(user: string, name: string, uid: number, flags: readonly string[]): void {
      const folder = folderIn(state, user, name)
      const message = messageIn(folder, uid)
      message.flags = new Set(flags)
      message.modseq = nextModseq(folder)
      changed(folder)
    },
    expunge(user: string, name: string, ...uids: readonly number[]): void {
      const folder = folderIn(state, user, name)
      removeMessages(folder, (message) => uids.includes(message.uid))
      changed(folder)
    },
    reuse(user: string, name: string, raw: string | Buffer, internalDate?: Date): void {
      const folder = folderIn(state, user, name)
      const last = folder.messages.at(-1)
      if (last !== undefined) {
        removeMessages(folder, (message) => message === last)
        folder.uidNext = last.uid
      }
      const date = internalDate ? { internalDate: internalDate.getTime() } : {}
      addMessage(folder, { raw: wireBytes(raw), ...date })
      changed(folder)
    },
    renumber(user: string, name: string, keeps: (message: Message) => boolean = () => true): void {
      const folder = folderIn(state, user, name)
      folder.uidValidity += 1
      folder.messages = folder.messages.filter(keeps).map((message, index) => ({ ...message, uid: index + 1 }))
      folder.uidNext = folder.messages.length + 1
      changed(folder)
    },
  }
}

export async function createImapServer(options: ImapServerOptions): Promise<ImapServer> {
  const { tls, hooks = {}, delimiter = '/' } = options
  const log: { connection: number; line: string }[] = []
  const open = new Map<number, ServedConnection>()
  let accepted = 0
  const offered = tls?.mode === 'starttls' ? ['STARTTLS'] : []
  const state: ServerState = {
    users: new Map(),
    capabilities: [...(options.capabilities ?? fullCapabilities), ...offered],
    hooks,
    delimiter,
    secureContext: tls ? createSecureContext({ key: tls.key, cert: tls.cert }) : null,
    log(connection, line) {
      log.push({ connection, line })
      if (log.length > logLength) log.splice(0, log.length - logLength)
    },
  }
  for (const [name, user] of Object.entries(options.users)) addUser(state, name, user)

  function serve(socket: Socket): void {
    accepted += 1
    const id = accepted
    socket.setNoDelay(true)
    const connection = serveConnection(socket, id, state, handlers, () => open.delete(id))
    open.set(id, connection)
    const shown = state.capabilities.filter((name) => name !== 'STARTTLS' || !connection.secure).join(' ')
    const greeting = state.hooks.greeting ? state.hooks.greeting(id) : `* OK [CAPABILITY ${shown}] ready`
    if (greeting !== null) void connection.send(greeting)
    if (greeting?.startsWith('* BYE')) connection.close()
  }

  const listener =
    tls?.mode === 'implicit' ? createTlsServer({ key: tls.key, cert: tls.cert }, serve) : createTcpServer(serve)
  // A client that breaks off its TLS handshake is no affair of the server.
  listener.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const chosen = (user?: string): ServedConnection[] =>
    [...open.values()].filter((connection) => user === undefined || connection.user?.name === user)

  return {
    ...mailboxApi(state),
    host: '127.0.0.1',
    port: (listener.address() as AddressInfo).port,
    log,
    get hooks() {
      return state.hooks
    },
    set hooks(next) {
      state.hooks = next
    },
    get capabilities() {
      return state.capabilities
    },
    set capabilities(next) {
      state.capabilities = next
    },
    get connections() {
      return [...open.values()].map(({ id, user, folder, idling }) => ({
        id,
        user: user?.name ?? null,
        folder: folder?.name ?? null,
        idling,
      }))
    },
    get accepted() {
      return accepted
    },
    say(line, user) {
      for (const connection of chosen(user)) void connection.send(line)
    },
    dropConnections(user) {
      for (const connection of chosen(user)) connection.destroy()
    },
    dropConnection: (id) => open.get(id)?.destroy(),
    async close() {
      for (const connection of chosen()) connection.destroy()
      await new Promise<void>((resolve) => listener.close(() => resolve()))
    },
  }
}
