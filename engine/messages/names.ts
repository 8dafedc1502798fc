/**
 * Names in the API. Folders have '/' between their levels, whatever the server uses. File names of attachments are one
 * bounded line, split for `file_name_structure` and `main_file_name`, and in ASCII for `Content-Disposition`.
 */
import { oneLine } from './encoded-words.ts'
import type { FolderRecord } from '../store/records.ts'

type Named = Pick<FolderRecord, 'path' | 'delimiter'>

/** A folder with a '/' inside of a level keeps the server's spelling: only that shows its levels. */
export function folderName({ path, delimiter }: Named): string {
  if (delimiter === '' || delimiter === '/' || path.includes('/')) return path
  return path.split(delimiter).join('/')
}

/** The delimiter of an account's folders; a flat folder has none. */
export function usualDelimiter(folders: readonly Pick<FolderRecord, 'delimiter'>[]): string {
  return folders.find(({ delimiter }) => delimiter !== '')?.delimiter ?? '/'
}

/** Server path → name, for the folders of one account. A folder that is not listed has the delimiter of the others. */
export function folderNamer(folders: readonly Named[]): (path: string) => string {
  const usual = usualDelimiter(folders)
  const odd = new Map(folders.filter((one) => one.delimiter !== usual).map((one) => [one.path, one.delimiter]))
  return (path) => folderName({ path, delimiter: odd.get(path) ?? usual })
}

const maxFileNameLength = 1_000

type FileNameKind = 'main' | 'boundary' | 'numeric' | 'date' | 'ext'
type FileNamePiece = readonly [text: string, kind: FileNameKind]

/** A decoded name in one line, bounded. A path in it is kept: do not use it as a path on a disk. */
export function cleanFileName(name: string): string {
  return oneLine(name, maxFileNameLength)
}

/** File name of a nested message without a name. */
export function subjectFileName(subject: string): string {
  const name = oneLine(subject, 200)
    .replace(/[\\/:*?"<>|]+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return `${name === '' ? 'message' : name}.eml`
}

/** `.pdf`, `.tar.gz`, `.7z`. */
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
 * A file name as an array of [text, kind]; the texts joined are the name. Kinds: `main` words, `boundary` separators,
 * `numeric` numbers (versions, counters), `date` dates (2011-03-04, 4-27-10, 20110304), `ext` the extension with its
 * dot, unless that is the whole name. [] for ''.
 */
export function fileNameStructure(name: string): FileNamePiece[] {
  const found = extension.exec(name)
  const ext = found && found.index > 0 ? found[0] : ''
  const stem = name.slice(0, name.length - ext.length)
  const result: FileNamePiece[] = Array.from(stem.matchAll(pieces), (match) => [match[0], kindOf(match.groups ?? {})])
  return ext === '' ? result : [...result, [ext, 'ext']]
}

/**
 * The name without numbers and dates, which is the same for all versions of a document: 'report_2011-03-04_v3.pdf' →
 * 'report_v.pdf'. The name itself when it has nothing but numbers and dates.
 */
export function mainFileName(name: string): string {
  const kept: FileNamePiece[] = []
  let ext = ''
  for (const piece of fileNameStructure(name)) {
    const [text, kind] = piece
    if (kind === 'ext') ext = text
    else if (kind === 'main' || (kind === 'boundary' && kept.at(-1)?.[1] === 'main')) kept.push(piece)
  }
  if (kept.at(-1)?.[1] === 'boundary') kept.pop()
  const main = kept.map(([text]) => text).join('')
  return main === '' ? name : main + ext
}

const latin = 'ß=ss æ=ae Æ=AE ø=o Ø=O đ=d Đ=D ð=d Ð=D þ=th Þ=Th ł=l Ł=L œ=oe Œ=OE ı=i ħ=h Ħ=H ŋ=n ŧ=t ƒ=f €=EUR £=GBP'
const greek = 'α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o'
const cyrillic =
  'а=a б=b в=v г=g д=d е=e ё=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts ч=ch ш=sh щ=shch ' +
  'ъ= ы=y ь= э=e ю=yu я=ya і=i ї=yi є=ye ґ=g ў=u ђ=dj ј=j љ=lj њ=nj ћ=c џ=dz ѕ=dz'
const signs = "‐=- ‑=- ‒=- –=- —=- ―=- ‘=' ’=' ‚=, “=' ”=' „=' «=' »=' …=... •=- ×=x"

/** Each letter has its capital too; 'ß' has none of one letter. */
const table = new Map(
  [latin, greek, cyrillic, signs]
    .flatMap((list) => list.split(' '))
    .flatMap((entry): [string, string][] => {
      const at = entry.indexOf('=')
      const [from, to] = [entry.slice(0, at), entry.slice(at + 1)]
      const capital: [string, string] = [from.toUpperCase(), to.charAt(0).toUpperCase() + to.slice(1)]
      return from.toUpperCase() === from || from === 'ß' ? [[from, to]] : [capital, [from, to]]
    }),
)

/** Longest name that is put into a header field. */
const maxFieldLength = 200

function shortened(name: string): string {
  if (name.length <= maxFieldLength) return name
  const dot = name.lastIndexOf('.')
  const ext = dot > 0 && name.length - dot <= 20 ? name.slice(dot) : ''
  return name.slice(0, maxFieldLength - ext.length) + ext
}

function letter(char: string): string {
  const known = table.get(char)
  if (known !== undefined) return known
  return /^[ -~]$/.test(char) ? char : '_'
}

/**
 * A name in printable ASCII, safe inside a quoted string: no quote, backslash, slash or control character. 'attachment'
 * when no letter is left. Deterministic, never throws.
 */
export function transliterate(name: string): string {
  const composed = name.slice(0, 2000).toWellFormed().normalize('NFC')
  // Letters of the table are looked up whole; the others lose their accents.
  const letters = Array.from(composed, (char) =>
    table.has(char) ? letter(char) : Array.from(char.normalize('NFKD').replace(/\p{M}/gu, ''), letter).join(''),
  )
  const safe = shortened(
    letters
      .join('')
      .replace(/["\\/]/g, '_')
      .replace(/_{2,}/g, '_')
      .trim(),
  )
  return safe.replace(/[_. ]/g, '') === '' ? 'attachment' : safe
}
