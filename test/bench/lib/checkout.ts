/** A commit of this repository in a directory of its own, with its dependencies installed. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Checkout {
  readonly directory: string
  readonly commit: string
  remove(): void
}

const root = join(import.meta.dirname, '../../..')

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

/** `commit`: anything that git resolves. Throws one line that names it when this clone does not have it. */
export function checkOut(commit: string): Checkout {
  const directory = mkdtempSync(join(tmpdir(), 'mr-pair-'))
  const remove = (): void => {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    git('worktree', 'prune')
  }
  try {
    const found = resolve(commit)
    git('worktree', 'add', '--detach', '--force', directory, found)
    const silent = ['--no-audit', '--no-fund', '--loglevel=error']
    execFileSync('npm', ['ci', ...silent], { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
    return { directory, commit: found, remove }
  } catch (error) {
    remove()
    throw error
  }
}

function resolve(commit: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', `${commit}^{commit}`)
  } catch {
    throw new Error(`${commit}: this clone has no such commit (a shallow clone needs: git fetch --unshallow)`)
  }
}

/** The commit that `.ci/run` compares with: the first word of the file that is no comment. */
export function baselineCommit(): string {
  const lines = readFileSync(join(root, 'test/bench/baseline'), 'utf8').split('\n')
  const commit = lines.find((line) => /^[0-9a-f]{7,40}$/.test(line.trim()))
  if (commit === undefined) throw new Error('test/bench/baseline: no line with a commit')
  return commit.trim()
}
