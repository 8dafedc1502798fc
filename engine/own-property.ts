/**
 * The table's entry for a word from outside, or undefined. Plain indexing finds `constructor`, `__proto__` and
 * `toString` in every table.
 */
export function own<T>(table: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined
}
