/** The drawings have every transition of the charts, each on one arrow, and a place for everything. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arrowsOf, type Drawing, drawings, eventsOf, statesOf } from '../../machines/drawing.ts'

const spelled = (from: string, event: string, to: string): string => `${from} ${event} ${to}`

for (const [name, { chart, arrows, layout }] of Object.entries<Drawing>(drawings)) {
  test(`the drawing of ${name}: each transition stands on one arrow, from its state or one around it`, () => {
    const shown = arrows.flatMap(({ to, transitions }) =>
      transitions.map(({ from, event }) => spelled(from, event, to)),
    )
    const all = statesOf(chart).flatMap(({ path, transitions }) =>
      transitions.flatMap(({ event, targets }) => targets.map((to) => spelled(path, event, to))),
    )
    assert.deepEqual(shown.toSorted(), all.toSorted())
    for (const { from, transitions } of arrows)
      for (const one of transitions) assert.ok(`${one.from}.`.startsWith(`${from}.`), `${one.from} is not in ${from}`)
    assert.equal(new Set(arrows.map(({ from, to }) => `${from}>${to}`)).size, arrows.length)
  })

  test(`the drawing of ${name} has a place for each state and arrow, in the picture`, () => {
    const paths = statesOf(chart).map(({ path }) => path)
    assert.deepEqual(Object.keys(layout.states).toSorted(), paths.slice(1).toSorted())
    assert.deepEqual(Object.keys(layout.arrows).toSorted(), arrows.map(({ from, to }) => `${from}>${to}`).toSorted())
    for (const [path, [left = -1, top = -1, width = 0, height = 0]] of Object.entries(layout.states)) {
      assert.ok(left >= 0 && top >= 0 && left + width <= layout.width && top + height <= layout.height, path)
      const [x = 0, y = 0, w = Infinity, h = Infinity] = layout.states[path.split('.').slice(0, -1).join('.')] ?? []
      assert.ok(left >= x && top >= y && left + width <= x + w && top + height <= y + h, `${path} is in its parent`)
    }
  })
}

test('what all states inside of a state lead to is one arrow; regions beside each other keep theirs', () => {
  const arrow = (from: string, to: string) =>
    arrowsOf(drawings.account.chart).find((one) => one.from === from && one.to === to)
  const deciding = 'running.life.deciding'
  const connecting = arrow('running.life.connecting', deciding) ?? assert.fail()
  assert.deepEqual(eventsOf(connecting), ['CHECK_FAILED', 'connect failed', 'after connectDeadline'])
  assert.equal(arrow('running.life.connecting.dialing', deciding), undefined)
  assert.ok(arrow('running.life.waiting', deciding))
  assert.ok(arrow('running.life.online.mailbox', deciding))
  assert.ok(arrow('running.life.online.logins', deciding))
  assert.equal(arrow('running.life.online', deciding), undefined)
  assert.ok(arrow('running.life.waiting', 'running.life.connecting'))
})
