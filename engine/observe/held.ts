/**
 * The thread beside the event loop: while one turn goes on and on, a file says whose. Nobody can write it when the
 * process has run out of memory or does not come back; it is gone again when the turn ends.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { isMainThread, workerData } from 'node:worker_threads'

export interface HeldInput {
  /** Int32 [turns so far, bytes of the account's id or 0], then the id. */
  readonly shared: SharedArrayBuffer
  readonly file: string
}

/** A turn that lasts for a whole step is noted. The loop has a turn of its own more often than that. */
const stepMs = 250

function watch({ shared, file }: HeldInput): void {
  const figures = new Int32Array(shared, 0, 2)
  const id = Buffer.from(shared, 8)
  let last = -1
  let noted = false
  setInterval(() => {
    const turns = Atomics.load(figures, 0)
    const length = Atomics.load(figures, 1)
    const isHeld = turns === last && length > 0
    last = turns
    if (isHeld === noted) return
    try {
      if (isHeld) writeFileSync(file, id.subarray(0, length), { mode: 0o600 })
      else rmSync(file, { force: true })
      noted = isHeld
    } catch {
      // Without a directory to write to there is no note.
    }
  }, stepMs)
}

if (!isMainThread) watch(workerData as HeldInput)
