/** SEARCH over a folder: keys → a test of one message. */
import { fieldOf, searchableText } from './mime.ts'
import { mimeOf, type Message } from './mailbox.ts'
import { SyntaxProblem, inSet, textOf, type Token } from './tokens.ts'

/** What a key may look at. */
export interface Candidate {
  readonly message: Message
  readonly sequence: number
}

export type Matcher = (candidate: Candidate) => boolean

interface Limits {
  readonly greatestUid: number
  readonly greatestSequence: number
}

const flagKeys: Record<string, string> = {
  SEEN: '\\Seen',
  ANSWERED: '\\Answered',
  FLAGGED: '\\Flagged',
  DELETED: '\\Deleted',
  DRAFT: '\\Draft',
}

function day(time: number): number {
  return Math.floor(time / 86_400_000)
}

function dateOf(text: string): number {
  const time = Date.parse(`${text.replace(/-/g, ' ')} UTC`)
  if (Number.isNaN(time)) throw new SyntaxProblem(`invalid date ${text}`)
  return day(time)
}

function holds(value: string | null, text: string): boolean {
  return value !== null && value.toLowerCase().includes(text.toLowerCase())
}

function headerMatcher(name: string, text: string): Matcher {
  return ({ message }) => holds(fieldOf(mimeOf(message), name), text)
}

export function searchMatcher(tokens: readonly Token[], limits: Limits): Matcher {
  const queue = [...tokens]
  const take = (): string => {
    const token = queue.shift()
    if (!token) throw new SyntaxProblem('missing argument')
    return textOf(token)
  }

  function key(): Matcher {
    const token = queue.shift()
    if (!token) throw new SyntaxProblem('missing key')
    if (token.kind === 'list') return searchMatcher(token.items, limits)
    const name = token.text.toUpperCase()
    if (/^[\d*][\d*:,]*$/.test(name)) {
      const within = inSet(name, limits.greatestSequence)
      return ({ sequence }) => within(sequence)
    }
    const flag = flagKeys[name]
    if (flag) return ({ message }) => message.flags.has(flag)
    const absent = name.startsWith('UN') ? flagKeys[name.slice(2)] : undefined
    if (absent) return ({ message }) => !message.flags.has(absent)
    return named(name)
  }

  function named(name: string): Matcher {
    switch (name) {
      case 'ALL':
      case 'OLD':
        return () => true
      case 'NEW':
      case 'RECENT':
        return () => false
      case 'UID': {
        const within = inSet(take(), limits.greatestUid)
        return ({ message }) => within(message.uid)
      }
      case 'NOT': {
        const inner = key()
        return (candidate) => !inner(candidate)
      }
      case 'OR': {
        const [one, other] = [key(), key()]
        return (candidate) => one(candidate) || other(candidate)
      }
      case 'KEYWORD':
      case 'UNKEYWORD': {
        const flag = take()
        return ({ message }) => message.flags.has(flag) === (name === 'KEYWORD')
      }
      case 'SUBJECT':
      case 'FROM':
      case 'TO':
      case 'CC':
      case 'BCC':
        return headerMatcher(name, take())
      case 'HEADER':
        return headerMatcher(take(), take())
      case 'BODY':
      case 'TEXT': {
        const text = take()
        return ({ message }) =>
          holds(searchableText(mimeOf(message)), text) ||
          (name === 'TEXT' && holds(mimeOf(message).header.toString(), text))
      }
      case 'LARGER':
      case 'SMALLER': {
        const size = Number(take())
        return ({ message }) => (name === 'LARGER' ? message.raw.length > size : message.raw.length < size)
      }
      case 'MODSEQ': {
        const least = BigInt(take())
        return ({ message }) => message.modseq >= least
      }
      case 'SINCE':
      case 'BEFORE':
      case 'ON':
      case 'SENTSINCE':
      case 'SENTBEFORE':
      case 'SENTON':
        return dateMatcher(name, dateOf(take()))
      default:
        throw new SyntaxProblem(`unknown key ${name}`)
    }
  }

  function dateMatcher(name: string, wanted: number): Matcher {
    return ({ message }) => {
      const sent = Date.parse(fieldOf(mimeOf(message), 'date') ?? '')
      const found = day(name.startsWith('SENT') ? sent : message.internalDate)
      if (name.endsWith('SINCE')) return found >= wanted
      return name.endsWith('BEFORE') ? found < wanted : found === wanted
    }
  }

  const matchers: Matcher[] = []
  while (queue.length > 0) matchers.push(key())
  return (candidate) => matchers.every((matcher) => matcher(candidate))
}
