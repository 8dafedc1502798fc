/** The processes that share the store. */
import { z } from 'zod'
import { listNodes } from '../admin/nodes.ts'
import { page } from './frame.ts'
import { card, lasted, moment, pill, scrolling, table } from './parts.ts'

export const nodes = page('/console/nodes', z.object({}), async (_input, { engine, live }) => {
  const rows = table(await listNodes(engine), '', {
    Process: ({ address, place, pid }) => address ?? `${pid} on ${place}`,
    State: ({ state }) => pill(state, state === 'silent' ? 'bad' : undefined),
    Role: ({ role }) => role,
    '#Slots': ({ slots }) => slots,
    '#Accounts': ({ accounts }) => accounts,
    'Last beat': ({ beat_age: age }) => `${lasted(age * 1000)} ago`,
    Started: ({ started }) => (started === null ? null : moment(started)),
    '#Memory': ({ memory_mib: mib }) => mib && `${mib} MiB`,
    '#Loop delay': ({ loop_delay_ms: ms }) => ms && `${ms} ms`,
    Version: ({ version }) => version,
    'On machine': ({ place, pid, here }) => `${place}, process ${pid}${here ? ' (this page is made here)' : ''}`,
  })
  return { title: 'Processes', content: card(null, scrolling('Processes', live('nodes', rows), 'wide')) }
})
