/**
 * README's configuration table, printed from engine/config.ts. `node test/support/config-table.ts` writes it into README.md;
 * test/engine/config.test.ts fails when the two differ.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configTable } from '../../engine/config.ts'

export const readme = join(import.meta.dirname, '../../README.md')
const begin =
  '<!-- configuration: printed from engine/config.ts by test/support/config-table.ts -->\n<!-- prettier-ignore-start -->\n'
const end = '<!-- prettier-ignore-end -->'

export function configMarkdown(): string {
  const rows = configTable().map(({ name, fallback, meaning }) => {
    const shown = fallback === '' ? '' : `\`${fallback}\``
    return `| \`${name}\` | ${shown} | ${meaning.replaceAll('|', '\\|')} |`
  })
  return ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n') + '\n'
}

/** What stands between the markers of README now. */
export function tableInReadme(): string {
  const { text, from, to } = place()
  return text.slice(from, to)
}

function place() {
  const text = readFileSync(readme, 'utf8')
  const from = text.indexOf(begin) + begin.length
  const to = text.indexOf(end, from)
  if (from < begin.length || to < 0) throw new Error('README.md: the markers of the configuration table are gone')
  return { text, from, to }
}

if (import.meta.main) {
  const { text, from, to } = place()
  writeFileSync(readme, text.slice(0, from) + configMarkdown() + text.slice(to))
}
