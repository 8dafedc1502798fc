/**
 * A reporter of Node's test runner, for test/run.ts: sends the parent process a message as each test file ends. The
 * files of a process run one after the other. Node names the module that defines a test, which may be one that the file
 * imports: the test counts for the file that runs.
 */
import { resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

export interface FileEnd {
  readonly file: string
  readonly seconds: number
  readonly tests: number
  readonly passed: boolean
}

export default async function* tellFileEnds(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files = new Map(process.argv.slice(2).map((file) => [resolve(file), file]))
  const [first = ''] = files.values()
  let running = { file: first, began: performance.now(), tests: 0, passed: true }
  const end = (): void => {
    const { file, began, tests, passed } = running
    process.send?.({ file, seconds: (performance.now() - began) / 1000, tests, passed } satisfies FileEnd)
  }
  for await (const { type, data } of events) {
    if (type === 'test:dequeue') {
      const file = files.get(data.file ?? '')
      if (file !== undefined && file !== running.file) {
        end()
        running = { file, began: performance.now(), tests: 0, passed: true }
      }
    }
    if (type === 'test:fail') running.passed = false
    if ((type === 'test:pass' || type === 'test:fail') && data.details.type !== 'suite') running.tests += 1
  }
  end()
}
