/** How many bytes a text takes as a JSON string in UTF-8, and how much of it fits a room. */

export interface Prefix {
  /** Where the text was cut: never within a character. */
  readonly end: number
  /** Of the text up to there, as JSON.stringify writes it, without the quotes. */
  readonly bytes: number
}

/** JSON.stringify is fast, but writes what it measures: piece by piece, and the last ones ever more finely. */
const pieces = [65_536, 256, 1]

/** The longest beginning of the text that takes no more than `room` bytes. */
export function jsonPrefix(text: string, room: number): Prefix {
  let end = 0
  let bytes = 0
  for (const piece of pieces) {
    while (end < text.length) {
      const next = characterEnd(text, end + piece)
      const size = Buffer.byteLength(JSON.stringify(text.slice(end, next))) - 2
      if (bytes + size > room) break
      bytes += size
      end = next
    }
  }
  return { end, bytes }
}

/** Behind the second half of a pair rather than before it. */
function characterEnd(text: string, at: number): number {
  const isHigh = /[\ud800-\udbff]/.test(text.charAt(at - 1))
  return Math.min(text.length, isHigh && /[\udc00-\udfff]/.test(text.charAt(at)) ? at + 1 : at)
}
