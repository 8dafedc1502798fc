/** Debian's Chromium without a window, for tests of pages. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import assert from 'node:assert/strict'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { chromiumPath } from '../support/require.ts'

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** With a fresh profile, which is gone afterwards. */
export function openBrowser(): Promise<Browser> {
  const executablePath = chromiumPath() ?? assert.fail('chromium is not installed')
  return chromium.launch({ executablePath, headless: true, args: flags, timeout: 60_000 })
}

export const looks = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
} as const satisfies Record<string, BrowserContextOptions>

/** Where screenshots go: MAILROOM_TEST_ARTEFACTS, or a directory of their own. */
export function artefacts(): string {
  const given = process.env['MAILROOM_TEST_ARTEFACTS']
  if (given === undefined) return mkdtempSync(join(tmpdir(), 'mailroom-console-'))
  mkdirSync(given, { recursive: true })
  return given
}

/** What the page's own policy or script complains of. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    // A page of an error has its status; that is no mistake of the page.
    const isStatus = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isStatus) complaints.push(message.text())
  })
  return complaints
}

export async function screenshot(page: Page, directory: string, name: string, fullPage = true): Promise<void> {
  writeFileSync(join(directory, `${name}.png`), await page.screenshot({ fullPage }))
}

/** The dark look differs in its colours alone, and a phone has those of `light`: they take axe half of its time. */
const rulesOf: Readonly<Record<keyof typeof looks, axe.RunOptions>> = {
  light: {},
  dark: { runOnly: ['color-contrast', 'link-in-text-block'] },
  phone: { rules: { 'color-contrast': { enabled: false } } },
}

/**
 * Barriers that axe calls serious or critical, with the places: all of them in `light`, and what another look of the
 * page can add. Passes of axe are neither looked up nor sent.
 */
export async function barriers(page: Page, look: keyof typeof looks = 'light'): Promise<string[]> {
  await page.evaluate(axe.source)
  return page.evaluate(async (rules: axe.RunOptions) => {
    const { axe: here } = globalThis as unknown as { axe: typeof axe }
    const { violations } = await here.run({ resultTypes: ['violations'], ...rules })
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`)
  }, rulesOf[look])
}

/** Cells of tables that are cut off at the edge of the screen, or lie over what is below them. */
export function cutCells(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('td')].filter((cell) =>
    cell.getBoundingClientRect().right > innerWidth || cell.scrollHeight > cell.clientHeight + 1)
    .map((cell) => cell.textContent.trim())`)
}

/** What is wider than the page lets a phone scroll sideways. */
export function overhang(page: Page): Promise<number> {
  return page.evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`)
}
