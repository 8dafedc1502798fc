/**
 * Compiled regular expressions, kept while they are in use. An expression that meets texts made to hurt keeps up to the memory that
 * it is given here; all together keep no more than is said here, and the one that was not used for longest is compiled again.
 */
import { isMainThread } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import { RE2JS, RE2Set } from 're2js'

export const expressionFlags = RE2JS.CASE_INSENSITIVE | RE2JS.DOTALL

/** What one expression remembers of the texts it has met. A thread that searches large texts gives it more. */
const rememberedBytes = isMainThread ? 65_536 : 1_048_576
const bytesOfStep = 150
const keptBytes = 61_048_576

const programs = new LRUCache<string, RE2Set>({ maxSize: keptBytes })

/** `steps`: of the compiled program. */
export function programOf(expression: string, steps: number): RE2Set {
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
 * About how many steps an expression has with its repetitions written out, read in one pass, before the library compiles it: that
 * takes long for one that says `{1000}` again and again.
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

/** Index of the last character of what stands for one character: an escape, a set in brackets, a letter. */
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
