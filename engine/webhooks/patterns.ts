/**
 * The pattern language of webhook filters: plain text, shell wildcards (* ? [a-z] [!a-z], \ escapes), or a regular
 * expression between slashes. Patterns run in linear time (re2js) and ignore case, on text in NFC. A bad pattern throws
 * `bad_request` with the parameter and the position (from 1) of the mistake.
 */
import { isMainThread } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import { RE2JS, RE2JSException, RE2JSSyntaxException, RE2Set } from 're2js'
import { badParameter } from '../errors.ts'

/** A compiled pattern: `whole` must cover the value, `within` may lie anywhere in it. */
export interface Pattern {
  readonly source: string
  /** The most that one character of a value costs, in steps of some 16 ns. */
  readonly steps: number
  matches(value: string): boolean
}

export type Anchoring = 'whole' | 'within'

/** The syntax of a filter's text. Folder names and subjects often hold brackets ([Gmail]/Sent): `no brackets`. */
export interface Grammar {
  readonly list: boolean
  readonly wildcards: 'all' | 'no brackets'
  readonly anchoring: Anchoring
}

const longest = 2000
/** Bound on all expressions of a filter together, with their repetitions written out. */
const mostSteps = 10_000

/** Lower case in NFC: equal for names that look alike. */
export function fold(text: string): string {
  return text.normalize('NFC').toLowerCase()
}

function wrong(parameter: string, position: number, problem: string) {
  return badParameter(parameter, `${problem} at position ${position + 1}`)
}

/** Alternatives of a filter: any of them may match. Throws `bad_request`. */
export function compilePatterns(parameter: string, text: string, grammar: Grammar): readonly Pattern[] {
  if (text.length > longest) throw badParameter(parameter, `is longer than ${longest} characters`)
  const composed = text.normalize('NFC')
  const items = grammar.list ? splitList(parameter, composed) : [trimmed(composed)]
  const meter: Meter = { left: mostSteps }
  return items.map((item) => compileItem(parameter, item, grammar, meter))
}

/** Steps that remain for the filter's next expressions. */
interface Meter {
  left: number
}

/** A bound on the cost of all patterns on all values, in steps of some 16 ns. */
export function costOf(patterns: readonly Pattern[], values: readonly string[]): number {
  const steps = patterns.reduce((sum, pattern) => sum + pattern.steps, 0)
  const characters = values.reduce((sum, value) => sum + value.length, 0)
  return stepsOfTry * patterns.length * values.length + steps * characters
}
const stepsOfTry = 32

interface Item {
  readonly text: string
  /** Index of the item in the filter's text. */
  readonly at: number
  /** The item stood in double quotes: it is plain text. */
  readonly quoted?: boolean
}

function trimmed(text: string): Item {
  return { text: text.trim(), at: text.length - text.trimStart().length }
}

/** Comma list whose items may be /regular expressions/ or "quoted, text": commas inside those do not separate. */
function splitList(parameter: string, text: string): Item[] {
  const items: Item[] = []
  let at = 0
  while (at <= text.length) {
    while (text[at] === ' ') at += 1
    const end = itemEnd(parameter, text, at)
    const raw = text.slice(at, end).trimEnd()
    if (raw === '') throw wrong(parameter, Math.min(at, text.length), 'empty item')
    const quoted = raw.length > 1 && raw.startsWith('"') && raw.endsWith('"')
    items.push(quoted ? { text: raw.slice(1, -1), at: at + 1, quoted } : { text: raw, at })
    at = end + 1
  }
  return items
}

/** Index of the comma that ends the item starting at `at`, or the text's end. */
function itemEnd(parameter: string, text: string, at: number): number {
  const opener = text[at]
  if (opener !== '/' && opener !== '"') return plainEnd(text, at)
  for (let index = at + 1; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1
    else if (text[index] === opener && /^\s*(,|$)/.test(text.slice(index + 1))) return plainEnd(text, index + 1)
  }
  throw wrong(parameter, at, opener === '/' ? 'regular expression without closing /' : 'quoted text without closing "')
}

function plainEnd(text: string, at: number): number {
  for (let index = at; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1
    else if (text[index] === ',') return index
  }
  return text.length
}

