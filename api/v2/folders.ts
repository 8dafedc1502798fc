/**
 * /2.0/accounts/{id}/sources/{label}/folders: the folders of lite with their attributes; creates, removes and expunges
 * them. /2.0/…/sync: how far the folders of each source are read, and a sync on demand.
 */
import { z } from 'zod'
import {
  type AccountRecord,
  badParameter,
  folderName,
  type FolderRecord,
  isAppError,
  toAppError,
} from '../../engine/index.ts'
import { seconds, type Urls, urlsOf } from '../addresses.ts'
import * as examples from '../examples.ts'
import { asNamed, findAccount, findUser, type Mailbox, mustHoldMail } from '../lite/find.ts'
import { createFolder, delimiter, folderFields, type FolderPath, foldersOf, presentFolder } from '../lite/folders.ts'
import { reference } from '../lite/users.ts'
import { listText, stepsOf } from '../list-text.ts'
import { type Call, defineRoute, deprecated } from '../route.ts'
import { flag, optional, success, successAt } from '../values.ts'
import { findAnyFolder, findShownFolder, isShownFolder, liteAccount } from './find.ts'

/** Attributes that the mail server lists (RFC 9051 section 7.3.1), under the same names on the wire. */
const attributeNames = ['HasChildren', 'HasNoChildren', 'Noinferiors', 'Marked', 'Noselect'] as const
type Attributes = Readonly<Record<(typeof attributeNames)[number], boolean>>

const { nb_unseen_messages: unseen, ...countless } = folderFields

const folderView = examples.view('SourceFolder', {
  ...countless,
  nb_unseen_messages: [unseen[0].optional(), unseen[1], 'with include_extended_counts'],
  delim: [z.string(), '/'],
  attributes: [
    z.object(
      Object.fromEntries(attributeNames.map((name) => [name, z.boolean()])) as Record<keyof Attributes, z.ZodBoolean>,
    ),
    { HasChildren: false, HasNoChildren: true, Noinferiors: false, Marked: false, Noselect: false },
  ],
  resource_url: [z.string(), `${examples.v2Urls.source}/folders/INBOX`],
})

const listQuery = z.object({ include_extended_counts: optional(flag, '1 = with the number of unseen messages') })
const writeQuery = z.object({ delim: delimiter })

function present(
  folder: FolderRecord,
  account: AccountRecord,
  urls: Urls,
  withUnseen: boolean | undefined,
): z.input<typeof folderView> {
  const { nb_unseen_messages, ...shown } = presentFolder(folder, account, urls)
  const listed = new Set(folder.attributes.map((attribute) => attribute.replace('\\', '').toLowerCase()))
  return {
    ...shown,
    ...(withUnseen === true ? { nb_unseen_messages } : {}),
    delim: folder.delimiter,
    attributes: Object.fromEntries(attributeNames.map((name) => [name, listed.has(name.toLowerCase())])) as Attributes,
  }
}

const base = '/2.0/accounts/{id}/sources/{label}/folders'
const one = `${base}/{folder+}` as const

const list = defineRoute(`GET ${base}`, {
  summary: 'List the folders of a source',
  description: 'Without those of the uses \\\\Trash and \\\\Drafts, unless the source has `sync_all_folders`.',
  query: listQuery,
  response: z.array(folderView),
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const { account } = mailbox
    const shown = (await foldersOf(call, mailbox)).filter((folder) => isShownFolder(account, folder))
    const urls = urlsOf(call)
    return listText(
      call,
      stepsOf(shown, (folder) => present(folder, account, urls, query.include_extended_counts)),
    )
  },
})

const get = defineRoute(`GET ${one}`, {
  summary: 'Get a folder',
  query: z.object({ ...writeQuery.shape, ...listQuery.shape }),
  response: folderView,
  async handler({ path, query }, call) {
    const { account } = await findAccount(call, path.id, path.label)
    const folder = await findShownFolder(call, account, path.folder, query.delim)
    return present(folder, account, urlsOf(call), query.include_extended_counts)
  },
})

const create = (method: 'PUT' | 'POST') =>
  defineRoute(`${method} ${one}`, {
    instead: `POST ${liteAccount}/folders/{folder}`,
    summary: 'Create a folder',
    description:
      'A folder that exists already is a 409, a name that the mail server does not take a 400 with its words.',
    query: writeQuery,
    response: successAt(`${examples.v2Urls.source}/folders/Projects`),
    errors: [409],
    handler: ({ path, query }, call) => createFolder(call, path, query.delim),
  })

async function inFolder(
  call: Call,
  path: FolderPath,
  delim: string | undefined,
  work: (mailbox: Mailbox, folder: FolderRecord) => Promise<void>,
) {
  const mailbox = await findAccount(call, path.id, path.label)
  const folder = await findAnyFolder(call, mailbox.account, path.folder, delim)
  call.touchesImap(mailbox.user)
  await asNamed('', work(mailbox, folder), { name: path.folder, path: folder.path })
  return { success: true }
}

