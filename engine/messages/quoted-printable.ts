/**
 * Quoted-printable (RFC 2045 §6.7) as a byte-wise state machine, so that the cut of the input never matters.
 * White space at the end of a line was added in transport and goes (rule 3); `=` with the line end after it is a soft break
 * (rule 5); an `=` that is neither that nor `=XX` stays as it is, and so do raw 8-bit bytes.
 */
import type { TransferDecoder } from './transfer-decoder.ts'

const [tab, lf, cr, space, equals] = [0x09, 0x0a, 0x0d, 0x20, 0x3d]

/** White space held back to see whether the line ends after it; a longer run is let through. */
const maxHeld = 65_536

/**
 * What was read and not decided: nothing, white space, white space and CR, `=`, `=X`, `=` and white space, `=` … CR.
 * The bytes themselves are in `held`.
 */
type Mode = 'text' | 'space' | 'spaceCr' | 'equals' | 'hex' | 'equalsSpace' | 'equalsCr'

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

const isSpace = (byte: number): boolean => byte === space || byte === tab

/** What to do with a byte: hold it in another mode, decide (`emit` instead of what is held), or let go of what is held and look again. */
type Step = { readonly hold: Mode } | { readonly emit: readonly number[] } | 'release'

const softBreak: Step = { emit: [] }

const steps: Readonly<Record<Exclude<Mode, 'text'>, (byte: number, held: readonly number[]) => Step>> = {
  space: (byte, held) => {
    if (byte === lf) return { emit: [lf] }
    if (byte === cr) return { hold: 'spaceCr' }
    return isSpace(byte) && held.length < maxHeld ? { hold: 'space' } : 'release'
  },
  spaceCr: (byte) => (byte === lf ? { emit: [cr, lf] } : 'release'),
  equals: (byte) => {
    if (byte === lf) return softBreak
    if (byte === cr) return { hold: 'equalsCr' }
    if (isSpace(byte)) return { hold: 'equalsSpace' }
    return hexValue(byte) >= 0 ? { hold: 'hex' } : 'release'
  },
  hex: (byte, held) => (hexValue(byte) >= 0 ? { emit: [hexValue(held[1] ?? 0) * 16 + hexValue(byte)] } : 'release'),
  equalsSpace: (byte, held) => {
    if (byte === lf) return softBreak
    if (byte === cr) return { hold: 'equalsCr' }
    return isSpace(byte) && held.length < maxHeld ? { hold: 'equalsSpace' } : 'release'
  },
  equalsCr: (byte) => (byte === lf ? softBreak : 'release'),
}

interface State {
  mode: Mode
  held: number[]
  out: Buffer
  length: number
}

function decide(state: State, bytes: readonly number[]): void {
  for (const byte of bytes) state.out[state.length++] = byte
  state.held = []
  state.mode = 'text'
}

function hold(state: State, byte: number, mode: Mode): void {
  state.held.push(byte)
  state.mode = mode
}

function take(state: State, byte: number): void {
  if (state.mode !== 'text') {
    const step = steps[state.mode](byte, state.held)
    if (step !== 'release') {
      if ('hold' in step) hold(state, byte, step.hold)
      else decide(state, step.emit)
      return
    }
    decide(state, state.held)
  }
  if (byte === equals) hold(state, byte, 'equals')
  else if (isSpace(byte)) hold(state, byte, 'space')
  else state.out[state.length++] = byte
}

/** What is held when the data ends, whose end is the end of its last line. */
function ending(state: State): number[] {
  if (state.mode === 'hex') return state.held
  return state.mode === 'spaceCr' ? [cr] : []
}

export function createQuotedPrintableDecoder(): TransferDecoder {
  const state: State = { mode: 'text', held: [], out: Buffer.alloc(0), length: 0 }
  return {
    write: (chunk) => {
      state.out = Buffer.allocUnsafe(chunk.length + state.held.length)
      state.length = 0
      for (const byte of chunk) take(state, byte)
      return state.out.subarray(0, state.length)
    },
    end: () => {
      const last = Buffer.from(ending(state))
      state.held = []
      state.mode = 'text'
      return last
    },
  }
}
