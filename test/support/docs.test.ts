/**
 * The documents say what the code says, and every file that they name is there. In a process of its own: it has a
 * top-level `await`.
 */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import { sections, textInDocument } from './docs.ts'

const root = join(import.meta.dirname, '../..')
const documents = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/*.{md,json,yml}', { cwd: root })]

const made = await sections()

suite('documents', () => {
  for (const section of made) {
    test(`${section.file} holds what npm run docs prints of ${section.name ?? 'it'}`, () => {
      assert.equal(textInDocument(section), section.text)
    })
  }

  for (const file of documents) {
    test(`${file}: every file that it names is there`, () => {
      const text = readFileSync(join(root, file), 'utf8')
      const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path = '']) => join(dirname(file), path))
      const paths = [...text.matchAll(/`((?:api|engine|machines|test|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path)
      const missing = [...links, ...paths].filter((path) => !existsSync(join(root, path)))
      assert.deepEqual(missing, [])
    })
  }

  test('docs/security.md: each row of what is bounded names a test, and each of test/hostile has a row', () => {
    const text = readFileSync(join(root, 'docs/security.md'), 'utf8')
    const rows = text.split('\n').filter((line) => /^\|/.test(line) && !/^\| (?:Who |--)/.test(line))
    const tests = rows.map((row) =>
      [...(row.split('|').at(-2) ?? '').matchAll(/`([\w./-]+)`/g)].map(([, name = '']) => name),
    )
    assert(rows.length > 20 && tests.every((names) => names.length > 0))
    const named = tests.flat().filter((name) => !name.includes('/'))
    const files = globSync('test/hostile/*.test.ts', { cwd: root }).map((file) => basename(file, '.test.ts'))
    assert.deepEqual([...new Set(named)].toSorted(), files.toSorted())
  })

  test('README is read in one go', () => {
    assert(readFileSync(join(root, 'README.md'), 'utf8').split('\n').length <= 128)
  })
})
