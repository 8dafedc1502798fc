/**
 * Processes that a test started end with it, also when it is told to end by a signal (as the test runner does at a
 * timeout).
 */
const kills = new Set<() => void>()

function killAll(): void {
  for (const kill of kills) kill()
}

function bySignal(signal: NodeJS.Signals): void {
  // somebody else in this process ends it in good order
  if (process.listenerCount(signal) > 1) return
  process.exit(128 + (signal === 'SIGINT' ? 2 : 15))
}

/** `kill` runs at the end of this process, whatever ends it but SIGKILL. Answers the way to take it back. */
export function endsWithUs(kill: () => void): () => void {
  if (kills.size === 0) {
    process.on('exit', killAll)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, bySignal)
  }
  kills.add(kill)
  return () => {
    kills.delete(kill)
    if (kills.size > 0) return
    process.off('exit', killAll)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.off(signal, bySignal)
  }
}
