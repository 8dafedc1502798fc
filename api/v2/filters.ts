/** Filters of 2.0 that no index serves: the messages that the other filters find are checked one by one. */
import {
  type AccountRecord,
  type AttachmentRecord,
  compileFileName,
  type FolderRecord,
  isShownFile,
  type MessageRecord,
} from '../../engine/index.ts'
import { flagsIn, type Sieve } from '../lite/messages/present.ts'
import type { Wishes } from '../lite/messages/schema.ts'
import { endOfSecond, filledText, flag, integer, optional, timestampOrDate } from '../values.ts'

/** The parameters `<name>_before` and `<name>_after`, both inclusive. */
export function timesOf<N extends string>(name: N, what: string) {
  const time = (end: 'before' | 'after') =>
    optional(timestampOrDate, `only ${what} at this time or ${end}: Unix timestamp, or mm/dd/yyyy (UTC)`)
  const parameters = { [`${name}_before`]: time('before'), [`${name}_after`]: time('after') }
  return parameters as Record<`${N}_before` | `${N}_after`, ReturnType<typeof time>>
}

export function isWithin(at: number, after: number | undefined, before: number | undefined): boolean {
  return at >= (after ?? -Infinity) && at <= (endOfSecond(before) ?? Infinity)
}

export const indexedParameters = timesOf('indexed', 'mail that was indexed here')

const named = 'of this name: wildcards like `*.pdf`, a regular expression between slashes, or a comma-separated list'

/** `what`: the noun of the descriptions. */
export const fileParametersOf = (what: string) => ({
  file_name: optional(filledText, `only ${what} ${named}`, '*.pdf'),
  file_size_min: optional(integer(0), `only ${what} of so many bytes or more, as they are transferred`),
  file_size_max: optional(integer(0), `only ${what} of so many bytes or fewer, as they are transferred`),
})

export const seenParameter = optional(flag, '1 = only messages that are \\\\Seen in the folder, 0 = only others')

export function isIndexedWithin({ indexedAt }: MessageRecord, wanted: Wishes): boolean {
  return isWithin(indexedAt, wanted.indexed_after, wanted.indexed_before)
}

/** Lets the wanted files through that the source shows. Throws `bad_request` for a bad pattern. */
export function fileFilter(account: AccountRecord, wanted: Wishes): (file: AttachmentRecord) => boolean {
  const { file_name: name, file_size_min: least = 0, file_size_max: most = Infinity } = wanted
  const isNamed = name === undefined ? () => true : compileFileName('file_name', name)
  return (file) => isShownFile(account, file) && file.size >= least && file.size <= most && isNamed(file.fileName)
}

/** null when no such filter is set. All filters of files must fit the same file of a message. */
export function sieveOf(account: AccountRecord, folder: FolderRecord | null, wanted: Wishes): Sieve | null {
  const { flag_seen: seen, file_name, file_size_min, file_size_max, indexed_before, indexed_after } = wanted
  const hasAttachments = [file_name, file_size_min, file_size_max].some((one) => one !== undefined)
  if (!hasAttachments && [seen, indexed_before, indexed_after].every((one) => one === undefined)) return null
  const isWanted = hasAttachments ? fileFilter(account, wanted) : null
  return {
    query: hasAttachments ? { hasAttachments } : {},
    passes: (message) =>
      isIndexedWithin(message, wanted) &&
      (seen === undefined || flagsIn(message, folder?.id).includes('\\Seen') === seen) &&
      (isWanted === null || message.attachments.some(isWanted)),
  }
}
