/**
 * A process of test/run.ts: runs test files in Node's test runner, one after the other. A file that has the process for
 * itself is the argument, and may have a top-level `await`. The others come as messages, '' after the last; each is a
 * suite, so that its hooks are for its own tests.
 *
 * To know which test an `await` belongs to, the runner hooks each promise of the process for as long as it lives, which
 * made some tests take thirty times the processor time. It needs the hook only while a file defines its tests, so the
 * hook ends there. An error that nobody caught belongs to no test from then on, and fails the process.
 */
import { type AsyncHook, createHook } from 'node:async_hooks'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { suite } from 'node:test'
import { pathToFileURL } from 'node:url'

const hooks = Object.getPrototypeOf(createHook({})) as AsyncHook
const enable = Reflect.get(hooks, 'enable')
const enabled: AsyncHook[] = []
hooks.enable = function (this: AsyncHook) {
  enabled.push(this)
  return enable.call(this)
}
function endHook(): void {
  for (const hook of enabled) hook.disable()
}

const require = createRequire(import.meta.url)
function define(file: string): void {
  for (const hook of enabled) enable.call(hook)
  suite(file, () => void require(resolve(file)))
  endHook()
}

const [own] = process.argv.slice(2)
if (own === undefined)
  process.on('message', (file: string) => {
    if (file === '') process.disconnect?.()
    else define(file)
  })
else {
  await import(pathToFileURL(resolve(own)).href)
  endHook()
}
