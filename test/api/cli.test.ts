/** The command line: what it takes, what it says, its exit status. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { runCli } from '../../api/cli/index.ts'
import { until } from '../support/until.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from './lite/rig.ts'

interface Ended {
  readonly status: number
  readonly out: string
  readonly error: string
}

async function mailroom(env: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<Ended> {
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

suite('the command line without a service', () => {
  const rows = [
    [0, ['--help'], /usage: mailroom \[command\]/],
    [0, ['top', '--help'], /usage: mailroom top\n.*\n\s+--every SECONDS/],
    [2, ['brew'], /mailroom: brew: unknown command/],
    [2, ['explain'], /explain: expected <account>/],
    [2, ['top', '--state', 'waiting'], /--state: top does not take it/],
    [2, ['top', '--no-such'], /--no-such/],
    [2, ['accounts'], /--token or MAILROOM_ADMIN_TOKEN is missing/],
    [
      2,
      ['tokens', 'create', '--name', 'n', '--scopes', 'all', '--local'],
      /--scopes: expected some of read, act, keys/,
    ],
    [2, ['tokens', 'create', '--local'], /--name: is required/],
    [
      1,
      ['backup', '--token', 'x', '--url', 'http://127.0.0.1:4'],
      /http:\/\/127\.0\.0\.1:4 does not answer: .*ECONNREFUSED/,
    ],
    [1, ['restore', '/nowhere.db'], /\/nowhere\.db: no such file/],
  ] as const
  for (const [status, words, expected] of rows)
    test(`${words.join(' ')} ends with ${status}`, async () => {
      const ended = await mailroom({}, ...words)
      assert.equal(ended.status, status, ended.error)
      assert.match(status === 0 ? ended.out : ended.error, expected)
      assert.equal(status === 0 ? ended.error : ended.out, '')
    })

  test('tokens create --local needs a store', async () => {
    const MAILROOM_DATA_DIR = mkdtempSync(join(tmpdir(), 'mr-cli-'))
    const ended = await mailroom({ MAILROOM_DATA_DIR }, 'tokens', 'create', '--name', 'n', '--local')
    assert.equal(ended.status, 1)
    assert.match(ended.error, /start the service once first/)
    assert.deepEqual(readdirSync(MAILROOM_DATA_DIR), [])
    rmSync(MAILROOM_DATA_DIR, { recursive: true })
  })
})

suite('the command line with a service', () => {
  let rig: LiteRig
  let box: TestMailbox
  let env: Record<string, string> = {}
  before(async () => {
    rig = await startLiteRig()
    box = await rig.mailbox('cleo')
    await until('watching', () => rig.engine.accounts.view(box.accountId)?.state === 'watching')
    const { token } = await rig.engine.operators.createToken('t', ['read', 'act', 'keys'])
    env = { MAILROOM_URL: rig.url, MAILROOM_ADMIN_TOKEN: token }
  })
  after(() => rig.close())

  const good = async (...words: string[]): Promise<string> => {
    const { status, out, error } = await mailroom(env, ...words)
    assert.deepEqual([status, error], [0, ''], words.join(' '))
    return out
  }

  test('top says how it is, as lines and as JSON', async () => {
    assert.match(await good('top', '--once'), /^Mailroom \S+, ready, up .*\naccounts +1: 1 watching; 1 OK\n/)
    const { accounts } = JSON.parse(await good('top', '--json')) as { accounts: { total: number } }
    assert.equal(accounts.total, 1)
  })

  test('accounts are listed and filtered', async () => {
    const line = new RegExp(`^${box.accountId} +watching +\\d+s +OK +${rig.imap.host} +${box.email}$`, 'm')
    assert.match(await good('accounts'), line)
    assert.match(await good('accounts', '--q', 'cle', '--state', 'watching'), line)
    assert.doesNotMatch(await good('accounts', '--state', 'disabled'), line)
    const { error, status } = await mailroom(env, 'accounts', '--limit', '9999')
    assert.equal(status, 1)
    assert.match(error, /limit: .* \(400\)/)
  })

  test('an account is explained, by its id or its address', async () => {
    const byId = await good('explain', box.accountId, '--json')
    assert.deepEqual(Object.keys(JSON.parse(byId) as object).sort(), ['next', 'since', 'why', 'would_change'])
    assert.match(await good('explain', box.email.toUpperCase()), /\nSince \d{4}-/)
    const none = await mailroom(env, 'explain', 'nobody@mail.example')
    assert.deepEqual([none.status, none.error], [1, 'mailroom: nobody@mail.example: no such account\n'])
    assert.match((await mailroom(env, 'explain', 'f'.repeat(24))).error, /\(404\)/)
  })
})
