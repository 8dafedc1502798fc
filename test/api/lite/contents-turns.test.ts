/** Bodies that take long to decode: others have their turn between two parts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAllContents, readContents } from '../../../api/lite/messages/contents.ts'
import type { Call } from '../../../api/route.ts'
import type { BodyPartRecord, MessageRecord } from '../../../engine/index.ts'
import { countTurns } from '../../support/loop-turns.ts'

const slowMs = 15
const count = 12

/** A text part; `decoded` is called each time that it is decoded. */
function slowPart(section: string, decoded: () => void): BodyPartRecord {
  const part = { section, type: 'text/plain', charset: 'utf-8', encoding: '7bit', size: 4, delSp: false }
  return {
    ...part,
    get flowed() {
      decoded()
      const until = performance.now() + slowMs
      while (performance.now() < until);
      return false
    },
  }
}

function callOf(bytes: ReadonlyMap<string, Buffer>): Call {
  const accounts = {
    fetchParts: () => Promise.resolve(bytes),
    fetchMany: (_: string, wanted: readonly { readonly message: MessageRecord }[]) =>
      Promise.resolve(new Map(wanted.map(({ message }) => [message.id, bytes]))),
  }
  const reserve = (): Promise<void> => Promise.resolve()
  return { engine: { accounts }, reserve, signal: AbortSignal.timeout(60_000) } as unknown as Call
}

test('parts of 15 ms each, of one message and of a list: no more than two in one turn of the event loop', async (t) => {
  const turnOf = countTurns(t)
  const turns: number[] = []
  const sections = Array.from({ length: count }, (_, index) => String(index + 1))
  const part = (section: string): BodyPartRecord => slowPart(section, () => turns.push(turnOf()))
  const messageOf = (id: string, some: readonly string[]): MessageRecord =>
    ({ id, size: 1000, bodies: some.map(part), attachments: [], placements: [] }) as unknown as MessageRecord
  const call = callOf(new Map(sections.map((section) => [section, Buffer.from('text')])))
  const read = {
    one: () => readContents(call, messageOf('one', sections), { include_body: true }),
    list: () =>
      readAllContents(
        call,
        'account',
        sections.map((section) => messageOf(section, [section])),
        { include_body: true },
      ),
  }
  for (const [name, work] of Object.entries(read)) {
    turns.length = 0
    await work()
    assert.equal(turns.length, count, name)
    const most = Math.max(
      ...Map.groupBy(turns, (turn) => turn)
        .values()
        .map(({ length }) => length),
    )
    assert(most <= 2, `${name}: ${most} in one turn`)
  }
})
