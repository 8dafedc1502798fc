/**
 * The table's own entry for a word that comes from outside; undefined when it has none. Plain indexing finds
 * `constructor`, `__proto__` and `toString` in every table.
 */
export function own<T>(table: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined
}
