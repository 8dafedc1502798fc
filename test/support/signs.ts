/** Any character, as texts of property tests have them. */
import fc from 'fast-check'

/** Printable ones of ASCII come first, as the simplest. */
const signOf = (index: number): string => {
  const code = index < 95 ? index + 32 : index < 127 ? index - 95 : index
  return String.fromCodePoint(code < 0xd800 ? code : code + 0x800)
}

const indexOf = (sign: unknown): number => {
  const code = typeof sign === 'string' ? (sign.codePointAt(0) ?? -1) : -1
  const isOne = code >= 0 && String.fromCodePoint(code) === sign
  if (!isOne || (code >= 0xd800 && code < 0xe000)) throw new Error('not one character')
  const index = code < 0xd800 ? code : code - 0x800
  return index < 32 ? index + 95 : index < 127 ? index - 32 : index
}

/** As fast-check's unit `binary`, which makes a table of all of Unicode first. */
export const anySign = fc.integer({ min: 0, max: 0x10f7ff }).map(signOf, indexOf)
