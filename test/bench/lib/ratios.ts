/** Figures of two services measured at the same time, and their ratio. */
/** The same thing measured of both, in one round. */
export interface Pair {
  readonly before: number
  readonly now: number
}

export interface Row {
  readonly name: string
  readonly unit: string
  readonly before: number
  readonly now: number
  /** now / before. */
  readonly ratio: number
  /** How far apart the ratios of the single rounds are: highest less lowest. */
  readonly spread: number
}

/** Medians over the rounds. The ratio is the median of the rounds' ratios: what disturbs one round disturbs both. */
export function rowOf(name: string, unit: string, rounds: readonly Pair[]): Row {
  const ratios = rounds.map(({ before, now }) => now / before)
  return {
    name,
    unit,
    before: median(rounds.map((round) => round.before)),
    now: median(rounds.map((round) => round.now)),
    ratio: median(ratios),
    spread: Math.max(...ratios) - Math.min(...ratios),
  }
}

/** Of an even number of values the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  const middle = sorted.slice(Math.ceil(half) - 1, Math.floor(half) + 1)
  return middle.reduce((sum, value) => sum + value, 0) / middle.length
}

/** Those over the bound, in words. A row that could not be measured is one of them. */
export function tooHigh(rows: readonly Row[], bound: number): string[] {
  return rows.filter(({ ratio }) => !(ratio <= bound)).map(({ name, ratio }) => `${name}: ${ratio.toFixed(2)}`)
}
