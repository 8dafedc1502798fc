/** A process that has no file left to open. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'

/** Why a test that needs it is skipped; false = it is there. */
export function noPrlimit(): string | false {
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' })
    return false
  } catch {
    return 'prlimit (util-linux) is not here'
  }
}

/** What it was comes back when the input ends, however this process does. */
const script = `
before=$(prlimit --pid $PPID --nofile --output SOFT --noheadings)
prlimit --pid $PPID --nofile=0:
echo
cat
prlimit --pid $PPID --nofile=$before:`

/** During the work, this process can open no file and no socket (EMFILE). */
export async function withoutFiles<T>(work: () => Promise<T>): Promise<T> {
  const limiter = spawn('bash', ['-ec', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  const over = once(limiter, 'exit')
  await once(limiter.stdout, 'data')
  try {
    return await work()
  } finally {
    limiter.stdin.end()
    await over
  }
}
