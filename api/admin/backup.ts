/** Care of the store while it is in use: backups of the embedded one, and sealing its secrets anew. */
import { z } from 'zod'
import { reseal } from '../../engine/index.ts'
import { view } from '../examples.ts'
import { defineRoute, tagged } from '../route.ts'

const backupView = view('AdminBackup', {
  name: [z.string(), '2026-11-22T14-30-00.123Z.db', 'of the file, in MAILROOM_DATA_DIR/backups'],
  bytes: [z.int(), 104_857_600],
  seconds: [z.number(), 0.8, 'how long it took'],
})

/** Of one call: it ends before its deadline. */
const resealedAtOnce = 2000

const resealView = view('AdminReseal', {
  resealed: [z.int(), 12, 'values that this call sealed with MAILROOM_SECRET'],
  done: [z.boolean(), true, 'nothing is left that another key sealed: MAILROOM_SECRET_OLD may go'],
  keys: [
    z.record(z.string(), z.int()),
    { '3f9a01bc': 12 },
    'how many values each key seals, by key id; v1 = none is named',
  ],
})

export const backupRoutes = tagged('Admin', [
  defineRoute('POST /admin/backup', {
    auth: 'operator',
    scope: 'act',
    summary: 'Makes a backup of the store',
    description:
      'A whole copy of the embedded store as it is now; the service goes on meanwhile. One at a time. It goes on when the call runs out of time. With MongoDB: 400.',
    response: backupView,
    errors: [409, 503],
    handler: (_input, { engine }) => engine.backups.run(),
  }),
  defineRoute('POST /admin/reseal', {
    auth: 'operator',
    scope: 'keys',
    summary: 'Seals with MAILROOM_SECRET what former keys sealed',
    description: `At most ${resealedAtOnce} values a call: ask again until \`done\`. A key of which a value is left stays needed in MAILROOM_SECRET_OLD.`,
    response: resealView,
    handler: (_input, { engine }) => reseal(engine, resealedAtOnce),
  }),
])
