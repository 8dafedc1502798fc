/** One client connection: reads commands one after the other, runs them, tells what changed in the open folder. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import type { HookAnswer, HookCall, Hooks } from './hooks.ts'
import type { Folder, Message, User } from './mailbox.ts'
import { flagList, statusLine } from './fetch.ts'
import { SyntaxProblem, createLineReader, parseCommand, type ClientCommand, type Piece } from './tokens.ts'

export interface ServerState {
  readonly users: Map<string, User>
  /** As advertised; a capability that is absent is also refused. */
  capabilities: readonly string[]
  hooks: Hooks
  readonly delimiter: string
  /** For STARTTLS; null = not offered. */
  readonly secureContext: SecureContext | null
  log(connection: number, line: string): void
}

/** What commands may do with their connection. */
export interface Connection {
  readonly id: number
  readonly server: ServerState
  user: User | null
  folder: Folder | null
  readOnly: boolean
  /** The folder's messages as this client was told: index + 1 = sequence number. */
  view: Message[]
  readonly secure: boolean
  capabilities(): ReadonlySet<string>
  /** One response; CRLF is added. Resolves when the socket takes more. */
  send(response: string | Buffer): Promise<void>
  /** The next line as it is: SASL answers and DONE. null when the client went away. */
  nextLine(): Promise<string | null>
  open(folder: Folder | null, readOnly: boolean): void
  /** The folder as STATUS has it: the open one as this client was told, unless IDLE tells nothing. */
  shown(folder: Folder): Folder
  /** EXISTS, EXPUNGE and FETCH FLAGS of what changed since; without expunges where the protocol forbids them. */
  sync(expunges: boolean): Promise<void>
  /** These flags the client has just been told. */
  told(messages: Iterable<Message>): void
  setIdling(on: boolean): void
  /** From now on STATUS tells of the user's other folders, those that are there. */
  notify(): void
  startTls(): Promise<void>
  close(): void
}

/** Answers a command: the tagged response without its tag. */
export type Handler = (connection: Connection, command: ClientCommand) => Promise<string>

export interface ServedConnection extends Connection {
  readonly socket: Socket
  readonly idling: boolean
  destroy(): void
}

