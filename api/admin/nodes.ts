/** The processes that share the store: their records in the store, and the figures that each of them answers. */
import { z } from 'zod'
import type { Engine } from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { time, view } from '../examples.ts'
import { adminRoute, count } from './shared.ts'

const nodeView = view('AdminNode', {
  id: [z.string(), '0f9a6c1e-5d3b-4c7a-9e21-7b64d0a1c2f3', '`local` on the embedded store'],
  address: [z.string().nullable(), '10.0.0.11:41873', 'where the others reach it'],
  here: [z.boolean(), true, 'it has made this answer'],
  place: [z.string(), 'mail-1', 'its machine or container'],
  pid: [z.int(), 4711],
  state: [
    z.enum(['joining', 'joined', 'leaving', 'silent']),
    'joined',
    'joining: it waits for others to end; leaving: it hands its slots over; silent: it does not answer this node',
  ],
  role: [z.string().nullable(), 'all', 'MAILROOM_ROLE; null here and below = it did not say'],
  version: [z.string().nullable(), '0.1.0'],
  started: [z.int().nullable(), time],
  slots: [count, 2048, 'of the 4,096 that users are hashed into'],
  accounts: [count.nullable(), 5000, 'email accounts with an actor there'],
  beat_age: [z.number(), 0.4, 'seconds since its last beat in the database, as this node sees it'],
  memory_mib: [z.number().nullable(), 210],
  loop_delay_ms: [z.number().nullable(), 3, 'the longest of the last ten seconds'],
})
export type NodeRow = z.input<typeof nodeView>

export async function listNodes({ store, everyNode }: Engine): Promise<NodeRow[]> {
  const { answers, silent } = await everyNode.ask('figures')
  const figures = new Map(answers.map(({ address, answer: one }) => [address, one]))
  return store.nodes.list().map(({ silentMs, state, ...node }) => {
    const { here, id, address, place, pid, slots } = node
    const said = here ? answers[0]?.answer : figures.get(address)
    const last = said?.samples.at(-1)
    return {
      ...{ id, address, here, place: place.split(' ')[0] ?? '', pid, slots },
      state: address !== null && silent.includes(address) ? 'silent' : state,
      role: said?.role ?? null,
      version: said?.version ?? null,
      started: said === undefined ? null : seconds(said.startedAt),
      accounts: said?.accounts ?? null,
      beat_age: Math.round(silentMs) / 1000,
      memory_mib: last === undefined ? null : Math.round(last.memoryMib),
      loop_delay_ms: last === undefined ? null : Math.round(last.loopDelayMs),
    }
  })
}

export const nodesRoute = adminRoute('GET /admin/nodes', {
  summary: 'List the processes that share the store, with their slots and accounts',
  response: z.array(nodeView),
  handler: (_input, { engine }) => listNodes(engine),
})
