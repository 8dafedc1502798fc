/** A data directory that was there before: closed to others when it is ours, told of in any case. */
import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { keepDirPrivate } from '../../engine/data-dir.ts'
import { silentLogger } from '../../engine/observe/log.ts'

const nobody = 65534

suite('an existing data directory', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mr-dir-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  let count = 0

  /** Its mode afterwards, and what was told. */
  function look(mode: number, files: readonly string[], prepare: (directory: string) => void = () => undefined) {
    const directory = join(folder, String((count += 1)))
    mkdirSync(directory)
    for (const name of files) writeFileSync(join(directory, name), '')
    chmodSync(directory, mode)
    prepare(directory)
    const told: string[] = []
    const log = { ...silentLogger, warn: (_facts: unknown, words?: string) => void told.push(words ?? '') }
    keepDirPrivate(directory, log)
    return { mode: statSync(directory).mode & 0o7777, told }
  }

  const own = [
    'secret',
    'mailroom.sqlite',
    'mailroom.sqlite-wal',
    'mailroom.sqlite-shm',
    'mailroom.sqlite.lock',
    'backups',
  ]

  for (const mode of [0o755, 0o750, 0o777, 0o701]) {
    for (const files of [[], own]) {
      test(`of ours with mode ${mode.toString(8)} and ${files.length} files is 0700 afterwards, and told of`, () => {
        const { mode: now, told } = look(mode, files)
        assert.equal(now, 0o700)
        assert.deepEqual(told, ['others could look into the data directory: it is closed to them now (0700)'])
      })
    }
  }

  test('that nobody else can look into is left alone', () => {
    assert.deepEqual(look(0o700, own), { mode: 0o700, told: [] })
  })

  test('that holds files of others is told of, and stays as it is', () => {
    for (const name of ['somebody.txt', 'secrets', 'mailroom.sqlite3', '.profile'])
      assert.deepEqual(look(0o1777, [...own, name]), {
        mode: 0o1777,
        told: ['others can look into the data directory: chmod 700'],
      })
  })

  test(
    'of somebody else is told of, and stays as it is',
    { skip: process.getuid?.() !== 0 && 'only root can make one' },
    () => {
      const told = ['others can look into the data directory: chmod 700']
      assert.deepEqual(
        look(0o755, own, (directory) => chownSync(directory, nobody, nobody)),
        { mode: 0o755, told },
      )
    },
  )

  test('that is not there yet, or no directory, is nothing to tell of', () => {
    const warn = (): void => assert.fail('told of')
    for (const path of [join(folder, 'nowhere'), import.meta.filename]) keepDirPrivate(path, { ...silentLogger, warn })
  })
})
