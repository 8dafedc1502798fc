/** Backups of the embedded store, made while it is in use. */
import { z } from 'zod'
import { view } from '../examples.ts'
import { defineRoute, tagged } from '../route.ts'

const backupView = view('AdminBackup', {
  name: [z.string(), '2026-11-22T14-30-00.123Z.db', 'of the file, in MAILROOM_DATA_DIR/backups'],
  bytes: [z.int(), 104_857_600],
  seconds: [z.number(), 0.8, 'how long it took'],
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
])
