/**
 * A reporter of Node's test runner, for test/run.ts: sends the parent process a message as each test file ends. A file
 * is a suite with its name, or has the process for itself (test-process.ts).
 */
import type { TestEvent } from 'node:test/reporters'

export interface FileEnd {
  readonly file: string
  readonly seconds: number
  readonly tests: number
  readonly passed: boolean
}

export default async function* tellFileEnds(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const [own] = process.argv.slice(2)
  let [began, tests, passed] = [performance.now(), 0, true]
  const end = (file: string): void => {
    process.send?.({ file, seconds: (performance.now() - began) / 1000, tests, passed } satisfies FileEnd)
    ;[began, tests, passed] = [performance.now(), 0, true]
  }
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (type === 'test:fail') passed = false
    if (data.details.type !== 'suite') tests += 1
    if (own === undefined && data.nesting === 0) end(data.name)
  }
  if (own !== undefined) end(own)
}
