/** What a bench prints: what it ran on, a small table, and last one JSON line with all its figures. */
import { cpus, totalmem } from 'node:os'

export function say(text = ''): void {
  process.stdout.write(`${text}\n`)
}

function machine(): Record<string, string | number> {
  return {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
  }
}

export function header(name: string, settings: Readonly<Record<string, string | number>>): void {
  say(`bench ${name}`)
  for (const [key, value] of Object.entries({ ...machine(), ...settings })) say(`  ${key}: ${value}`)
  say()
}

/** Columns as wide as their widest cell; numbers to the right. */
export function table(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  const lines = [columns, ...rows].map((row) => row.map(String))
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)))
  for (const line of lines) {
    const cells = line.map((cell, index) =>
      index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0),
    )
    say(cells.join('  '))
  }
  say()
}

export function jsonLine(name: string, figures: Readonly<Record<string, unknown>>): void {
  say(JSON.stringify({ bench: name, ...machine(), ...figures }))
}
