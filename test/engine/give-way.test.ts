import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGiveWay } from '../../engine/waits.ts'
import { countTurns } from '../support/loop-turns.ts'

function spin(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

/** `pieces` of 4 ms each; answers the turns in which they ran. */
async function work(pieces: number, turnOf: () => number): Promise<number[]> {
  const giveWay = createGiveWay()
  const turns: number[] = []
  for (let n = 0; n < pieces; n += 1) {
    await giveWay()
    turns.push(turnOf())
    spin(4)
  }
  return turns
}

test('twenty batches at once: no more than 10 ms in a turn, all together', async (t) => {
  const turnOf = countTurns(t)
  const all = (await Promise.all(Array.from({ length: 20 }, () => work(5, turnOf)))).flat()
  const inTurn = Map.groupBy(all, (turn) => turn)
  // In a turn there are three that begin before its end and three that have done nothing yet; the counter's turn may
  // hold one and the beginning of the next, which has three more.
  const most = Math.max(...[...inTurn.values()].map(({ length }) => length))
  assert(most <= 9, `${most} pieces of 4 ms in one turn`)
  assert(inTurn.size >= 20, `${inTurn.size} turns`)
})

test('who works little does not wait for those who work much', async (t) => {
  const turnOf = countTurns(t)
  let over = false
  const floods = Array.from({ length: 30 }, async () => {
    const giveWay = createGiveWay()
    while (!over) {
      await giveWay()
      spin(4)
    }
  })
  const giveWay = createGiveWay()
  const waits: number[] = []
  for (let n = 0; n < 25; n += 1) {
    // The floods are known for what they are by then.
    const from = turnOf()
    await giveWay()
    if (n >= 15) waits.push(turnOf() - from)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  over = true
  await Promise.all(floods)
  assert(Math.max(...waits) <= 6, `waited ${waits.join()} turns`)
  assert(waits.filter((turns) => turns === 0).length > 5, `waited ${waits.join()} turns`)
})

test('alone and idle it goes on at once', async (t) => {
  const turnOf = countTurns(t)
  const giveWay = createGiveWay()
  for (let n = 0; n < 5; n += 1) {
    const from = turnOf()
    await giveWay()
    assert.equal(turnOf(), from)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
})
