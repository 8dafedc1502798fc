/** What the API asks of an account's command connection: reading what only the server has, and writing. */
import { finished, type Readable } from 'node:stream'
import { AppError, notFound } from '../errors.ts'
import { createTransferStream } from '../messages/transfer-encoding.ts'
import { messageId } from '../store/ids.ts'
import type { FolderRecord, MessageRecord, Placement } from '../store/records.ts'
import { changedFlags, normalFlags } from './own-writes.ts'
import { readMessage } from './plan.ts'
import { readUids } from './read.ts'
import type { Session } from './session-types.ts'
import type { Link } from './link.ts'
import type { AccountState, SyncDeps } from './state.ts'
import { catchUp } from './sync.ts'
import type { AccountCommands } from './types.ts'

/** A live account: its state and command connection. */
export interface LiveAccount {
  readonly state: AccountState
  readonly link: Link
}

export interface CommandDeps {
  readonly sync: SyncDeps
  /** Rejects with `account_disabled` or `account_unavailable`, the reason and when the next try is. */
  readonly live: (accountId: string) => Promise<LiveAccount>
  /** Lists the folders anew over this session and reconciles. */
  readonly relist: (live: LiveAccount, session: Session) => Promise<void>
}

type FolderCommands = 'refreshFolders' | 'createFolder' | 'deleteFolder' | 'expungeFolder' | 'syncFolder' | 'searchBody'
type ReadCommands = 'fetchParts' | 'fetchHeaders' | 'streamPart' | 'streamRaw'
type WriteCommands = 'setFlags' | 'move' | 'copy' | 'append' | 'remove'

export function createCommands(deps: CommandDeps): Omit<AccountCommands, 'probe'> {
  return { ...folderCommands(deps), ...readCommands(deps), ...writeCommands(deps) }
}

function folderCommands(deps: CommandDeps): Pick<AccountCommands, FolderCommands> {
  const { live, relist, sync } = deps

  async function relisted(accountId: string, change: (session: Session) => Promise<void>): Promise<LiveAccount> {
    const account = await live(accountId)
    await account.link.run('api', async (session) => {
      await change(session)
      await relist(account, session)
    })
    return account
  }

  return {
    async refreshFolders(accountId) {
      await relisted(accountId, async () => undefined)
      return sync.store.folders.list(accountId)
    },
    async createFolder(accountId, path) {
      const { state } = await relisted(accountId, (session) => session.createMailbox(path))
      const folder = state.folderByPath(path)
      if (folder === null) throw new AppError('server_refused', `folder ${path}: the server made it under another name`)
      return folder
    },
    async deleteFolder(accountId, path) {
      await relisted(accountId, (session) => session.deleteMailbox(path))
    },
    async expungeFolder(accountId, path) {
      const { state, link } = await live(accountId)
      await link.onFolder('api', path, async (session) => {
        await session.expunge(null)
        await catchUp({ deps: sync, state, session }, path)
      })
    },
    async syncFolder(accountId, path) {
      const { state, link } = await live(accountId)
      await link.run('api', (session) => catchUp({ deps: sync, state, session }, path))
    },
    async searchBody(accountId, folder, text) {
      const { link } = await live(accountId)
      const uids = await link.onFolder('api', folder.path, (session) => session.searchBody(text))
      const validity = folder.cursor?.uidValidity
      if (uids.length === 0 || validity === undefined) return []
      const wanted = new Set(uids)
      const known = await sync.store.messages.knownUids(folder.id, validity, Math.min(...uids), Math.max(...uids))
      return known.filter((one) => wanted.has(one.uid)).map((one) => one.messageId)
    },
  }
}

function readCommands({ live, sync }: CommandDeps): Pick<AccountCommands, ReadCommands> {
  return {
    async fetchParts(accountId, message, sections, maxBytes) {
      const { link } = await live(accountId)
      return link.run('api', (session) =>
        atPlacement(session, message, async (uid) => {
          const parts = new Map<string, Buffer>()
          for (const section of sections) {
            const part = await session.fetchSection(uid, section, maxBytes)
            if (part === null) return null
            parts.set(section, part)
          }
          return parts
        }),
      )
    },
    async fetchHeaders(accountId, message) {
      const { link } = await live(accountId)
      return link.run('api', (session) =>
        atPlacement(session, message, (uid) => session.fetchSection(uid, 'HEADER', headerMaxBytes)),
      )
    },
    async streamPart(accountId, message, section, encoding) {
      const { link } = await live(accountId)
      const raw = await held(link, sync.config.MAILROOM_COMMAND_TIMEOUT, (session) =>
        atPlacement(session, message, (uid) => session.streamSection(uid, section)),
      )
      const decoder = createTransferStream(encoding)
      raw.on('error', (error) => decoder.destroy(error))
      decoder.on('close', () => raw.destroy())
      return raw.pipe(decoder)
    },
    async streamRaw(accountId, message) {
      const { link } = await live(accountId)
      return held(link, sync.config.MAILROOM_COMMAND_TIMEOUT, (session) =>
        atPlacement(session, message, (uid) => session.streamSection(uid, '')),
      )
    },
  }
}

