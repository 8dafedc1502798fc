/**
 * Counts the steps of our own code, so that a test of linear time needs no clock: V8's precise coverage tells how often
 * each block of a file was entered. It sees neither the inside of a regular expression (the linter refuses those that
 * backtrack) nor of a built-in function.
 */
import { Session, type Profiler } from 'node:inspector'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = pathToFileURL(join(import.meta.dirname, '../..')).href
const ours = ['engine', 'api', 'machines'].map((folder) => `${root}/${folder}/`)
/** Libraries that we hand a stranger's text to. */
const packages = ['re2js', 'htmlparser2'].map((name) => `/node_modules/${name}/`)

function counts(url: string): boolean {
  return ours.some((folder) => url.startsWith(folder)) || packages.some((folder) => url.includes(folder))
}

export interface StepCounter {
  /** Blocks of our code and of the libraries above that `work` entered, each time counted. */
  count(work: () => unknown): number
  close(): void
}

/** Modules that are loaded before are not counted in blocks: import what is measured after this. */
export function createStepCounter(): StepCounter {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

  let fresh = true
  function take(): number {
    let entered = 0
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw error
      for (const script of coverage.result) if (counts(script.url)) entered += sum(script)
    })
    return entered
  }

  return {
    count(work) {
      if (fresh) take()
      fresh = false
      work()
      return take()
    },
    close() {
      session.post('Profiler.stopPreciseCoverage')
      session.disconnect()
    },
  }
}

/** Of each function the block entered most: V8 leaves out blocks that were entered as often as the one around them. */
function sum({ functions }: Profiler.ScriptCoverage): number {
  return functions.reduce((total, { ranges }) => total + Math.max(...ranges.map(({ count }) => count)), 0)
}
