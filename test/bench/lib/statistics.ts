/** Percentiles of measured times. */

/** Nearest-rank percentile; NaN of nothing. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

export interface Summary {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** In the unit of the values, to a tenth. */
export function summarise(values: readonly number[]): Summary {
  const at = (percent: number): number => round(percentile(values, percent))
  return { count: values.length, p50: at(50), p99: at(99), max: at(100) }
}

export function round(value: number): number {
  return Math.round(value * 10) / 10
}
