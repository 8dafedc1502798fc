/**
 * `npm test`: the test files in a few processes. Each process runs one file after the other, and asks for the next when
 * one ends, so that modules that a process has loaded and compiled serve all of its files: half the processor time of
 * a process for each. Long tests and test/hostile belong to `npm run test:all`. Prints a line for each file as it ends,
 * and the slowest files at the end.
 *
 * `node test/run.ts [pattern …]` runs other files the same way, without those of a pattern that begins with `!`;
 * `--alone` each in a process of its own.
 * MAILROOM_TEST_AT_ONCE says how many processes run at once (8). MAILROOM_TEST_COUNTS names a file that the counts of
 * tests are added to, for the sum of several runs.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FileEnd } from './support/file-ends.ts'

/** Half of a process's start is compiling: done once, here and in the services that tests start. */
process.env['NODE_COMPILE_CACHE'] ??= join(process.cwd(), 'node_modules/.cache/compiled')

/** In MiB. With Node's own start of 1, one twentieth more processor time goes to collecting garbage. */
const youngGeneration = 16
const timeoutMs = 120_000
/** The limit of a file, and of the end of a process: handles that a failed test leaves open must not hold it up. */
const fileMs = 900_000
const slowestShown = 10

interface Outcome {
  readonly files: readonly string[]
  readonly passed: boolean
  readonly output: string
}

const given = process.argv.slice(2)
const patterns = given.filter((word) => !/^(?:--|!)/.test(word))
const exclude = given.filter((word) => word.startsWith('!')).map((word) => word.slice(1))
const alone = given.includes('--alone')
const atOnce = Number(process.env['MAILROOM_TEST_AT_ONCE'] ?? 8)

function quickFiles(): string[] {
  return globSync('test/**/*.test.ts', { exclude: ['test/hostile/**', 'test/**/*.long.test.ts'] })
}

/** The comment at the head of a file says so, and why. A top-level `await` is a reason: test-process.ts. */
function needsOwnProcess(file: string): boolean {
  return /In a process\s[*\s]*of its own:/.test(readFileSync(file, 'utf8'))
}

function show({ file, seconds, tests, passed }: FileEnd): string {
  return `${seconds.toFixed(1).padStart(6)} s ${file}: ${tests} tests${passed ? '' : ', FAILED'}\n`
}

/** Runs one file that has the process for itself; null: those that wait, until none is left. */
function run(own: string | null): Promise<Outcome> {
  const files = own === null ? [] : [own]
  const reporters = { spec: 'stdout', './test/support/file-ends.ts': 'stderr' }
  const reports = Object.entries(reporters).flatMap(([reporter, destination]) => [
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${destination}`,
  ])
  const node = [`--min-semi-space-size=${youngGeneration}`, `--test-timeout=${timeoutMs}`, ...reports]
  const child = spawn(process.execPath, [...node, 'test/support/test-process.ts', ...files], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const tooLong = setTimeout(() => child.kill('SIGKILL'), fileMs)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const giveNext = (): void => {
    const next = waiting.shift()
    if (next !== undefined) files.push(next)
    // A process that has just crashed takes no file: that one counts as failed.
    child.send(next ?? '', () => undefined)
  }
  if (own === null) giveNext()
  child.on('message', (end: FileEnd) => {
    ends.push(end)
    process.stdout.write(show(end))
    tooLong.refresh()
    if (own === null) giveNext()
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => {
      clearTimeout(tooLong)
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
  if (passed) return
  const fine = new Set(ends.filter((end) => end.passed).map((end) => end.file))
  const failed = files.filter((file) => !fine.has(file))
  process.stdout.write(`${output}\nFAILED in ${(failed.length > 0 ? failed : files).join(' ')}\n`)
}

/** In the order of the patterns: what takes longest may begin first. */
function filesOf(pattern: string): string[] {
  return globSync(pattern, { exclude }).sort()
}

// The files of test/support wait longest.
const files = patterns.length === 0 ? quickFiles().sort().reverse() : [...new Set(patterns.flatMap(filesOf))]
if (files.length === 0) throw new Error(`no test file matches ${patterns.join(' ')}`)
const owners = files.filter((file) => alone || needsOwnProcess(file))
const waiting = files.filter((file) => !owners.includes(file))
const began = performance.now()
const outcomes: Outcome[] = []
const ends: FileEnd[] = []

async function work(): Promise<void> {
  while (owners.length + waiting.length > 0) {
    const outcome = await run(owners.shift() ?? null)
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
