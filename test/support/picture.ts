/** The picture of the console in README, of the demo after a minute. Without Chromium the picture stays as it is. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openBrowser } from '../console/browser.ts'
import { chromiumPath } from './require.ts'
import { until } from './until.ts'

const root = join(import.meta.dirname, '../..')
/** Until then the charts hold next to nothing. */
const aMinute = 75_000
const viewport = { width: 1200, height: 760 }

async function takePicture(): Promise<void> {
  const demo = spawn(process.execPath, [join(root, 'test/demo/demo.ts')], { stdio: ['ignore', 'pipe', 'inherit'] })
  let shown = ''
  demo.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
  const browser = await openBrowser()
  try {
    await until('a callback of the demo', () => shown.includes('Callback after'), { withinMs: 120_000 })
    const [, console = '', password = ''] = /console at (\S+), password (\S+)/.exec(shown) ?? []
    const page = await browser.newPage({ viewport, colorScheme: 'light' })
    await page.goto(console)
    await page.fill('input[type=password]', password)
    await page.press('input[type=password]', 'Enter')
    await page.waitForURL((url) => !url.pathname.endsWith('/login'))
    await pause(aMinute)
    await page.screenshot({ path: join(root, 'docs/console.png') })
  } finally {
    await browser.close()
    demo.kill('SIGINT')
  }
}

if (chromiumPath() === null) process.stderr.write('docs/console.png stays as it is: Chromium is not installed\n')
else await takePicture()
