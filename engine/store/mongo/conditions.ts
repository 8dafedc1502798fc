/** Conditions that several filters are made of. */

/** Condition on a key that foldCase() made: it holds this text somewhere. A NUL may not stand in a pattern. */
export function containing(text: string): { readonly $regex: string } {
  return { $regex: text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('\0', '\\x00') }
}

/** Both ends inclusive; null = no bound at all. */
export function between(
  from: number | undefined,
  until: number | undefined,
): { readonly $gte?: number; readonly $lte?: number } | null {
  if (from === undefined && until === undefined) return null
  return { ...(from === undefined ? {} : { $gte: from }), ...(until === undefined ? {} : { $lte: until }) }
}

/** No time is before this one: the lower bound by which a partial index over times is told from rows that have none. */
export const beginning = -8.64e15
