/**
 * A process of test/run.ts: runs the test files of its arguments one after the other, in Node's test runner. To know
 * which test an `await` belongs to, the runner hooks each promise of the process for as long as it lives, which made
 * some tests take thirty times the processor time. It needs the hook only while the files define their tests, so the
 * hook ends there. An error that nobody caught belongs to no test from then on, and fails the process.
 */
import { type AsyncHook, createHook } from 'node:async_hooks'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const hooks = Object.getPrototypeOf(createHook({})) as AsyncHook
const enable = Reflect.get(hooks, 'enable')
const enabled: AsyncHook[] = []
hooks.enable = function (this: AsyncHook) {
  enabled.push(this)
  return enable.call(this)
}
for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href)
hooks.enable = enable
for (const hook of enabled) hook.disable()
