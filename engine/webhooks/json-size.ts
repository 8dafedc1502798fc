/** How many bytes a text takes as a JSON string in UTF-8, and how much of it fits a room. */

export interface Prefix {
  /** Where the text was cut: never within a character. */
  readonly end: number
  /** Of the text up to there, as JSON.stringify writes it, without the quotes. */
  readonly bytes: number
}

/** Backspace, tab, line feed, form feed and carriage return have an escape of two characters, other controls one of six. */
const shortEscapes = new Set([8, 9, 10, 12, 13])
const [quote, backslash] = [0x22, 0x5c]

function sizeOfUnit(unit: number): number {
  if (unit < 0x20) return shortEscapes.has(unit) ? 2 : 6
  if (unit === quote || unit === backslash) return 2
  return unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000

/** The longest beginning of the text that takes no more than `room` bytes. Half of a pair is written as an escape. */
export function jsonPrefix(text: string, room: number): Prefix {
  let bytes = 0
  let at = 0
  while (at < text.length) {
    const unit = text.charCodeAt(at)
    const pair = isHigh(unit) && isLow(text.charCodeAt(at + 1))
    const size = pair ? 4 : isHigh(unit) || isLow(unit) ? 6 : sizeOfUnit(unit)
    if (bytes + size > room) break
    bytes += size
    at += pair ? 2 : 1
  }
  return { end: at, bytes }
}
