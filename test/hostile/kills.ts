/** SIGKILL in the middle of the work of a process, thirty times, each time at another moment. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { endsWithUs } from '../support/orphans.ts'

export const kills = 30

export interface Ended {
  readonly killed: boolean
  /** From the first line that it printed to its end. */
  readonly tookMs: number
  readonly output: string
}

/** Runs Node with these arguments; kills it so many ms after its first line, if it has not ended by then. */
export async function runAndKill(args: readonly string[], afterMs: number): Promise<Ended> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const disown = endsWithUs(() => child.kill('SIGKILL'))
  const closed = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await Promise.race([once(child.stdout, 'data'), closed])
  const began = performance.now()
  await Promise.race([pause(Math.min(afterMs, 60_000)), closed])
  child.kill('SIGKILL')
  await closed
  disown()
  return { killed: child.signalCode === 'SIGKILL', tookMs: performance.now() - began, output }
}

/**
 * Calls `round` until it has been killed thirty times, with moments that are spread over the time that it takes when
 * nobody kills it. A round that ends before its moment does not count, and shows how long a round takes by now.
 */
export async function killSpread(round: (afterMs: number) => Promise<Ended>): Promise<void> {
  const whole = await round(Infinity)
  if (whole.killed) throw new Error(`it does not end:\n${whole.output}`)
  let { tookMs } = whole
  let killed = 0
  for (let number = 0; killed < kills; number += 1) {
    if (number === 3 * kills) throw new Error(`${kills} kills wanted, ${killed} made: it ends too soon`)
    const ended = await round((tookMs * (number % kills)) / kills)
    if (ended.killed) killed += 1
    else tookMs = ended.tookMs
  }
}
