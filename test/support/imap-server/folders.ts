/** LIST, STATUS, SELECT and what else is done with folders. */
import { decode } from 'iconv-lite'
import type { Connection, Handler } from './connection.ts'
import { flagList, statusLine, wireName } from './fetch.ts'
import { createFolder, folderKey, renameFolder, type Folder, type User } from './mailbox.ts'
import { itemsOf, quote, textOf, type Token } from './tokens.ts'

function nameFromWire(text: string): string {
  return text.includes('&') ? decode(Buffer.from(text, 'latin1'), 'utf-7-imap') : text
}

/** The folder that a command names, or null. */
export function folderOf(connection: Connection, token: Token | undefined): Folder | null {
  return connection.user?.folders.get(folderKey(nameFromWire(textOf(token)))) ?? null
}

function selectable(folder: Folder): boolean {
  return !folder.attributes.some((attribute) => ['\\noselect', '\\nonexistent'].includes(attribute.toLowerCase()))
}

function attributesOf(folder: Folder, user: User, delimiter: string): string {
  const parent = [...user.folders.keys()].some((name) => name.startsWith(folder.name + delimiter))
  return `(${[...folder.attributes, parent ? '\\HasChildren' : '\\HasNoChildren'].join(' ')})`
}

function matcherOf(pattern: string, delimiter: string): RegExp {
  const escaped = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  const inLevel = `[^${delimiter.replace(/[\\\]^]/g, '\\$&')}]*`
  return new RegExp(`^${escaped.replace(/\*/g, '.*').replace(/%/g, inLevel)}$`, 's')
}

/** `LIST [(selection)] reference pattern [RETURN (…)]` → pattern and STATUS items. */
function listArguments(args: readonly Token[]): { pattern: string; status: string[] } {
  const rest = args[0]?.kind === 'list' ? args.slice(1) : args
  const pattern = textOf(rest[0]) + nameFromWire(textOf(rest[1]))
  const options = textOf(rest[2]).toUpperCase() === 'RETURN' ? itemsOf(rest[3]) : []
  const at = options.findIndex((option) => textOf(option).toUpperCase() === 'STATUS')
  return { pattern, status: at < 0 ? [] : itemsOf(options[at + 1]).map(textOf) }
}

async function list(connection: Connection, word: string, args: readonly Token[]): Promise<string> {
  const { user, server } = connection
  if (!user) return 'NO log in first'
  const { pattern, status } = listArguments(args)
  const extended = args.length > 2
  if (extended && !connection.capabilities().has('LIST-EXTENDED') && !connection.capabilities().has('LIST-STATUS')) {
    return 'BAD Too many arguments'
  }
  if (pattern === '') {
    await connection.send(`* LIST (\\Noselect) "${server.delimiter}" ""`)
    return 'OK done'
  }
  const matches = matcherOf(pattern, server.delimiter)
  for (const folder of user.folders.values()) {
    if (!matches.test(folder.name) || (word === 'LSUB' && !folder.subscribed)) continue
    const attributes = attributesOf(folder, user, server.delimiter)
    await connection.send(`* ${word} ${attributes} "${server.delimiter}" ${quote(wireName(folder.name))}`)
    if (status.length > 0 && selectable(folder)) {
      await connection.send(statusLine(connection.shown(folder), status, connection.capabilities()))
    }
  }
  return 'OK done'
}

