/** How long what is kept. The environment sets it: a shorter time removes rows for good. */
import { z } from 'zod'
import type { ConfigKey } from '../../engine/index.ts'
import { answer, view } from '../examples.ts'
import { defineRoute, tagged } from '../route.ts'

const retentionView = view('AdminRetention', {
  kept: [
    z.array(
      answer({
        what: [z.string(), 'deliveries'],
        seconds: [z.number(), 2_592_000],
        setting: [
          z.string(),
          'MAILROOM_DELIVERY_RETENTION',
          'the environment variable that sets it, at the next start',
        ],
      }),
    ),
    [{ what: 'deliveries', seconds: 2_592_000, setting: 'MAILROOM_DELIVERY_RETENTION' }],
    'what goes by itself once it is so old, and is not needed any more',
  ],
})

const settings: readonly (readonly [what: string, setting: ConfigKey & `${string}_RETENTION`])[] = [
  ['changes', 'MAILROOM_CHANGE_RETENTION'],
  ['deliveries', 'MAILROOM_DELIVERY_RETENTION'],
  ['calls', 'MAILROOM_CALL_LOG_RETENTION'],
]

export const retentionRoutes = tagged('Admin', [
  defineRoute('GET /admin/retention', {
    auth: 'operator',
    summary: 'How long what is kept',
    response: retentionView,
    handler: (_input, { engine: { config } }) =>
      Promise.resolve({
        kept: settings.map(([what, setting]) => ({ what, seconds: config[setting] / 1000, setting })),
      }),
  }),
])
