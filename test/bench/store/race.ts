/**
 * Two contestants in turns: each round both do the same, in alternating order, so that the machine's noise hits both.
 */
import { median } from '../lib/ratios.ts'

export interface Outcome {
  readonly name: string
  readonly unit: string
  /** Medians over the rounds, per second. */
  readonly ours: number
  readonly bare: number
  /** Median of the rounds' ratios: ours over bare. */
  readonly ratio: number
  /** The same by this process's processor time, in which neither the disk, a server nor a neighbour counts. */
  readonly cpuRatio: number
  readonly rounds: number
}

/** Answers how much was done, in the unit. */
export type Work = () => Promise<number>

export interface Pair {
  readonly ours: Work
  readonly bare: Work
}

/** The first rounds warm both up and count for nothing. */
const warmUp = 0.1

/** `round` makes a round's work ready, outside the measured time. */
export async function race(
  name: string,
  unit: string,
  rounds: number,
  round: (number: number) => Pair,
): Promise<Outcome> {
  const rates: { readonly ours: Rate; readonly bare: Rate }[] = []
  for (let number = 0; number < rounds; number += 1) {
    const pair = round(number)
    const oursFirst = number % 2 === 0
    const first = await rateOf(oursFirst ? pair.ours : pair.bare)
    const second = await rateOf(oursFirst ? pair.bare : pair.ours)
    rates.push(oursFirst ? { ours: first, bare: second } : { ours: second, bare: first })
  }
  const counted = rates.slice(Math.min(rounds - 1, Math.ceil(rounds * warmUp)))
  const hundredths = (value: number): number => Math.round(value * 100) / 100
  return {
    name,
    unit,
    ours: Math.round(median(counted.map(({ ours }) => ours.perSecond))),
    bare: Math.round(median(counted.map(({ bare }) => bare.perSecond))),
    ratio: hundredths(median(counted.map(({ ours, bare }) => ours.perSecond / bare.perSecond))),
    cpuRatio: hundredths(median(counted.map(({ ours, bare }) => ours.perCpuSecond / bare.perCpuSecond))),
    rounds: counted.length,
  }
}

interface Rate {
  readonly perSecond: number
  readonly perCpuSecond: number
}

async function rateOf(work: Work): Promise<Rate> {
  const cpu = process.cpuUsage()
  const began = performance.now()
  const done = await work()
  const ms = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: (done / ms) * 1000, perCpuSecond: (done / (user + system)) * 1_000_000 }
}

/** Does `one` over and over, `width` at a time, until the time is up. `counter` goes on over the rounds. */
export function during(
  ms: number,
  width: number,
  counter: { next: number },
  one: (index: number) => Promise<number>,
): Work {
  return async () => {
    const until = performance.now() + ms
    let done = 0
    const worker = async (): Promise<void> => {
      while (performance.now() < until) {
        const index = counter.next
        counter.next += 1
        done += await one(index)
      }
    }
    await Promise.all(Array.from({ length: width }, worker))
    return done
  }
}
