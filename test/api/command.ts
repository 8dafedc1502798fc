/** The command line, run in this process. */
import { runCli } from '../../api/cli/index.ts'

export interface Ended {
  readonly status: number
  readonly out: string
  readonly error: string
}

export async function mailroom(env: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<Ended> {
  const said = { out: '', error: '' }
  const status = await runCli(words, {
    env,
    out: (line) => void (said.out += `${line}\n`),
    error: (line) => void (said.error += `${line}\n`),
    signal: new AbortController().signal,
    isScreen: false,
  })
  return { status, ...said }
}
