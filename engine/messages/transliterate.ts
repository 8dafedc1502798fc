/**
 * Names in ASCII for `Content-Disposition: attachment; filename="…"`. The clients this service serves read no `filename*`, and
 * HTTP fields are ASCII: Latin, Greek and Cyrillic letters are written in Latin letters, anything else becomes `_`.
 */

const latin = 'ß=ss æ=ae Æ=AE ø=o Ø=O đ=d Đ=D ð=d Ð=D þ=th Þ=Th ł=l Ł=L œ=oe Œ=OE ı=i ħ=h Ħ=H ŋ=n ŧ=t ƒ=f €=EUR £=GBP'
const greek = 'α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x ο=o π=p ρ=r σ=s ς=s τ=t υ=y φ=f χ=ch ψ=ps ω=o'
const cyrillic =
  'а=a б=b в=v г=g д=d е=e ё=e ж=zh з=z и=i й=y к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts ч=ch ш=sh щ=shch ' +
  'ъ= ы=y ь= э=e ю=yu я=ya і=i ї=yi є=ye ґ=g ў=u ђ=dj ј=j љ=lj њ=nj ћ=c џ=dz ѕ=dz'
const signs = "‐=- ‑=- ‒=- –=- —=- ―=- ‘=' ’=' ‚=, “=' ”=' „=' «=' »=' …=... •=- ×=x"

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const table = new Map(
  [latin, greek, cyrillic, signs]
    .flatMap((list) => list.split(' '))
    .flatMap((entry): [string, string][] => {
      const at = entry.indexOf('=')
      const [from, to] = [entry.slice(0, at), entry.slice(at + 1)]
      return from.toUpperCase() === from || from === 'ß'
        ? [[from, to]]
        : [
            [from.toUpperCase(), capitalised(to)],
            [from, to],
          ]
    }),
)

/** Longest name that is put into a header field. */
const maxLength = 200

function shortened(name: string): string {
  if (name.length <= maxLength) return name
  const dot = name.lastIndexOf('.')
  const ext = dot > 0 && name.length - dot <= 20 ? name.slice(dot) : ''
  return name.slice(0, maxLength - ext.length) + ext
}

function letter(char: string): string {
  const known = table.get(char)
  if (known !== undefined) return known
  return /^[ -~]$/.test(char) ? char : '_'
}

/**
 * A name as printable ASCII, safe inside a quoted string: no quote, backslash, slash or control character; never empty
 * ('attachment' then). Deterministic, never throws.
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
