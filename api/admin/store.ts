/** Maintenance of the running store: backups, sealing its secrets anew, and retention times. */
import { z } from 'zod'
import { AppError, type Engine, keptNames, notFound, reseal, retentionKeys, withinTime } from '../../engine/index.ts'
import { answer, exampleOf, view } from '../examples.ts'
import { integerOrNone } from '../values.ts'
import { adminRoute } from './shared.ts'

export const backupView = view('AdminBackup', {
  name: [z.string(), '2026-11-22T14-30-00.123Z.db', 'of the file, in MAILROOM_DATA_DIR/backups'],
  bytes: [z.int().nullable(), 104_857_600, 'null = not made yet'],
  seconds: [z.number(), 0.8, 'how long it takes so far, or took'],
  error: [z.string().nullable(), null, 'why it was not made'],
})

function latestBackup({ backups }: Engine): z.input<typeof backupView> {
  const state = backups.latest()
  if (state === null) throw new AppError('not_found', 'no backup was begun since the service started')
  return { ...state, error: state.error?.message ?? null }
}

/** Values that a call seals: few enough to end before the call's deadline. */
const resealedAtOnce = 2000

export const resealView = view('AdminReseal', {
  resealed: [z.int(), 12, 'values that this call sealed with MAILROOM_SECRET'],
  left: [z.int(), 0, 'values that other keys seal still'],
  done: [z.boolean(), true, 'nothing is left that another key sealed: MAILROOM_SECRET_OLD may go'],
  keys: [
    z.record(z.string(), z.int()),
    { '3f9a01bc': 12 },
    'how many values each key seals, by key id; v1 = none is named',
  ],
})

const keptView = answer({
  what: [z.enum(keptNames), 'deliveries'],
  seconds: [z.number(), 2_592_000],
  setting: [z.string(), 'MAILROOM_DELIVERY_RETENTION', 'the environment variable of it'],
  set: [z.boolean(), false, 'an operator has set it; the variable does not count'],
})
export const retentionView = view('AdminRetention', {
  kept: [z.array(keptView), [exampleOf(keptView)], 'what goes by itself once it is so old, and is not needed any more'],
})

/** The retention times in force: as set by an operator, or as configured. */
export function retentionOf({ config, settings }: Engine): z.input<typeof keptView>[] {
  return keptNames.map((what) => {
    const setting = retentionKeys[what]
    return { what, seconds: config[setting] / 1000, setting, set: settings.isSet(what) }
  })
}

/** A retention time in seconds, within the limits of the environment variables: a minute to a hundred years. */
export const keptSeconds = integerOrNone(60, 36_500 * 86_400, 'empty = as the environment says')

export const backupRoutes = [
  adminRoute('POST /admin/backup', {
    scope: 'act',
    summary: 'Makes a backup of the store',
    description:
      'A whole copy of the embedded store as it is now; the service goes on meanwhile. One at a time. The answer waits for it for half of MAILROOM_REQUEST_TIMEOUT; then GET tells when it is made. With MongoDB: 400.',
    response: backupView,
    errors: [409, 503],
    async handler(_input, { engine }) {
      await withinTime(engine.config.MAILROOM_REQUEST_TIMEOUT / 2, engine.backups.run())
      return latestBackup(engine)
    },
  }),
  adminRoute('GET /admin/backup', {
    summary: 'The backup that was begun last, since the service started',
    response: backupView,
    handler: (_input, { engine }) => Promise.resolve(latestBackup(engine)),
  }),
  adminRoute('POST /admin/reseal', {
    scope: 'keys',
    summary: 'Seals with MAILROOM_SECRET what former keys sealed',
    description: `At most ${resealedAtOnce} values a call: ask again until \`done\`. A key of which a value is left stays needed in MAILROOM_SECRET_OLD.`,
    response: resealView,
    handler: (_input, { engine }) => reseal(engine, resealedAtOnce),
  }),
]

export const retentionRoutes = [
  adminRoute('GET /admin/retention', {
    summary: 'How long what is kept',
    response: retentionView,
    handler: (_input, { engine }) => Promise.resolve({ kept: retentionOf(engine) }),
  }),
  adminRoute('PUT /admin/retention/{what}', {
    scope: 'act',
    summary:
      'Set how long changes, deliveries, calls or the audit trail are kept; what is older goes for good, in steps every ten minutes',
    description:
      'The time of deliveries holds for callbacks that wait for a receiver that is away, too: those that wait for longer are given up.',
    body: z.object({ seconds: keptSeconds }).meta({ examples: [{ seconds: 2_592_000 }] }),
    response: retentionView,
    async handler({ path, body: { seconds } }, { engine }) {
      const what = keptNames.find((name) => name === path.what)
      if (what === undefined) throw notFound('what', path.what)
      await engine.settings.keep(what, seconds === null ? null : seconds * 1000)
      return { kept: retentionOf(engine) }
    },
  }),
]
