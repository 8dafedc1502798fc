/** Turns of the event loop, as a test counts them until its end. */
export function countTurns(t: { after(run: () => void): void }): () => number {
  let turn = 0
  const tick = (): void => {
    turn += 1
    next = setImmediate(tick)
  }
  let next = setImmediate(tick)
  t.after(() => {
    clearImmediate(next)
  })
  return () => turn
}