const remove = defineRoute(`DELETE ${one}`, {
  instead: '',
  summary: 'Remove a folder and the messages in it',
  query: writeQuery,
  response: success,
  handler: ({ path, query }, call) =>
    inFolder(call, path, query.delim, async ({ account }, folder) => {
      if (folder.path === 'INBOX') throw badParameter('folder', 'INBOX cannot be removed')
      await call.engine.accounts.deleteFolder(account.id, folder.path)
    }),
})

const expunge = defineRoute(`POST ${one}/expunge`, {
  instead: '',
  summary: 'Remove all messages of a folder that are flagged \\Deleted',
  query: writeQuery,
  response: success,
  handler: ({ path, query }, call) =>
    inFolder(call, path, query.delim, async ({ account }, folder) => {
      mustHoldMail(folder, 'folder')
      await call.engine.accounts.expungeFolder(account.id, folder.path)
    }),
})

export const v2FolderRoutes = deprecated('folders', [list, get, create('PUT'), create('POST'), remove, expunge])

const folderState = examples.answer({
  initial_import_finished: [z.boolean(), true],
  last_expunge: [z.int(), examples.time, 'when the folder was last compared as a whole; 0 = never'],
  last_sync_start: [z.int(), examples.time],
  last_sync_stop: [z.int(), examples.time, 'when the folder was last read; 0 = never'],
})

/** Label of the source → name of the folder → its state. */
const syncView = z
  .record(z.string(), z.record(z.string(), folderState))
  .meta({ examples: [{ [examples.label]: { INBOX: examples.exampleOf(folderState) } }] })

function presentState({ cursor, selectable, completeAt }: FolderRecord): z.input<typeof folderState> {
  const read = seconds(cursor?.syncedAt ?? cursor?.comparedAt ?? 0)
  return {
    initial_import_finished: !selectable || completeAt !== null,
    last_expunge: seconds(cursor?.comparedAt ?? 0),
    last_sync_start: read,
    last_sync_stop: read,
  }
}

async function stateOf(call: Call, accounts: readonly AccountRecord[]): Promise<z.input<typeof syncView>> {
  const { store } = call.engine
  const states = accounts.map(async (account) => {
    const shown = (await store.folders.list(account.id)).filter((folder) => isShownFolder(account, folder))
    const byName = shown.map((folder) => [folderName(folder), presentState(folder)] as const)
    return [account.label, Object.fromEntries(byName)] as const
  })
  return Object.fromEntries(await Promise.all(states))
}

/** Reads the list of folders and INBOX. Changes in other folders follow at the next poll. */
async function syncNow(call: Call, account: AccountRecord): Promise<void> {
  call.touchesImap({ id: account.userId })
  await call.engine.accounts.refreshFolders(account.id)
  await call.engine.accounts.syncFolder(account.id, 'INBOX')
}

/** Without a label: all sources of the account. */
async function sourcesOf(call: Call, { id, label }: { readonly id: string; readonly label?: string }) {
  if (label !== undefined) {
    const { account } = await findAccount(call, id, label)
    return { accounts: [account], url: urlsOf(call).account(account) }
  }
  const user = await findUser(call, id)
  return { accounts: await call.engine.store.accounts.listByUser(user.id), url: urlsOf(call).user(user) }
}

const ofAccount = '/2.0/accounts/{id}/sync'
const ofSource = '/2.0/accounts/{id}/sources/{label}/sync'
type SyncBase = typeof ofAccount | typeof ofSource

const state = (base: SyncBase, of: string) =>
  defineRoute(`GET ${base}`, {
    instead: '',
    summary: `How far the folders of ${of} are read`,
    response: syncView,
    handler: async ({ path }, call) => stateOf(call, (await sourcesOf(call, path)).accounts),
  })

const start = (base: SyncBase, of: string, more: string) =>
  defineRoute(`POST ${base}`, {
    instead: '',
    summary: `Look at the mail of ${of} now`,
    description: `Reads the list of folders and INBOX now; what has changed in other folders follows by itself within a poll.${more}`,
    response: examples.answer({
      success: [z.boolean(), true],
      synced_sources: [z.array(reference), [{ label: examples.label, resource_url: examples.v2Urls.source }]],
      resource_url: [z.string(), `${examples.v2Urls.account}/sync`],
    }),
    /** Throws when every source fails, or one of them by an unexpected error. */
    async handler({ path }, call) {
      const { accounts, url } = await sourcesOf(call, path)
      const syncs = await Promise.allSettled(accounts.map((account) => syncNow(call, account)))
      const failed = syncs.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
      const [first] = failed
      if (first !== undefined && (failed.length === syncs.length || !isAppError(first))) throw toAppError(first)
      const done = accounts.filter((_, index) => syncs[index]?.status === 'fulfilled')
      return {
        success: true,
        synced_sources: done.map((account) => ({ label: account.label, resource_url: urlsOf(call).account(account) })),
        resource_url: `${url}/sync`,
      }
    },
  })

const partly = ' A source whose mail server does not answer is not among `synced_sources`.'

export const syncRoutes = deprecated('sync', [
  state(ofAccount, 'each source of an account'),
  start(ofAccount, 'all sources of an account', partly),
  state(ofSource, 'a source'),
  start(ofSource, 'a source', ''),
])