export function serveConnection(
  first: Socket,
  id: number,
  server: ServerState,
  handlers: ReadonlyMap<string, Handler>,
  onClosed: () => void,
): ServedConnection {
  let socket: Socket = first
  let closed = false
  let idling = false
  let running: HookCall | null = null
  let waitingLine: ((line: string | null) => void) | null = null
  let seenModseq = 0n
  let seenUidNext = 1
  let seenVersion = -1
  /** The response that a hook holds back, or the last one behind it. */
  let held: Promise<void> | null = null
  const lines: string[] = []
  const recentlyTold = new Set<Message>()
  const queue: Piece[][] = []
  let busy = false

  const reader = createLineReader({
    onLiteralAnnounced: () => void connection.send('+ go ahead'),
    onCommand(pieces) {
      queue.push(pieces)
      void drainQueue()
    },
    onPlainLine(line) {
      server.log(id, `C: ${line}`)
      if (waitingLine) waitingLine(line)
      else lines.push(line)
    },
  })

  function onEnd(): void {
    if (closed) return
    closed = true
    reader.stop()
    connection.open(null, false)
    waitingLine?.(null)
    socket.destroy()
    onClosed()
  }

  function attach(next: Socket): void {
    socket = next
    socket.on('data', (chunk: Buffer) => reader.feed(chunk))
    socket.on('error', onEnd)
    socket.on('close', onEnd)
    socket.on('end', onEnd)
  }

  async function write(chosen: Buffer | string | null): Promise<void> {
    if (chosen === null || closed) return
    const out = typeof chosen === 'string' ? Buffer.from(chosen) : chosen
    server.log(id, `S: ${out.toString('utf8', 0, 300).slice(0, 300).trimEnd()}`)
    if (socket.write(out)) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        socket.off('drain', done)
        socket.off('close', done)
        resolve()
      }
      socket.on('drain', done)
      socket.on('close', done)
      if (closed) done()
    })
  }

  const unreported = new Set<Folder>()

  /** By NOTIFY: of folders that are not open. */
  async function report(): Promise<void> {
    for (const folder of [...unreported]) {
      unreported.delete(folder)
      const items = ['MESSAGES', 'UIDNEXT', 'UIDVALIDITY', 'UNSEEN', 'HIGHESTMODSEQ']
      if (folder !== connection.folder) await connection.send(statusLine(folder, items, connection.capabilities()))
    }
  }

  function onChange(): void {
    if (idling && server.hooks.silentIdle === undefined) void connection.sync(true)
  }

  const connection: ServedConnection = {
    id,
    server,
    user: null,
    folder: null,
    readOnly: false,
    view: [],
    get socket() {
      return socket
    },
    get secure() {
      return socket instanceof TLSSocket
    },
    get idling() {
      return idling
    },
    capabilities() {
      return new Set(server.capabilities)
    },
    async send(response) {
      const bytes = typeof response === 'string' ? Buffer.from(response) : response
      const whole = Buffer.concat([bytes, Buffer.from('\r\n')])
      const chosen = server.hooks.send ? server.hooks.send(whole, running) : whole
      if (held === null && !(chosen instanceof Promise)) return write(chosen)
      const turn = Promise.all([chosen, held]).then(([out]) => write(out))
      held = turn
      await turn
      if (held === turn) held = null
    },
    nextLine() {
      const line = lines.shift()
      if (line !== undefined) return Promise.resolve(line)
      if (closed) return Promise.resolve(null)
      reader.setPlain(true)
      return new Promise((resolve) => {
        waitingLine = (text) => {
          waitingLine = null
          reader.setPlain(false)
          resolve(text)
        }
      })
    },
    open(folder, readOnly) {
      connection.folder?.watchers.delete(onChange)
      connection.folder = folder
      connection.readOnly = readOnly
      connection.view = folder ? [...folder.messages] : []
      seenModseq = folder?.highestModseq ?? 0n
      seenUidNext = folder?.uidNext ?? 1
      seenVersion = folder?.version ?? -1
      recentlyTold.clear()
      folder?.watchers.add(onChange)
    },
    shown(folder) {
      if (folder !== connection.folder || server.hooks.silentIdle !== undefined) return folder
      return { ...folder, messages: connection.view, uidNext: seenUidNext, highestModseq: seenModseq }
    },
    notify() {
      for (const folder of connection.user?.folders.values() ?? []) {
        const onOther = (): void => {
          if (closed) return void folder.watchers.delete(onOther)
          unreported.add(folder)
          if (idling && server.hooks.silentIdle === undefined) void report()
        }
        folder.watchers.add(onOther)
      }
    },
    async sync(expunges) {
      const isOwn = /STORE|MOVE|EXPUNGE/.test(running?.name ?? '')
      if (!isOwn && server.hooks.deaf?.(id) === true) return
      await report()
      const { folder } = connection
      if (!folder || folder.version === seenVersion) return
      const responses: string[] = []
      const present = new Set(folder.messages)
      const gone = connection.view.some((message) => !present.has(message))
      if (gone && expunges) {
        for (let index = connection.view.length - 1; index >= 0; index -= 1) {
          const message = connection.view[index]
          if (!message || present.has(message)) continue
          connection.view.splice(index, 1)
          responses.push(`* ${index + 1} EXPUNGE`)
        }
      }
      const modseqs = connection.capabilities().has('CONDSTORE')
      for (const [index, message] of connection.view.entries()) {
        if (message.modseq <= seenModseq || recentlyTold.has(message) || !present.has(message)) continue
        const modseq = modseqs ? ` MODSEQ (${message.modseq})` : ''
        responses.push(`* ${index + 1} FETCH (UID ${message.uid} FLAGS ${flagList(message.flags)}${modseq})`)
      }
      const lastUid = connection.view.at(-1)?.uid ?? 0
      const isDeaf = server.hooks.newsBySelect === true
      const fresh = isDeaf ? [] : folder.messages.filter((message) => message.uid > lastUid)
      if (fresh.length > 0) {
        connection.view.push(...fresh)
        responses.push(`* ${connection.view.length} EXISTS`)
      }
      seenModseq = folder.highestModseq
      seenUidNext = folder.uidNext
      recentlyTold.clear()
      // Held-back expunges keep the folder "changed" for this client.
      seenVersion = gone && !expunges ? -1 : folder.version
      for (const response of responses) await connection.send(response)
    },
    told(messages) {
      for (const message of messages) recentlyTold.add(message)
    },
    setIdling(on) {
      idling = on
    },
    async startTls() {
      const plain = socket
      plain.removeAllListeners('data')
      plain.removeAllListeners('end')
      const secure = new TLSSocket(plain, {
        isServer: true,
        ...(server.secureContext ? { secureContext: server.secureContext } : {}),
      })
      attach(secure)
      await new Promise((resolve) => {
        secure.once('secure', resolve)
        secure.once('close', resolve)
      })
    },
    close() {
      socket.end()
    },
    destroy() {
      socket.destroy()
      onEnd()
    },
  }

  async function answer(command: ClientCommand): Promise<void> {
    const hooked = server.hooks.command?.(running ?? callOf(command))
    if (hooked && !(await play(hooked, command.tag))) return
    const handler = handlers.get(command.name)
    let tagged: string
    try {
      tagged = handler ? await handler(connection, command) : 'BAD Unknown command'
    } catch (error) {
      if (!(error instanceof SyntaxProblem)) throw error
      tagged = `BAD ${error.message}`
    }
    const quiet = ['FETCH', 'STORE', 'SEARCH'].includes(command.name)
    const silent = command.name === 'IDLE' && server.hooks.silentIdle === 'never'
    if (!tagged.startsWith('BYE') && !silent) await connection.sync(!quiet)
    await connection.send(`${command.tag} ${tagged}`)
    if (command.name === 'STARTTLS' && tagged.startsWith('OK')) await connection.startTls()
    if (command.name === 'LOGOUT') connection.close()
  }

  function callOf(command: ClientCommand): HookCall {
    const { user, folder } = connection
    return { connection: id, user, folder, tag: command.tag, name: command.name, text: command.text }
  }

  /** true = the command still has to be run. */
  async function play(hooked: HookAnswer, tag: string): Promise<boolean> {
    if (hooked.delayMs) await wait(hooked.delayMs)
    for (const line of hooked.lines ?? []) await connection.send(line)
    if (hooked.tagged !== undefined && !hooked.proceed) await connection.send(`${tag} ${hooked.tagged}`)
    if (hooked.close === 'end') connection.close()
    if (hooked.close === 'reset') {
      socket.resetAndDestroy()
      onEnd()
    }
    return hooked.proceed === true
  }

  async function runOne(pieces: Piece[]): Promise<void> {
    try {
      const command = parseCommand(pieces)
      server.log(id, `C: ${command.text}`)
      running = callOf(command)
      await answer(command)
    } catch (error) {
      if (error instanceof SyntaxProblem) {
        const tag = typeof pieces[0] === 'string' ? /^[^\s]+/.exec(pieces[0])?.[0] : undefined
        await connection.send(`${tag ?? '*'} BAD ${error.message}`)
        return
      }
      connection.destroy()
      throw error
    } finally {
      running = null
    }
  }

  async function drainQueue(): Promise<void> {
    if (busy) return
    busy = true
    try {
      for (let next = queue.shift(); next && !closed; next = queue.shift()) await runOne(next)
    } finally {
      busy = false
    }
  }

  attach(first)
  return connection
}
