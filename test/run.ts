/**
 * `npm test`: the test files side by side, some of them together in one process, which spares most of the time that
 * starting processes takes. Long tests and test/hostile belong to `npm run test:all`. Prints a line for each file
 * as it ends, and the slowest files at the end.
 *
 * `node test/run.ts [pattern …]` runs other files the same way, without those of a pattern that begins with `!`;
 * `--alone` each in a process of its own.
 * MAILROOM_TEST_AT_ONCE says how many processes run at once (6). MAILROOM_TEST_COUNTS names a file that the counts of
 * tests are added to, for the sum of several runs.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FileEnd } from './support/file-ends.ts'

/** Half of a process's start is compiling: done once, here and in the services that tests start. */
process.env['NODE_COMPILE_CACHE'] ??= join(process.cwd(), 'node_modules/.cache/compiled')

const filesTogether = 16
/** In MiB. With Node's own start of 1, one twentieth more processor time goes to collecting garbage. */
const youngGeneration = 16
const timeoutMs = 120_000
/** The limit of a process: handles that a failed test leaves open must not hold up other files. */
const processMs = 900_000
const slowestShown = 10

interface Outcome {
  readonly files: readonly string[]
  readonly passed: boolean
  readonly output: string
}

const given = process.argv.slice(2)
const patterns = given.filter((word) => !/^(?:--|!)/.test(word))
const exclude = given.filter((word) => word.startsWith('!')).map((word) => word.slice(1))
const together = given.includes('--alone') ? 1 : filesTogether
const atOnce = Number(process.env['MAILROOM_TEST_AT_ONCE'] ?? 6)

function quickFiles(): string[] {
  return globSync('test/**/*.test.ts', { exclude: ['test/hostile/**', 'test/**/*.long.test.ts'] })
}

/**
 * Hooks outside of a suite would run for the tests of all files of the process. Tests that another module defines are
 * reported with that module's name.
 */
function needsOwnProcess(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  return /^(?:before|after)(?:Each)?\(|from '[^']*\/scene\.ts'/m.test(text) || !/^(?:suite|test)\(/m.test(text)
}

/** Neighbours take about as long as each other: each share has files from everywhere. */
function shared(all: readonly string[]): string[][] {
  const alone = all.filter(needsOwnProcess)
  const files = all.filter((file) => !alone.includes(file))
  const count = Math.ceil(files.length / together)
  const shares = Array.from({ length: count }, (_, share) => files.filter((_file, index) => index % count === share))
  return [...shares, ...alone.map((file) => [file])]
}

function show({ file, seconds, tests, passed }: FileEnd): string {
  return `${seconds.toFixed(1).padStart(6)} s ${file}: ${tests} tests${passed ? '' : ', FAILED'}\n`
}

function run(files: readonly string[]): Promise<Outcome> {
  const reporters = { spec: 'stdout', './test/support/file-ends.ts': 'stderr' }
  const reports = Object.entries(reporters).flatMap(([reporter, destination]) => [
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${destination}`,
  ])
  const node = [`--min-semi-space-size=${youngGeneration}`, `--test-timeout=${timeoutMs}`, ...reports]
  const child = spawn(process.execPath, [...node, 'test/support/test-process.ts', ...files], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    timeout: processMs,
    killSignal: 'SIGKILL',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.on('message', (end: FileEnd) => {
    ends.push(end)
    process.stdout.write(show(end))
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => {
      resolve({ files, passed: status === 0, output })
    })
  })
}

/** As Node's own report says. A process that ended without its report counts as one failure. */
function counted({ passed, output }: Outcome, what: string): number {
  const number = Number(new RegExp(`^ℹ ${what} (\\d+)`, 'm').exec(output)?.[1] ?? 0)
  return what === 'fail' && !passed ? Math.max(number, 1) : number
}

function report({ files, passed, output }: Outcome): void {
  if (!passed) process.stdout.write(`${output}\nFAILED in ${files.join(' ')}\n`)
}

/** In the order of the patterns: what takes longest may begin first. */
function filesOf(pattern: string): string[] {
  return globSync(pattern, { exclude }).sort()
}

const files = patterns.length === 0 ? quickFiles().sort() : [...new Set(patterns.flatMap(filesOf))]
if (files.length === 0) throw new Error(`no test file matches ${patterns.join(' ')}`)
const waiting = shared(files)
const began = performance.now()
const outcomes: Outcome[] = []
const ends: FileEnd[] = []

async function work(): Promise<void> {
  for (let share = waiting.shift(); share !== undefined; share = waiting.shift()) {
    const outcome = await run(share)
    outcomes.push(outcome)
    report(outcome)
  }
}

await Promise.all(Array.from({ length: atOnce }, work))
const total = (what: string): number => outcomes.reduce((sum, outcome) => sum + counted(outcome, what), 0)
const failed = outcomes.filter(({ passed }) => !passed)
const seconds = ((performance.now() - began) / 1000).toFixed(0)
const slowest = ends.sort((one, other) => other.seconds - one.seconds).slice(0, slowestShown)
process.stdout.write(`\nThe slowest:\n${slowest.map(show).join('')}\n`)
process.stdout.write(
  `${files.length} files, ${total('tests')} tests: ${total('fail')} failed, ${total('skipped')} skipped, in ${seconds} s\n`,
)
const { MAILROOM_TEST_COUNTS: countsFile } = process.env
if (countsFile !== undefined)
  for (const what of ['tests', 'pass', 'fail', 'skipped']) appendFileSync(countsFile, `${what} ${total(what)}\n`)
if (failed.length > 0) process.exitCode = 1
