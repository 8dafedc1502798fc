/** Reads what a client sends: lines with literals → one command with its tokens. */
export type Token =
  | { readonly kind: 'atom'; readonly text: string }
  | { readonly kind: 'string'; readonly text: string; readonly bytes: Buffer }
  | { readonly kind: 'list'; readonly items: readonly Token[] }

export interface ClientCommand {
  readonly tag: string
  /** Upper case; 'UID FETCH' for the UID variants. */
  readonly name: string
  readonly args: readonly Token[]
  /** The command as it came, literals shown by their size. */
  readonly text: string
}

/** A piece of a command: text of a line, or the literal that follows it. */
export type Piece = string | Buffer

export class SyntaxProblem extends Error {}

/**
 * Feed it bytes; it calls back with whole lines and literals. In plain mode (SASL, IDLE) every line is handed over as
 * it is.
 */
export function createLineReader(handlers: {
  /** A synchronising literal was announced. */
  onLiteralAnnounced(): void
  onCommand(pieces: Piece[]): void
  onPlainLine(line: string): void
}) {
  let buffered: Buffer = Buffer.alloc(0)
  /** Came in while a literal was still short of bytes: joined once, when it is whole. */
  let late: Buffer[] = []
  let lateBytes = 0
  let pieces: Piece[] = []
  let literalLeft = -1
  let plain = false
  let stopped = false

  function takeLine(): string | null {
    const end = buffered.indexOf(10)
    if (end < 0) return null
    const line = buffered.subarray(0, end > 0 && buffered[end - 1] === 13 ? end - 1 : end).toString('utf8')
    buffered = buffered.subarray(end + 1)
    return line
  }

  /** One step; false when more bytes are needed. */
  function step(): boolean {
    if (literalLeft >= 0) {
      if (buffered.length < literalLeft) return false
      pieces.push(Buffer.from(buffered.subarray(0, literalLeft)))
      buffered = buffered.subarray(literalLeft)
      literalLeft = -1
      return true
    }
    const line = takeLine()
    if (line === null) return false
    if (plain && pieces.length === 0) {
      handlers.onPlainLine(line)
      return true
    }
    const literal = /~?\{(\d+)(\+?)\}$/.exec(line)
    if (!literal) {
      const whole = [...pieces, line]
      pieces = []
      handlers.onCommand(whole)
      return true
    }
    pieces.push(line.slice(0, literal.index))
    literalLeft = Number(literal[1])
    if (literal[2] !== '+') handlers.onLiteralAnnounced()
    return true
  }

  return {
    feed(chunk: Buffer): void {
      late.push(chunk)
      lateBytes += chunk.length
      if (buffered.length + lateBytes < literalLeft) return
      buffered = Buffer.concat([buffered, ...late])
      late = []
      lateBytes = 0
      while (!stopped && step());
    },
    /** Lines are SASL answers or DONE until this is turned off. */
    setPlain(on: boolean): void {
      plain = on
    },
    stop(): void {
      stopped = true
    },
  }
}

/** Text up to a delimiter; `[…]` belongs to the atom whatever it holds, as in BODY[HEADER.FIELDS (A B)]<0.10>. */
function readAtom(text: string, from: number): number {
  let at = from
  let depth = 0
  while (at < text.length) {
    const char = text.charAt(at)
    if (char === '[') depth += 1
    else if (char === ']') depth = Math.max(0, depth - 1)
    else if (depth === 0 && (char === ' ' || char === '(' || char === ')' || char === '"')) break
    at += 1
  }
  return at
}

function readQuoted(text: string, from: number): { value: string; end: number } {
  let value = ''
  let at = from + 1
  while (at < text.length && text.charAt(at) !== '"') {
    if (text.charAt(at) === '\\') at += 1
    value += text.charAt(at)
    at += 1
  }
  if (at >= text.length) throw new SyntaxProblem('unterminated string')
  return { value, end: at + 1 }
}

function tokenize(pieces: readonly Piece[]): Token[] {
  const stack: Token[][] = [[]]
  const push = (token: Token): void => void stack.at(-1)?.push(token)
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) {
      push({ kind: 'string', text: piece.toString('utf8'), bytes: piece })
      continue
    }
    let at = 0
    while (at < piece.length) {
      const char = piece.charAt(at)
      if (char === ' ') at += 1
      else if (char === '(') {
        stack.push([])
        at += 1
      } else if (char === ')') {
        const items = stack.pop()
        if (!items || stack.length === 0) throw new SyntaxProblem('unexpected )')
        push({ kind: 'list', items })
        at += 1
      } else if (char === '"') {
        const { value, end } = readQuoted(piece, at)
        push({ kind: 'string', text: value, bytes: Buffer.from(value) })
        at = end
      } else {
        const end = readAtom(piece, at)
        if (end === at) throw new SyntaxProblem(`unexpected ${char}`)
        push({ kind: 'atom', text: piece.slice(at, end) })
        at = end
      }
    }
  }
  const [tokens] = stack
  if (stack.length !== 1 || !tokens) throw new SyntaxProblem('missing )')
  return tokens
}

export function parseCommand(pieces: readonly Piece[]): ClientCommand {
  const text = pieces.map((piece) => (Buffer.isBuffer(piece) ? `{${piece.length}}` : piece)).join('')
  const [tag, command, ...rest] = tokenize(pieces)
  if (tag?.kind !== 'atom' || command?.kind !== 'atom') throw new SyntaxProblem('no command')
  const [first, ...others] = rest
  if (command.text.toUpperCase() === 'UID' && first?.kind === 'atom') {
    return { tag: tag.text, name: `UID ${first.text.toUpperCase()}`, args: others, text }
  }
  return { tag: tag.text, name: command.text.toUpperCase(), args: rest, text }
}

/** Text of an atom or string; '' otherwise. */
export function textOf(token: Token | undefined): string {
  return token && token.kind !== 'list' ? token.text : ''
}

export function itemsOf(token: Token | undefined): readonly Token[] {
  if (!token) return []
  return token.kind === 'list' ? token.items : [token]
}

/** '1:3,7,*' over ascending numbers: which of them are meant. `*` is the greatest. */
export function inSet(set: string, greatest: number): (n: number) => boolean {
  const bound = (text: string): number => (text === '*' ? greatest : Number(text))
  const ranges = set.split(',').map((part) => {
    if (!/^(\d+|\*)(:(\d+|\*))?$/.test(part)) throw new SyntaxProblem(`invalid set ${set.slice(0, 40)}`)
    const [from = '', to = from] = part.split(':')
    const [a, b] = [bound(from), bound(to)]
    return [Math.min(a, b), Math.max(a, b)] as const
  })
  return (n) => ranges.some(([from, to]) => n >= from && n <= to)
}

/** A string for the wire: quoted where it can be, else a literal. */
export function quote(text: string | null): string {
  if (text === null) return 'NIL'
  if (/[\r\n\0]|[^\x20-\x7e]/.test(text)) {
    return `{${Buffer.byteLength(text)}}\r\n${text}`
  }
  return `"${text.replace(/["\\]/g, (char) => `\\${char}`)}"`
}
