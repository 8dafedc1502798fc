/**
 * Messages as JSON text, made once for each version of a record. The text is kept beside the record itself: the store answers the
 * same (frozen in effect) object as long as the row is unchanged and another one after any write or sync, so a text can never
 * outlive its facts or flags. What the text holds besides the record (base URL, label, folder names) makes the view it belongs to.
 */
import { LRUCache } from 'lru-cache'
import { folderNamer, type AccountRecord, type FolderRecord, type MessageRecord } from '../../../engine/index.ts'
import { liteUrls, type LiteUrls } from '../urls.ts'
import { presentMessage } from './present.ts'

/** Everything besides the record that goes into a message's text. Two views are the same object when all of it is the same. */
export interface MessageViewer {
  readonly account: AccountRecord
  readonly urls: LiteUrls
  /** Server path → the name that callers use. */
  readonly folderName: (path: string) => string
}

/** Callers choose the base URL, and mailboxes have many folders: characters of all keys together, at most. */
const viewersSize = 16 * 1024 * 1024
const viewers = new LRUCache<string, MessageViewer>({
  max: 2000,
  maxSize: viewersSize,
  sizeCalculation: (_viewer, key) => key.length,
})
const keys = new WeakMap<readonly FolderRecord[], string>()

/** The names of folders seldom change; the list of records does with every sync. */
function namesKey(folders: readonly FolderRecord[]): string {
  const known = keys.get(folders)
  if (known !== undefined) return known
  const key = folders.map(({ path, delimiter }) => `${delimiter}${path}`).join('\n')
  keys.set(folders, key)
  return key
}

export function viewerOf(baseUrl: string, account: AccountRecord, folders: readonly FolderRecord[]): MessageViewer {
  const key = `${account.id} ${account.label} ${baseUrl}\n${namesKey(folders)}`
  const known = viewers.get(key)
  if (known !== undefined) return known
  const viewer = { account, urls: liteUrls(baseUrl), folderName: folderNamer(folders) }
  viewers.set(key, viewer)
  return viewer
}

interface Prepared {
  readonly viewer: MessageViewer
  readonly text: string
}

const prepared = new WeakMap<MessageRecord, Prepared>()

/** JSON of the message without contents and flags. */
export function messageText(message: MessageRecord, viewer: MessageViewer): string {
  const known = prepared.get(message)
  if (known?.viewer === viewer) return known.text
  const text = JSON.stringify(presentMessage(message, viewer.account, viewer.urls, viewer.folderName))
  prepared.set(message, { viewer, text })
  return text
}

const preparedLists = new WeakMap<readonly MessageRecord[], Prepared>()

/** JSON array of the messages. The store answers the same array too, while a page of the index is unchanged. */
export function listText(messages: readonly MessageRecord[], viewer: MessageViewer): string {
  const known = preparedLists.get(messages)
  if (known?.viewer === viewer) return known.text
  const text = `[${messages.map((message) => messageText(message, viewer)).join(',')}]`
  preparedLists.set(messages, { viewer, text })
  return text
}

/** The same with more members at the end, in place of members of the same name. */
export function messageTextWith(
  message: MessageRecord,
  viewer: MessageViewer,
  more: Readonly<Record<string, unknown>>,
): string {
  const entries = Object.entries(more).filter(([, value]) => value !== undefined)
  if (entries.length === 0) return messageText(message, viewer)
  // `bodies` is there already: such a message is made anew.
  if ('bodies' in more)
    return JSON.stringify({ ...presentMessage(message, viewer.account, viewer.urls, viewer.folderName), ...more })
  const added = JSON.stringify(Object.fromEntries(entries))
  return `${messageText(message, viewer).slice(0, -1)},${added.slice(1)}`
}