function compileItem(parameter: string, item: Item, grammar: Grammar, meter: Meter): Pattern {
  const { text, at } = item
  if (item.quoted === true) return plain(text, grammar.anchoring)
  if (text === '') throw wrong(parameter, at, 'empty pattern')
  if (text.startsWith('/')) {
    if (text.length < 2 || !text.endsWith('/')) throw wrong(parameter, at, 'regular expression without closing /')
    return regex(parameter, item, meter)
  }
  const wild = grammar.wildcards === 'all' ? /[*?[\\]/ : /[*?]/
  if (!wild.test(text)) return plain(text, grammar.anchoring)
  return wildcard(parameter, item, grammar, meter)
}

function plain(source: string, anchoring: Anchoring): Pattern {
  const wanted = fold(source)
  const matches =
    anchoring === 'whole' ? (value: string) => fold(value) === wanted : (value: string) => fold(value).includes(wanted)
  // V8 compares most texts in a few steps. A hostile text costs up to half a nanosecond for every letter.
  return { source, steps: 2 + Math.ceil(wanted.length / 32), matches }
}

function regex(parameter: string, { text: source, at }: Item, meter: Meter): Pattern {
  const body = source.slice(1, -1)
  if (body === '') throw wrong(parameter, at, 'empty regular expression')
  try {
    return { source, ...compiled(parameter, at, body, meter) }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw wrong(parameter, at + 1 + offenceIn(body, error), describe(error))
  }
}

/** Compiles the expression once to find mistakes and its size. `programOf` compiles it again at its first match. */
function compiled(parameter: string, at: number, expression: string, meter: Meter): Omit<Pattern, 'source'> {
  const check = (steps: number): void => {
    if (steps > meter.left) throw wrong(parameter, at, `more than ${mostSteps} steps with all repetitions written out`)
  }
  check(stepsWritten(expression))
  const steps = RE2JS.compile(expression, expressionFlags).programSize()
  check(steps)
  meter.left -= steps
  return { steps, matches: (value) => programOf(expression, steps).match(value.normalize('NFC')).length > 0 }
}

/** Index of the mistake. re2js names the offending piece; if that is the whole pattern, its end is missing. */
function offenceIn(body: string, error: RE2JSException): number {
  const piece = error instanceof RE2JSSyntaxException ? (error.getPattern() ?? '') : ''
  if (piece === '' || piece.endsWith(body)) return body.length
  return Math.max(0, body.indexOf(piece))
}

function describe(error: RE2JSException): string {
  return error instanceof RE2JSSyntaxException ? error.getDescription() : error.message
}

/** Matches the literal text too: `report[1].pdf` finds the file of that name. */
function wildcard(parameter: string, { text, at }: Item, grammar: Grammar, meter: Meter): Pattern {
  const source = translate(parameter, text, at, grammar.wildcards === 'all')
  const expression = compiled(parameter, at, grammar.anchoring === 'whole' ? `^(?:${source})$` : source, meter)
  const literal = plain(text, grammar.anchoring)
  return {
    source: text,
    steps: literal.steps + expression.steps,
    matches: (value) => literal.matches(value) || expression.matches(value),
  }
}

function translate(parameter: string, text: string, at: number, brackets: boolean): string {
  let out = ''
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index)
    if (character === '*') out += '.*'
    else if (character === '?') out += '.'
    else if (character === '\\' && brackets && index + 1 < text.length) out += RE2JS.quote(text.charAt((index += 1)))
    else if (character === '[' && brackets) {
      const end = closing(text, index)
      if (end < 0) throw wrong(parameter, at + index, '[ without closing ]')
      out += bracket(parameter, text.slice(index + 1, end), at + index)
      index = end
    } else out += RE2JS.quote(character)
  }
  return out
}

/** A ] right after [ or [! stands for itself. */
function closing(text: string, open: number): number {
  const skip = /^[!^]/.test(text.slice(open + 1)) ? 2 : 1
  return text.indexOf(']', open + skip + 1)
}

function bracket(parameter: string, inside: string, at: number): string {
  const negated = /^[!^]/.test(inside)
  const members = negated ? inside.slice(1) : inside
  const escaped = members.replace(/[\\\]^[]/g, '\\$&')
  const source = `[${negated ? '^' : ''}${escaped}]`
  try {
    RE2JS.compile(source, expressionFlags)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    throw wrong(parameter, at, describe(error))
  }
  return source
}

export const expressionFlags = RE2JS.CASE_INSENSITIVE | RE2JS.DOTALL

/** Memory of one expression; a worker searches larger texts. */
const rememberedBytes = isMainThread ? 65_536 : 1_048_576
const bytesOfStep = 150
const keptBytes = 61_048_576

/** Compiled regular expressions, `keptBytes` in all, each with up to `rememberedBytes` of cached automaton states. */
const programs = new LRUCache<string, RE2Set>({ maxSize: keptBytes })

function programOf(expression: string, steps: number): RE2Set {
  const known = programs.get(expression)
  if (known !== undefined) return known
  const program = new RE2Set(RE2Set.UNANCHORED, expressionFlags, rememberedBytes)
  program.add(expression)
  program.compile()
  programs.set(expression, program, { size: rememberedBytes + steps * bytesOfStep })
  return program
}

const repeat = /\{(\d{1,4})(?:,(\d{0,4}))?\}/y

/**
 * About how many steps an expression has with its repetitions written out. It is estimated before the library compiles
 * the expression, because `{1000}` again and again takes half a second to compile.
 */
export function stepsWritten(expression: string): number {
  const outer: number[] = []
  let [size, last] = [0, 0]
  for (let at = 0; at < expression.length; at += 1) {
    const character = expression.charAt(at)
    repeat.lastIndex = at
    const times = character === '{' ? repeat.exec(expression) : null
    if (times !== null) {
      const more = last * (Math.max(Number(times[1]), Number(times[2] ?? 0)) - 1)
      size += more
      last += more
      at = repeat.lastIndex - 1
    } else if (character === '(') {
      outer.push(size)
      size = 0
    } else if (character === ')') {
      last = size
      size += outer.pop() ?? 0
    } else if (!'*+?|'.includes(character)) {
      at = atomEnd(expression, at)
      last = 1
      size += 1
    }
  }
  return outer.reduce((sum, one) => sum + one, size)
}

/** Index of the last character of an atom: an escape, a set in brackets, a letter. */
function atomEnd(expression: string, at: number): number {
  const character = expression.charAt(at)
  if (character === '\\') return /^[xpP]\{/.test(expression.slice(at + 1, at + 3)) ? endOf(expression, '}', at) : at + 1
  if (character !== '[') return at
  for (let index = at + 1; index < expression.length; index += 1) {
    if (expression[index] === '\\') index += 1
    else if (expression.startsWith('[:', index)) index = endOf(expression, ':]', index) + 1
    else if (expression[index] === ']' && index > at + 1 && expression.slice(at + 1, index) !== '^') return index
  }
  return expression.length
}

function endOf(expression: string, closer: string, from: number): number {
  const end = expression.indexOf(closer, from)
  return end === -1 ? expression.length : end
}
