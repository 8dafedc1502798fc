/** Folder names as callers use them, in the API, in callbacks and in filters: '/' between the levels, whatever the server uses. */
import type { FolderRecord } from '../store/records.ts'

type Named = Pick<FolderRecord, 'path' | 'delimiter'>

/**
 * A level that holds a '/' itself can only be told apart with the server's delimiter, so such a folder keeps the server's
 * spelling.
 */
export function folderName({ path, delimiter }: Named): string {
  if (delimiter === '' || delimiter === '/' || path.includes('/')) return path
  return path.split(delimiter).join('/')
}

/** Of an account's folders: a flat one among them has none. */
export function usualDelimiter(folders: readonly Pick<FolderRecord, 'delimiter'>[]): string {
  return folders.find(({ delimiter }) => delimiter !== '')?.delimiter ?? '/'
}

/** Server path → name, for the folders of one account. One that is not listed (any more) has the delimiter of the others. */
export function folderNamer(folders: readonly Named[]): (path: string) => string {
  const usual = usualDelimiter(folders)
  const odd = new Map(folders.filter((one) => one.delimiter !== usual).map((one) => [one.path, one.delimiter]))
  return (path) => folderName({ path, delimiter: odd.get(path) ?? usual })
}
