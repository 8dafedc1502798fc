/**
 * Flags and keywords are the same in any case (RFC 9051 §2.3.2). Behind this border the system flags have one spelling; keywords
 * keep the server's, and are compared without regard to case.
 */
const systemFlags = ['\\Answered', '\\Flagged', '\\Deleted', '\\Seen', '\\Draft', '\\Recent']
const spellings = new Map(systemFlags.map((flag) => [flag.toLowerCase(), flag]))

/** As the server has them, each once, system flags in the spelling of the RFC. */
export function canonicalFlags(flags: readonly string[]): string[] {
  const found = new Map<string, string>()
  for (const flag of flags) {
    const key = flag.toLowerCase()
    if (!found.has(key)) found.set(key, spellings.get(key) ?? flag)
  }
  return [...found.values()]
}

/** null is no flags that could be the same. */
export function sameFlags(one: readonly string[] | null, other: readonly string[]): boolean {
  return one !== null && keysOf(one).symmetricDifference(keysOf(other)).size === 0
}

function keysOf(flags: readonly string[]): Set<string> {
  return new Set(flags.map((flag) => flag.toLowerCase()))
}

/** The same flags, keywords spelled as they are known: two connections may be told one keyword in two spellings. */
export function spelledAs(known: readonly string[], flags: readonly string[]): string[] {
  const keywords = new Map(known.filter((flag) => !flag.startsWith('\\')).map((flag) => [flag.toLowerCase(), flag]))
  return flags.map((flag) => keywords.get(flag.toLowerCase()) ?? flag).sort()
}
