/** SIGKILL in the middle of the work of a process, again and again, each time at another moment. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { endsWithUs } from '../support/orphans.ts'

/** The kills that have to meet each work under way. */
export const manyKills = 30

/** The kills of a work that is killed `manyKills` times on another store. */
export const fewKills = 10

/** Rounds for as many kills, at most. */
export const roundsFor = (kills: number): number => 3 * kills

/**
 * The last line of a program whose work is done. Before it, the program prints a line after each step of its work, the
 * first of them when something has been written.
 */
export const doneLine = 'done'

const root = join(import.meta.dirname, '../..')

/** For the code of a program: the module of a file of this checkout. */
export function imported(file: string): string {
  return `await import(${JSON.stringify(pathToFileURL(join(root, file)).href)})`
}

/** The time of a kill: so many ms after the program has printed so many lines. */
export interface Moment {
  readonly lines: number
  readonly afterMs: number
}

export interface Ended {
  /** Killed between the first line and `doneLine`. */
  readonly underWay: boolean
  readonly isDone: boolean
  /** The time of each line of stdout, in ms. */
  readonly times: readonly number[]
}

/**
 * Runs a program; kills it at the moment, if it has not ended by then. null: does not kill it. Rejects when the program
 * ends by itself, and its work is not done.
 */
export async function runAndKill(code: string, moment: Moment | null): Promise<Ended> {
  const args = ['--input-type=module', '--eval', code]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
  const disown = endsWithUs(() => child.kill('SIGKILL'))
  const closed = once(child, 'close')
  const reached = Promise.withResolvers<undefined>()
  const times: number[] = []
  let [printed, errors] = ['', '']
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
    while (times.length < printed.split('\n').length - 1) times.push(performance.now())
    if (moment !== null && times.length >= moment.lines) reached.resolve(undefined)
  })
  await Promise.race([reached.promise, closed])
  if (moment !== null) {
    await Promise.race([pause(moment.afterMs), closed])
    child.kill('SIGKILL')
  }
  await closed
  disown()
  const isDone = printed.endsWith(`${doneLine}\n`)
  if (!isDone && child.signalCode !== 'SIGKILL') throw new Error(`it ended before its work did:\n${printed}${errors}`)
  return { underWay: !isDone, isDone, times }
}

function gapsBetween(times: readonly number[]): number[] {
  return times.slice(1).map((time, index) => time - (times[index] ?? time))
}

/** The moment of a round: after each line in turn, and each time at another part of the gap to the next one. */
function momentOf(round: number, kills: number, gaps: readonly number[]): Moment {
  const lines = (round % gaps.length) + 1
  const rounds = Math.ceil(kills / gaps.length)
  const turn = Math.floor(round / gaps.length) % rounds
  return { lines, afterMs: ((gaps[lines - 1] ?? 0) * (turn + 0.5)) / rounds }
}

/**
 * Calls `round` until as many kills have met the work under way, with moments that are spread over all of its steps.
 * The first round is not killed. Each round shows how long the steps that it has done take by now.
 */
export async function killSpread(kills: number, round: (moment: Moment | null) => Promise<Ended>): Promise<void> {
  const gaps = gapsBetween((await round(null)).times)
  assert(gaps.length > 0, 'the program prints a line for each step, and one at its end')
  for (let number = 0, met = 0; met < kills; number += 1) {
    assert(number < roundsFor(kills), `${kills} kills under way wanted, ${met} made: the work ends too soon`)
    const { underWay, times } = await round(momentOf(number, kills, gaps))
    for (const [index, gap] of gapsBetween(times).entries()) gaps[index] = gap
    if (underWay) met += 1
  }
}
