/**
 * kill -9 of the copy of a store to another one. The next copy makes the target whole, with nothing lost and nothing
 * twice.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runStoreCommand, transferNames } from '../../engine/store/copy.ts'
import type { StoreTransfer } from '../../engine/store/transfer.ts'
import { fill, mongoPlace, sqlitePlace, type Place } from '../store/copy-places.ts'
import { needs } from '../support/require.ts'
import { emptyDatabase } from '../support/store-choice.ts'
import { doneLine, fewKills, imported, killSpread, manyKills, runAndKill, type Ended, type Moment } from './kills.ts'

/**
 * What `npm run store` runs: a program without the rest of the service starts in a third of the time. It prints a line
 * for each collection that is copied.
 */
const copying = (args: readonly string[]): string => `
const { runStoreCommand } = ${imported('engine/store/copy.ts')}
process.exitCode = await runStoreCommand(${JSON.stringify(args)}, (line) => {
  if (line.startsWith('copied and verified')) console.log('${doneLine}')
  else if (/^\\w+: \\d+ of /.test(line)) console.log(line)
})`

/** Every record of every collection, in the order of the export. */
async function allOf(open: () => Promise<StoreTransfer>): Promise<Record<string, unknown[]>> {
  const store = await open()
  const all: Record<string, unknown[]> = {}
  for (const name of transferNames) {
    const records: unknown[] = []
    let at: string | null = null
    do {
      const page: Awaited<ReturnType<typeof store.export>> = await store.export(name, at, 500)
      records.push(...page.records)
      at = page.next
    } while (at !== null)
    all[name] = records
  }
  await store.close()
  return all
}

suite('kill -9 of a copy: the next one makes it whole', { timeout: 600_000 }, () => {
  async function filled(source: Place): Promise<Place> {
    const store = await source.store()
    for (let mailbox = 0; mailbox < 6; mailbox += 1) await fill(store)
    await store.close()
    return source
  }

  /** By a process that is killed, and by another one to its end. */
  async function copyTwice(source: Place, target: Place, moment: Moment | null): Promise<Ended> {
    const args = ['copy', '--from', source.address, '--to', target.address]
    const ended = await runAndKill(copying(args), moment)
    if (ended.isDone) return ended
    // A copy that was whole already is refused: what is there decides.
    const status = await runStoreCommand(args, () => undefined)
    return { ...ended, underWay: status === 0 }
  }

  /** One target for all rounds is emptied after each of them. */
  async function killCopies(kills: number, source: Place, target: Place, empty: () => Promise<unknown>): Promise<void> {
    let whole: Record<string, unknown[]> | null = null
    try {
      await killSpread(kills, async (moment) => {
        const ended = await copyTwice(source, target, moment)
        const copied = await allOf(() => target.transfer('source'))
        // The first start is not killed.
        assert.deepEqual(copied, (whole ??= copied))
        await empty()
        return ended
      })
    } finally {
      await Promise.all([source.remove(), target.remove()])
    }
  }

  test('from SQLite to SQLite', { timeout: 300_000 }, async () => {
    const target = await sqlitePlace()
    await killCopies(fewKills, await filled(await sqlitePlace()), target, () => target.remove())
  })

  test('from SQLite to MongoDB', { timeout: 300_000, ...needs('mongodb') }, async () => {
    const target = await mongoPlace()
    await killCopies(manyKills, await filled(await sqlitePlace()), target, () => emptyDatabase(target.address))
  })

  test('from MongoDB to SQLite', { timeout: 300_000, ...needs('mongodb') }, async () => {
    const target = await sqlitePlace()
    await killCopies(fewKills, await filled(await mongoPlace()), target, () => target.remove())
  })
})
