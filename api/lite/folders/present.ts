/** Folders from records to the wire. Names have '/' between their levels, whatever the server uses. */
import type { z } from 'zod'
import { folderName, type AccountRecord, type FolderRecord, type SpecialUse } from '../../../engine/index.ts'
import type { LiteUrls } from '../urls.ts'
import type { folderView } from './schema.ts'

/** RFC 6154 special use → the name that XLIST had for it. */
const xlistNames: Readonly<Record<SpecialUse, string>> = {
  '\\Inbox': '\\Inbox',
  '\\All': '\\AllMail',
  '\\Archive': '\\Archive',
  '\\Drafts': '\\Drafts',
  '\\Flagged': '\\Starred',
  '\\Junk': '\\Spam',
  '\\Sent': '\\Sent',
  '\\Trash': '\\Trash',
  '\\Important': '\\Important',
}

export function symbolicName(folder: Pick<FolderRecord, 'path' | 'specialUse'>): string {
  return folder.specialUse ?? (folder.path === 'INBOX' ? '\\Inbox' : '')
}

export function xlistName(folder: Pick<FolderRecord, 'path' | 'specialUse'>): string {
  const use = folder.specialUse ?? (folder.path === 'INBOX' ? '\\Inbox' : null)
  return use === null ? '' : xlistNames[use]
}

export function presentFolder(
  folder: FolderRecord,
  account: AccountRecord,
  urls: LiteUrls,
): z.input<typeof folderView> {
  return {
    name: folderName(folder),
    nb_messages: folder.messages,
    nb_unseen_messages: folder.unseen,
    delimiter: folder.delimiter,
    symbolic_name: symbolicName(folder),
    xlist_name: xlistName(folder),
    resource_url: urls.folder(account, folderName(folder)),
  }
}