const headerMaxBytes = 4 * 1_048_576

/** Tries each place where the message lies until one has it; null from `work` = not there. */
async function atPlacement<T>(
  session: Session,
  message: MessageRecord,
  work: (uid: number) => Promise<T | null>,
): Promise<T> {
  for (const placement of message.placements) {
    const selected = await session.select(placement.path)
    if (selected.uidValidity !== null && selected.uidValidity !== placement.uidValidity) continue
    const found = await work(placement.uid)
    if (found !== null) return found
  }
  throw notFound('message', message.id)
}

/** Hands out the stream at once and keeps the connection for it until it ends, is destroyed, or stalls. */
function held(link: Link, stallMs: number, open: (session: Session) => Promise<Readable>): Promise<Readable> {
  return new Promise<Readable>((resolve, reject) => {
    let gone = false
    const waiting = setTimeout(() => {
      gone = true
      reject(new AppError('timeout', 'the mail server is busy with other work of this account', { retryAfterMs: 5000 }))
    }, stallMs)
    const turn = link.hold(async (session) => {
      if (gone) return
      const stream = await open(session)
      clearTimeout(waiting)
      if (gone) stream.destroy()
      else resolve(stream)
      await new Promise<void>((done) => finished(stream, () => done()))
    })
    turn.catch((error: unknown) => {
      clearTimeout(waiting)
      reject(error instanceof Error ? error : new Error(String(error)))
    })
  })
}

function writeCommands({ live, sync }: CommandDeps): Pick<AccountCommands, WriteCommands> {
  const { store } = sync

  async function placedAt(session: Session, at: Placement): Promise<void> {
    const selected = await session.select(at.path)
    if (selected.uidValidity !== null && selected.uidValidity !== at.uidValidity) {
      throw new AppError('account_unavailable', `folder ${at.path} is being read anew`, { retryAfterMs: 30_000 })
    }
  }

  /** MOVE and COPY: the index says the same as the server when this answers, and nobody is told. */
  async function transfer(
    accountId: string,
    message: MessageRecord,
    at: Placement,
    to: FolderRecord,
    kind: 'move' | 'copy',
  ): Promise<void> {
    const { link, state } = await live(accountId)
    state.own.expectArrival(to.id, message.id)
    if (kind === 'move') state.own.expectDeparture(at.folderId, at.uid)
    try {
      await link.run('api', async (session) => {
        await placedAt(session, at)
        const { newUid, uidValidity } = await session[kind](at.uid, to.path)
        const validity = uidValidity ?? to.cursor?.uidValidity
        const known = newUid !== null && validity !== undefined
        const placement = known
          ? {
              ...at,
              folderId: to.id,
              path: to.path,
              uid: newUid,
              uidValidity: validity,
              modseq: '0',
              rev: 0,
              quiet: true,
            }
          : null
        await state.exclusive(() =>
          store.messages.relocate(accountId, message.id, kind === 'move' ? at : null, placement),
        )
        if (!known) await catchUp({ deps: sync, state, session }, to.path)
      })
    } catch (error) {
      state.own.forget(to.id, message.id)
      state.own.forget(at.folderId, at.uid)
      throw error
    }
  }

  return {
    async setFlags(accountId, message, at, change) {
      const { link, state } = await live(accountId)
      const expected = changedFlags(at, change)
      state.own.expectFlags(at.folderId, at.uid, expected)
      const flags = await link.run('api', async (session) => {
        await placedAt(session, at)
        const stored = await session.store(at.uid, change)
        if (stored === null) throw notFound('message', message.id)
        const now = normalFlags(stored.flags)
        state.own.expectFlags(at.folderId, at.uid, now)
        await state.exclusive(() => store.messages.setFlags(accountId, message.id, at, now, stored.modseq))
        return now
      })
      return flags
    },
    move: (accountId, message, at, to) => transfer(accountId, message, at, to, 'move'),
    copy: (accountId, message, at, to) => transfer(accountId, message, at, to, 'copy'),
    async append(accountId, to, raw, flags, internalDate) {
      const { link, state } = await live(accountId)
      await link.run('api', async (session) => {
        const { newUid } = await session.append(to.path, raw, flags, internalDate)
        if (newUid !== null) await expectAppended(state, session, to, newUid)
        await catchUp({ deps: sync, state, session }, to.path)
      })
    },
    async remove(accountId, message, at) {
      const { link, state } = await live(accountId)
      state.own.expectDeparture(at.folderId, at.uid)
      await link.run('api', async (session) => {
        await placedAt(session, at)
        await session.store(at.uid, { add: ['\\Deleted'], remove: [] })
        await session.expunge([at.uid])
        await state.exclusive(() => store.messages.relocate(accountId, message.id, at, null))
      })
    },
  }
}

/** Names our own message before the sync sees it. */
async function expectAppended(state: AccountState, session: Session, to: FolderRecord, uid: number): Promise<void> {
  await session.select(to.path, { refresh: true })
  const { messages } = await readUids(session, [uid])
  for (const fetched of messages)
    state.own.expectArrival(
      to.id,
      messageId(state.account.id, readMessage(state.account, fetched, session.capabilities.identity).identity),
    )
}
