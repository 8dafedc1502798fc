/** Processor time of a process, from the kernel. */
import { readdirSync, readFileSync } from 'node:fs'

/** Nanoseconds of all its threads together; those of threads that ended are lost. */
export function cpuNanosOf(pid: number): number {
  const directory = `/proc/${pid}/task`
  return readdirSync(directory).reduce((sum, thread) => sum + nanosOf(`${directory}/${thread}/schedstat`), 0)
}

/** 0 for a thread that has just ended. */
function nanosOf(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').split(' ', 1)[0])
  } catch {
    return 0
  }
}