async function select(connection: Connection, token: Token | undefined, readOnly: boolean): Promise<string> {
  const folder = folderOf(connection, token)
  connection.open(null, false)
  if (!folder) return 'NO [NONEXISTENT] No such mailbox'
  if (!selectable(folder)) return 'NO Mailbox cannot be selected'
  connection.open(folder, readOnly)
  const flags = flagList(['\\Answered', '\\Flagged', '\\Deleted', '\\Seen', '\\Draft'])
  await connection.send(`* FLAGS ${flags}`)
  await connection.send(`* OK [PERMANENTFLAGS ${flags.slice(0, -1)} \\*)] Flags permitted.`)
  await connection.send(`* ${connection.view.length} EXISTS`)
  await connection.send('* 0 RECENT')
  await connection.send(`* OK [UIDVALIDITY ${folder.uidValidity}] UIDs valid`)
  await connection.send(`* OK [UIDNEXT ${folder.uidNext}] Predicted next UID`)
  if (connection.capabilities().has('CONDSTORE')) {
    await connection.send(`* OK [HIGHESTMODSEQ ${folder.highestModseq}] Highest`)
  }
  return readOnly ? 'OK [READ-ONLY] done' : 'OK [READ-WRITE] done'
}

function create(connection: Connection, token: Token | undefined): string {
  const { user, server } = connection
  const name = nameFromWire(textOf(token)).replace(new RegExp(`\\${server.delimiter}$`), '')
  if (!user || name === '') return 'NO cannot create that'
  if (user.folders.has(folderKey(name))) return 'NO [ALREADYEXISTS] Mailbox already exists'
  createFolder(user, name)
  return 'OK done'
}

function remove(connection: Connection, token: Token | undefined): string {
  const folder = folderOf(connection, token)
  if (!folder) return 'NO [NONEXISTENT] No such mailbox'
  if (folder.name === 'INBOX') return 'NO [CANNOT] INBOX stays'
  connection.user?.folders.delete(folder.name)
  if (connection.folder === folder) connection.open(null, false)
  return 'OK done'
}

function rename(connection: Connection, from: Token | undefined, to: Token | undefined): string {
  const folder = folderOf(connection, from)
  const name = nameFromWire(textOf(to))
  if (!folder || !connection.user) return 'NO [NONEXISTENT] No such mailbox'
  if (connection.user.folders.has(name)) return 'NO [ALREADYEXISTS] Mailbox already exists'
  renameFolder(connection.user, folder, name)
  return 'OK done'
}

function subscribe(on: boolean): Handler {
  return (connection, command) => {
    const folder = folderOf(connection, command.args[0])
    if (folder) folder.subscribed = on
    return Promise.resolve(folder ? 'OK done' : 'NO [NONEXISTENT] No such mailbox')
  }
}

export const folderHandlers: readonly (readonly [string, Handler])[] = [
  ['LIST', (connection, command) => list(connection, 'LIST', command.args)],
  ['LSUB', (connection, command) => list(connection, 'LSUB', command.args)],
  ['SELECT', (connection, command) => select(connection, command.args[0], false)],
  ['EXAMINE', (connection, command) => select(connection, command.args[0], true)],
  [
    'STATUS',
    async (connection, command) => {
      const folder = folderOf(connection, command.args[0])
      if (!folder) return 'NO [NONEXISTENT] No such mailbox'
      if (!selectable(folder)) return 'NO Mailbox has no status'
      const items = itemsOf(command.args[1]).map(textOf)
      await connection.send(statusLine(connection.shown(folder), items, connection.capabilities()))
      return 'OK done'
    },
  ],
  [
    'NOTIFY',
    (connection) => {
      if (!connection.capabilities().has('NOTIFY')) return Promise.resolve('BAD Unknown command')
      connection.notify()
      return Promise.resolve('OK done')
    },
  ],
  ['CREATE', (connection, command) => Promise.resolve(create(connection, command.args[0]))],
  ['DELETE', (connection, command) => Promise.resolve(remove(connection, command.args[0]))],
  ['RENAME', (connection, command) => Promise.resolve(rename(connection, command.args[0], command.args[1]))],
  ['SUBSCRIBE', subscribe(true)],
  ['UNSUBSCRIBE', subscribe(false)],
  [
    'UNSELECT',
    (connection) => {
      if (!connection.capabilities().has('UNSELECT')) return Promise.resolve('BAD Unknown command')
      connection.open(null, false)
      return Promise.resolve('OK done')
    },
  ],
]
