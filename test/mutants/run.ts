/**
 * `npm run test:mutants [-- MODULE … --force --concurrency=N]`: puts faults ("mutants") into the modules of modules.ts,
 * one at a time, and runs the tests of that module. Prints the share that a test caught and each mutant that none did;
 * fails when a module is below the goal. What the last run of a module caught is kept in .stryker/MODULE.json and not
 * tried again unless its code or the test file that caught it has changed; what was missed is tried each time. --force
 * begins anew.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { modules } from './modules.ts'

const goalPercent = 85

const nodeArgs = ['--test-reporter=tap', '-r', '{{hookFile}}', '--import', './test/mutants/seed.ts', '{{testFile}}']

type Mutant = Awaited<ReturnType<Stryker['runMutationTest']>>[number]
type Name = keyof typeof modules

interface Score {
  readonly caught: number
  readonly missed: readonly Mutant[]
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    force: { type: 'boolean', default: false },
    concurrency: { type: 'string', default: String(availableParallelism()) },
  },
})

function write(line: string): void {
  process.stdout.write(`${line}\n`)
}

function chosen(): Name[] {
  const all = Object.keys(modules) as Name[]
  const unknown = positionals.find((name) => !Object.hasOwn(modules, name))
  if (unknown !== undefined) throw new Error(`${unknown} is no module: name some of ${all.join(', ')}`)
  return positionals.length === 0 ? all : all.filter((name) => positionals.includes(name))
}

interface Report {
  readonly files: Record<string, { mutants: readonly Pick<Mutant, 'status'>[] }>
}

/** A test may have been added to a file that a test file imports, which Stryker does not look at. */
function forgetMissed(file: string): void {
  if (!existsSync(file)) return
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report
  for (const one of Object.values(report.files)) one.mutants = one.mutants.filter(({ status }) => status === 'Killed')
  writeFileSync(file, JSON.stringify(report))
}

async function examine(name: Name): Promise<Score> {
  const { mutate, tests } = modules[name]
  const tempDirName = `.stryker/${name}-sandbox`
  // What a run left that was broken off.
  rmSync(tempDirName, { recursive: true, force: true })
  const incrementalFile = `.stryker/${name}.json`
  forgetMissed(incrementalFile)
  const mutants = await new Stryker({
    mutate: [...mutate],
    tap: { testFiles: [...tests], nodeArgs },
    tempDirName,
    incrementalFile,
    force: options.force,
    concurrency: Number(options.concurrency),
  }).runMutationTest()
  const caught = mutants.filter(({ status }) => status === 'Killed' || status === 'Timeout').length
  return { caught, missed: mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage') }
}

function percent({ caught, missed }: Score): number {
  return (100 * caught) / (caught + missed.length)
}

function shown({ fileName, location: { start, end }, replacement }: Mutant): string {
  const lines = readFileSync(fileName, 'utf8').split('\n')
  const line = lines[start.line - 1]?.slice(start.column - 1) ?? ''
  const before = start.line === end.line ? line.slice(0, end.column - start.column) : `${line} …`
  return `  ${relative('.', fileName)}:${start.line}:${start.column}  ${before}  →  ${replacement.replace(/\s+/g, ' ')}`
}

mkdirSync('.stryker', { recursive: true })
// The embedded store, wherever a test opens one.
for (const name of ['MONGODB_URI', 'MAILROOM_TEST_STORE', 'MAILROOM_REQUIRE']) Reflect.deleteProperty(process.env, name)
// The same files are loaded for every mutant.
process.env['NODE_COMPILE_CACHE'] ??= resolve('.stryker/compiled')
const summary: string[] = []
for (const name of chosen()) {
  const score = await examine(name)
  const line = `${name}: ${percent(score).toFixed(1)} % of ${score.caught + score.missed.length} mutants caught`
  summary.push(line)
  for (const text of [line, ...score.missed.map(shown)]) write(text)
  if (percent(score) < goalPercent) process.exitCode = 1
}
for (const line of ['', ...summary]) write(line)
