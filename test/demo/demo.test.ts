import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { createVisitor, onwardOf } from '../connect/visitor.ts'
import { until } from '../support/until.ts'

function startDemo(t: TestContext, ...args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'demo.ts'), ...args], { stdio: 'pipe' })
  const shown = { text: '' }
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (shown.text += chunk.toString()))
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>
  // A demo that is killed leaves its service.
  t.after(async () => {
    child.kill('SIGINT')
    await ended
  })
  return { child, shown, ended }
}

suite('demo', () => {
  test('--once ends with 0 after the first verified callback, and has shown each step with its curl line', async (t) => {
    const { shown, ended } = startDemo(t, '--once')
    assert.deepEqual(await ended, [0, null], shown.text)
    for (const words of [
      /curl -u demo-key:\S+ http\S+\/lite\/users -d/,
      /Figures for the meeting/,
      /webhooks -d callback_url=/,
      /wizard at http\S+\/connect\/\w{16}\?developer_key=demo-key/,
      /console at http\S+\/console, password \S{16,}/,
    ]) {
      assert.match(shown.text, words)
    }
    assert.match(shown.text, /Callback after \d+ ms/)
    assert.match(shown.text, /signature in the body: valid/)
    assert.match(shown.text, /Standard Webhooks signature in the header: valid/)
  })

  test('without --once it goes on until Ctrl-C, which ends it with 0', async (t) => {
    const { child, shown, ended } = startDemo(t)
    const explain = () => shown.text
    await until('a second callback', () => shown.text.split('Callback after').length > 2, { withinMs: 30_000, explain })
    const of = /wizard at (\S+\/connect\/\w+)/.exec(shown.text)?.[1] ?? assert.fail(shown.text)
    const [, password = '', server = '', port = '', username = ''] =
      /password (\S+); server (\S+), port (\d+), STARTTLS, user name (\S+)/.exec(shown.text) ?? []
    const visitor = createVisitor(of)
    await visitor.open(of)
    await visitor.send(`${of}/login`, { password, server, port, security: 'starttls', username })
    const back = onwardOf(await visitor.open(`${of}/connecting`)) ?? assert.fail('the wizard did not come to its end')
    assert.match(await (await fetch(back)).text(), /Back in the developer/)
    child.kill('SIGINT')
    assert.deepEqual(await ended, [0, null], shown.text)
    assert.match(shown.text, /The demo ends/)
  })

  test('the quick start of /docs works on it as it is written', async (t) => {
    const { shown } = startDemo(t)
    const explain = () => shown.text
    await until('the settings', () => /documentation at \S+\n/.test(shown.text), { withinMs: 60_000, explain })
    const settings = /\$ (export .*)/.exec(shown.text)?.[1] ?? ''
    const page = await (await fetch(/documentation at (\S+)/.exec(shown.text)?.[1] ?? '')).text()
    const steps = [...page.matchAll(/<pre data-step="(\w+)">(.*?)<\/pre>/gs)].map(([, title = '', line = '']) => ({
      title,
      line,
    }))
    assert.deepEqual(
      steps.map(({ title }) => title),
      ['Key', 'Connect', 'List', 'Webhook', 'Verify'],
    )
    const ids = { ID: '', WEBHOOK: '' }
    const answers = new Map<string, unknown>()
    for (const { title, line } of steps) {
      const script = `${settings}\n${line.replaceAll('&amp;', '&')}`
      const { stdout } = await promisify(execFile)('bash', ['-euc', script], { env: { ...process.env, ...ids } })
      const answer = JSON.parse(stdout) as { id?: string; webhook_id?: string }
      answers.set(title, answer)
      if (title === 'Connect') ids.ID = answer.id ?? assert.fail(stdout)
      if (title === 'Webhook') ids.WEBHOOK = answer.webhook_id ?? assert.fail(stdout)
    }
    const [message] = answers.get('List') as { subject: string }[]
    assert.equal(message?.subject, 'Table is booked')
    const sample = answers.get('Verify') as { state: string }
    assert.equal(sample.state, 'delivered', JSON.stringify(sample))
  })
})
