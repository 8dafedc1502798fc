/**
 * File names of attachments: clean, and taken apart for `file_name_structure` and `main_file_name` of the interface,
 * whose meaning interface.md leaves open and decisions.md names only the kinds of.
 */
import { oneLine } from './encoded-words.ts'
import { maxFileNameLength } from './limits.ts'

export type FileNameKind = 'main' | 'boundary' | 'numeric' | 'date' | 'ext'
export type FileNamePiece = readonly [text: string, kind: FileNameKind]

/** A decoded name as it is kept: one line, bounded. Paths stay as sent; whoever writes a file takes care himself. */
export function cleanFileName(name: string): string {
  return oneLine(name, maxFileNameLength)
}

/** A nested message without a name is called by its subject. */
export function subjectFileName(subject: string): string {
  const name = oneLine(subject, 200)
    .replace(/[\\/:*?"<>|]+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return `${name === '' ? 'message' : name}.eml`
}

/** `.pdf`, `.tar.gz`; a name that is nothing but an extension has none. */
const extension = /(?:\.tar)?\.[A-Za-z][A-Za-z0-9]{0,9}$|\.7z$/

const datePatterns = [
  String.raw`(?:19|20)\d\d(?<s1>[-_. ])\d{1,2}\k<s1>\d{1,2}(?!\d)`,
  String.raw`\d{1,2}(?<s2>[-_. ])\d{1,2}\k<s2>(?:\d{4}|\d\d)(?!\d)`,
  String.raw`(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)`,
].join('|')

const pieces = new RegExp(
  String.raw`(?<date>${datePatterns})|(?<numeric>\d+)|(?<boundary>[\s\-_.,;+()[\]{}#&~=@!']+)|(?<main>[^\d\s\-_.,;+()[\]{}#&~=@!']+)`,
  'gu',
)

function kindOf(groups: Record<string, string | undefined>): FileNameKind {
  if (groups['date'] !== undefined) return 'date'
  if (groups['numeric'] !== undefined) return 'numeric'
  return groups['boundary'] !== undefined ? 'boundary' : 'main'
}

/**
 * A file name as an array of [text, kind]; the texts joined are the name. Kinds: `main` words, `boundary` what stands between,
 * `numeric` numbers (versions, counters), `date` dates (2011-03-04, 4-27-10, 20110304), `ext` the extension with its dot.
 * [] for ''.
 */
export function fileNameStructure(name: string): FileNamePiece[] {
  const found = extension.exec(name)
  const ext = found && found.index > 0 ? found[0] : ''
  const stem = name.slice(0, name.length - ext.length)
  const result: FileNamePiece[] = Array.from(stem.matchAll(pieces), (match) => [match[0], kindOf(match.groups ?? {})])
  return ext === '' ? result : [...result, [ext, 'ext']]
}

/**
 * The name without numbers and dates, by which versions of one document are the same: 'report_2011-03-04_v3.pdf' → 'report_v.pdf'.
 * The name itself when nothing else is left.
 */
export function mainFileName(name: string): string {
  const kept: FileNamePiece[] = []
  let ext = ''
  for (const piece of fileNameStructure(name)) {
    if (piece[1] === 'ext') ext = piece[0]
    else if (piece[1] === 'main') kept.push(piece)
    else if (piece[1] === 'boundary' && kept.at(-1)?.[1] === 'main') kept.push(piece)
  }
  if (kept.at(-1)?.[1] === 'boundary') kept.pop()
  const main = kept.map(([text]) => text).join('')
  return main === '' ? name : main + ext
}
