import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fileNameStructure, mainFileName, subjectFileName, transliterate } from '../../../engine/messages/names.ts'
import { anySign } from '../../support/signs.ts'

test('fileNameStructure takes names apart', () => {
  assert.deepEqual(fileNameStructure('Annual report_2011-03-04_v3.pdf'), [
    ['Annual', 'main'],
    [' ', 'boundary'],
    ['report', 'main'],
    ['_', 'boundary'],
    ['2011-03-04', 'date'],
    ['_', 'boundary'],
    ['v', 'main'],
    ['3', 'numeric'],
    ['.pdf', 'ext'],
  ])
  assert.deepEqual(fileNameStructure('IMG20240305 (2).tar.gz'), [
    ['IMG', 'main'],
    ['20240305', 'date'],
    [' (', 'boundary'],
    ['2', 'numeric'],
    [')', 'boundary'],
    ['.tar.gz', 'ext'],
  ])
  assert.deepEqual(fileNameStructure('4-27-10.xls'), [
    ['4-27-10', 'date'],
    ['.xls', 'ext'],
  ])
  assert.deepEqual(fileNameStructure('Отчёт.docx'), [
    ['Отчёт', 'main'],
    ['.docx', 'ext'],
  ])
  assert.deepEqual(fileNameStructure('.htaccess'), [
    ['.', 'boundary'],
    ['htaccess', 'main'],
  ])
  assert.deepEqual(fileNameStructure('README'), [['README', 'main']])
  assert.deepEqual(fileNameStructure(''), [])
})

test('the texts joined are the name, and no text is empty', () => {
  const signs = fc
    .array(fc.constantFrom('a', 'é', '1', '2024', '-', '_', '.', ' ', '.pdf', '03', '(', '\ud800', '🎉'))
    .map((all) => all.join(''))
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: anySign }), signs), (name) => {
      const pieces = fileNameStructure(name)
      assert.equal(pieces.map(([text]) => text).join(''), name)
      assert.ok(pieces.every(([text]) => text !== ''))
    }),
    { numRuns: 2000 },
  )
})

test('mainFileName: versions of one document share it', () => {
  const versions = ['report.pdf', 'report_2.pdf', 'report (3).pdf', 'report-2024-03-05.pdf']
  assert.deepEqual([...new Set(versions.map(mainFileName))], ['report.pdf'])
  assert.equal(mainFileName('12345.pdf'), '12345.pdf')
  assert.equal(mainFileName(''), '')
  assert.equal(mainFileName('Annual report_2011-03-04_v3.pdf'), 'Annual report_v.pdf')
})

test('subjectFileName makes a name of any subject', () => {
  assert.equal(subjectFileName('Re: a/b\\c "x"'), 'Re a b c x.eml')
  assert.equal(subjectFileName(''), 'message.eml')
})

const names: readonly (readonly [name: string, ascii: string])[] = [
  ['plain.txt', 'plain.txt'],
  ['naïve café.txt', 'naive cafe.txt'],
  ['Grüße & Straße.pdf', 'Grusse & Strasse.pdf'],
  ['Отчёт Щукин.doc', 'Otchet Shchukin.doc'],
  ['Καλημέρα.txt', 'Kalimera.txt'],
  ['Łódź Ærø.txt', 'Lodz AEro.txt'],
  ['日本語.pdf', '_.pdf'],
  ['a"b\\c/d.txt', 'a_b_c_d.txt'],
  ['a\r\nSet-Cookie: x', 'a_Set-Cookie: x'],
  ['“quoted” – 5 €.txt', "'quoted' - 5 EUR.txt"],
  ['ﬁle ①.txt', 'file 1.txt'],
  ['🎉', 'attachment'],
  ['', 'attachment'],
  ['..', 'attachment'],
  ['Й.txt', 'Y.txt'],
]

for (const [name, ascii] of names) {
  test(`transliterate: ${JSON.stringify(name)}`, () => {
    assert.equal(transliterate(name), ascii)
  })
}

test('transliterate: printable ASCII without quote, backslash and slash, never empty, bounded, stable', () => {
  fc.assert(
    fc.property(fc.string({ unit: anySign, maxLength: 400 }), (name) => {
      const ascii = transliterate(name)
      assert.match(ascii, /^[ -~]+$/)
      assert.doesNotMatch(ascii, /["\\/]/)
      assert.ok(ascii.length <= 200)
      assert.equal(transliterate(ascii), ascii)
    }),
    { numRuns: 2000 },
  )
  assert.equal(transliterate(`${'x'.repeat(500)}.pdf`), `${'x'.repeat(196)}.pdf`)
})
