/** The command line: what it takes, what it says, its exit status. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runCli } from '../../api/cli/index.ts'
import { showAny } from '../../api/cli/show.ts'
import { freshResume } from '../../engine/store/rows.ts'
import { accountRecord, userRecord } from '../support/records.ts'
import { until } from '../support/until.ts'
import { mailroom } from './command.ts'
import { apiKey, startLiteRig, type LiteRig, type TestMailbox } from './lite/rig.ts'

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

  test('what waits for an answer ends when it is told to', async (t) => {
    const asked = Promise.withResolvers<undefined>()
    const server = createServer(() => asked.resolve(undefined)).listen(0, '127.0.0.1')
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const over = new AbortController()
    const said: string[] = []
    const status = runCli(['top', '--url', url, '--token', 'x'], {
      ...{ env: {}, out: (line) => void said.push(line), error: (line) => void said.push(line) },
      ...{ signal: over.signal, isScreen: false },
    })
    await asked.promise
    over.abort()
    const late = sleep(5000, 'still waits', { ref: false })
    assert.equal(await Promise.race([status, late]), 0)
    assert.deepEqual(said, [])
  })

  test('an answer that is cut, or no JSON, is an error in one line', async (t) => {
    const server = createServer(({ url = '' }, answer) => {
      if (!url.endsWith('/events')) return void answer.end('<html>hello</html>')
      answer
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(`data: ${JSON.stringify({ at: 0, connection: 2, line: '> A1 NOOP' })}\n\n`)
      setTimeout(() => answer.destroy(), 50)
    }).listen(0, '127.0.0.1')
    t.after(() => void server.close())
    await once(server, 'listening')
    const at = ['--url', `http://127.0.0.1:${(server.address() as AddressInfo).port}`, '--token', 'x']
    const tail = await mailroom({}, 'tail', 'f'.repeat(24), ...at)
    assert.deepEqual([tail.status, tail.out], [1, '00:00:00.000 #2 > A1 NOOP\n'])
    assert.match(tail.error, /^mailroom: http:\/\/127\S+ ended its answer early: .+\n$/)
    const reseal = await mailroom({}, 'reseal', ...at)
    assert.deepEqual([reseal.status, reseal.out], [1, ''])
    assert.match(reseal.error, /^mailroom: POST http:\/\/127\S+\/admin\/reseal: the answer is no JSON, .+\n$/)
  })

  test('the JSON of another service is an error in one line', async (t) => {
    const server = createServer((_request, answer) => void answer.end('{"hello":["world"]}')).listen(0, '127.0.0.1')
    t.after(() => void server.close())
    await once(server, 'listening')
    const at = ['--url', `http://127.0.0.1:${(server.address() as AddressInfo).port}`, '--token', 'x']
    for (const words of [['top', '--once'], ['accounts'], ['keys'], ['tail', 'a@example.com']]) {
      const { status, out, error } = await mailroom({}, ...words, ...at)
      assert.deepEqual([status, out], [1, ''], words.join(' '))
      assert.match(error, /^mailroom: GET http:\/\/127\S+: the answer lacks .+, so this is no admin API .+\n$/)
    }
  })

  test('whoever reads the output may leave; a full disk is an error in one line', () => {
    const main = join(import.meta.dirname, '../../main.ts')
    const shell = (rest: string) =>
      spawnSync('bash', ['-o', 'pipefail', '-c', `"$0" "$1" ${rest}`, process.execPath, main], { encoding: 'utf8' })
    const left = shell('completion fish | head -1')
    assert.deepEqual([left.status, left.stderr, left.stdout.split('\n').length], [0, '', 2])
    const full = shell('completion fish >/dev/full')
    assert.equal(full.status, 1)
    assert.match(full.stderr, /^mailroom: the output cannot be written: .*ENOSPC.*\n$/)
  })

  test('the parameters of an action in the audit trail are no step with a time', () => {
    const [, line] = showAny([{ action: 'retention', details: { what: 'calls', seconds: '7200' } }])
    assert.match(line ?? '', /^retention +what calls, seconds 7200$/)
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
    const line = new RegExp(`^${box.accountId} +up +\\d+s +watching +${rig.imap.host} +${box.email}$`, 'm')
    assert.match(await good('accounts'), line)
    assert.match(await good('accounts', '--q', 'cle', '--state', 'watching'), line)
    const [account] = await rig.engine.store.accounts.several([box.accountId])
    const { developerId, userId } = account ?? assert.fail('no account')
    const fits = ['--status', 'OK', '--developer', developerId, '--user', userId, '--older-than', '0']
    assert.match(await good('accounts', ...fits), line)
    const others = [
      ...[
        ['--state', 'disabled'],
        ['--status', 'DISABLED'],
        ['--failure', 'network'],
        ['--older-than', '9999'],
      ],
      ...[
        ['--developer', userId],
        ['--user', developerId],
        ['--host', 'imap.example.com'],
      ],
    ]
    for (const other of others) assert.doesNotMatch(await good('accounts', ...fits, ...other), line, other.join(' '))
    assert.match((await mailroom(env, 'accounts', '--failure', 'bad luck')).error, /failure: expected .* \(400\)/)
    for (const wrong of [
      ['--limit', '0'],
      ['--limit', '1.5'],
      ['--offset', 'x'],
    ])
      assert.equal((await mailroom(env, 'accounts', ...wrong)).status, 2, wrong.join(' '))
  })

  test('a state that there is not is an error that names those that there are', async () => {
    const { status, out, error } = await mailroom(env, 'accounts', '--state', 'nosuch')
    assert.deepEqual([status, out], [1, ''])
    assert.match(error, /state: expected .*watching.* or dead \(400\)\n$/)
  })

  test('output that nobody reads any more ends the command in order', async () => {
    const words = [join(import.meta.dirname, '../../main.ts'), 'top', '--every', '0.05']
    const child = spawn(process.execPath, words, { env: { ...process.env, ...env }, timeout: 20_000 })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    child.stdout.once('data', () => child.stdout.destroy())
    const [status] = (await once(child, 'close')) as [number | null]
    assert.deepEqual([status, said], [0, ''])
  })

  test('tail tells steps and lines of an account until it is told to end', async () => {
    const over = new AbortController()
    const lines: string[] = []
    const status = runCli(['tail', box.email], {
      ...{ env, out: (line: string) => void lines.push(line), error: (line: string) => void lines.push(line) },
      ...{ signal: over.signal, isScreen: false },
    })
    const seen = (pattern: RegExp) => () => lines.some((line) => pattern.test(line))
    const again = (): boolean => {
      rig.engine.accounts.wake(box.accountId)
      return seen(/→ connecting$/)()
    }
    await until('an open stream', again, { everyMs: 300 })
    await until('the login', seen(/^\d\d:\d\d:\d\d\.\d{3} #\d+ > \w+ (?:AUTHENTICATE PLAIN|LOGIN) \*\*\*$/))
    await until('watching again', seen(/^\d\d:\d\d:\d\d\.\d{3} .* → watching$/))
    over.abort()
    assert.equal(await status, 0)
    assert.ok(!lines.join().includes('secret'), 'the password')
  })

  test('a key that is being made is shown, also when the command is ended meanwhile', async () => {
    const over = new AbortController()
    const lines: string[] = []
    const out = (line: string) => void lines.push(line)
    const made = runCli(['keys', 'create', '--name', 'Late'], {
      ...{ env, out, error: out, signal: over.signal, isScreen: false },
    })
    over.abort()
    await made
    assert.match(lines.join('\n'), /^api_secret: \S+$/m)
  })

  test('a key is made, gets another secret, is revoked and restored', async () => {
    const calls = async (key: string, secret: string): Promise<number> => {
      const authorization = `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
      return (await rig.call('GET', '/lite/users', undefined, { headers: { authorization } })).status
    }
    const field = (out: string, name: string) => new RegExp(`^${name}: (\\S+)$`, 'm').exec(out)?.[1] ?? assert.fail(out)
    const made = await good('keys', 'create', '--name', 'Grace')
    assert.doesNotMatch(made, /\[object/)
    const [id, key, first] = [field(made, 'id'), field(made, 'api_key'), field(made, 'api_secret')]
    assert.equal(await calls(key, first), 200)
    const second = field(await good('keys', 'rotate', id), 'api_secret')
    assert.deepEqual([await calls(key, first), await calls(key, second)], [200, 200])
    await good('keys', 'end-overlap', id)
    assert.deepEqual([await calls(key, first), await calls(key, second)], [401, 200])
    assert.match(await good('keys', 'revoke', id), new RegExp(`^${id} .*revoked .*Grace$`, 'm'))
    assert.equal(await calls(key, second), 401)
    assert.match(await good('keys', 'restore', id), new RegExp(`^${id} .*in force +Grace$`, 'm'))
    assert.equal(await calls(key, second), 200)
    assert.match(await good('keys'), new RegExp(`^${id} +${key} `, 'm'))
    assert.equal((await mailroom(env, 'keys', 'rotate')).status, 2)
    assert.match((await mailroom(env, 'keys', 'rotate', 'f'.repeat(24))).error, /\(404\)/)
  })

  test('accounts and keys are listed to their end, however many there are', async () => {
    const { store } = rig.engine
    const user = userRecord((await store.developers.byKey(apiKey))?.id ?? assert.fail('no developer'))
    const resume = { ...freshResume, condition: { is: 'down', since: 0 } } as const
    const made = Array.from({ length: 230 }, (_, n) =>
      accountRecord(user, { email: `n${n}@long.example`, server: 'imap.long.example', resume }),
    )
    await store.users.createWithAccount(user, made[0] ?? assert.fail('none'))
    for (const account of made.slice(1)) await store.accounts.create(account)
    const listed = async (...words: string[]) => {
      const json = await good('accounts', '--host', 'imap.long.example', '--json', ...words)
      const { total, accounts } = JSON.parse(json) as { total: number; accounts: { id: string }[] }
      assert.equal(total, made.length)
      return accounts.map(({ id }) => id)
    }
    const all = await listed('--limit', '1000')
    assert.deepEqual(all.toSorted(), made.map(({ id }) => id).toSorted())
    assert.deepEqual(await listed(), all.slice(0, 50))
    assert.deepEqual(await listed('--limit', '203', '--offset', '5'), all.slice(5, 208))
    assert.deepEqual(await listed('--offset', '228'), all.slice(228))
    assert.equal((await listed('--condition', 'down')).length, 50)
    const up = await good('accounts', '--condition', 'up')
    assert.deepEqual([up.includes(box.accountId), up.includes('long.example')], [true, false])
    await rig.ok('DELETE', `/lite/users/${user.id}`)
    for (let n = 0; n < 205; n += 1) await rig.engine.developers.create(`Many ${n}`)
    assert.equal((await good('keys')).match(/Many \d+$/gm)?.length, 205)
  })

  test('what strangers wrote moves no cursor and turns no line', async () => {
    const name = 'evil\u001B[2J\u009B1m\u202Eeman\nnext line'
    const { developer } = await rig.engine.developers.create(name)
    assert.match(await good('keys'), new RegExp(`^${developer.id} .* evil\\?\\[2J\\?1m\\?eman next line$`, 'm'))
    const json = JSON.parse(await good('keys', '--json')) as { readonly name: string }[]
    assert.ok(json.some((one) => one.name === 'evil?[2J?1m?eman next line'))
  })

  test('retention is shown, set and reset', async () => {
    assert.match(await good('retention'), /^calls +7d +MAILROOM_CALL_LOG_RETENTION$/m)
    assert.match(await good('retention', 'set', 'calls', '7200'), /^calls +2h +an operator$/m)
    assert.match(await good('retention', 'reset', 'calls'), /^calls +7d +MAILROOM_CALL_LOG_RETENTION$/m)
    assert.match((await mailroom(env, 'retention', 'set', 'calls', '5')).error, /seconds: expected .*\(400\)/)
    for (const words of [['set', 'calls'], ['set'], ['reset'], ['reset', 'calls', '5'], ['forget', 'calls']])
      assert.equal((await mailroom(env, 'retention', ...words)).status, 2, words.join(' '))
  })

  test('an account is found by its address, however many others hold it in theirs', async () => {
    const { store } = rig.engine
    const developer = (await store.developers.byKey(apiKey)) ?? assert.fail('no developer')
    const user = userRecord(developer.id)
    const account = (email: string) => accountRecord(user, { email, server: 'imap.many.example' })
    await store.users.createWithAccount(user, account('first-a@many.example'))
    for (let n = 0; n < 210; n += 1) await store.accounts.create(account(`n${n}-a@many.example`))
    const wanted = { ...account('a@many.example'), createdAt: Date.now() + 60_000 }
    await store.accounts.create(wanted)
    const json = await good('explain', 'A@many.example', '--json')
    assert.deepEqual(JSON.parse(json), JSON.parse(await good('explain', wanted.id, '--json')))
    await rig.ok('DELETE', `/lite/users/${user.id}`)
  })

  test('what is looked for is found, a row each', async () => {
    const found = await good('find', box.email.slice(0, 6).toUpperCase())
    assert.match(found, new RegExp(`^account +${box.accountId} +${box.email} `, 'm'))
    assert.match(await good('find', 'nothing like it'), /^none$/m)
    assert.equal((await mailroom(env, 'find')).status, 2)
  })

  test('an account is explained, by its id or its address', async () => {
    const byId = await good('explain', box.accountId, '--json')
    assert.deepEqual(Object.keys(JSON.parse(byId) as object).sort(), [
      'next',
      'quarantined',
      'since',
      'why',
      'would_change',
    ])
    assert.match(await good('explain', box.email.toUpperCase()), /\nSince \d{4}-/)
    const none = await mailroom(env, 'explain', 'nobody@mail.example')
    assert.deepEqual([none.status, none.error], [1, 'mailroom: nobody@mail.example: no such account\n'])
    assert.match((await mailroom(env, 'explain', 'f'.repeat(24))).error, /\(404\)/)
  })

  test('what is said of an account is done by the command that it names', async () => {
    assert.match(await good('pause', box.email), new RegExp(`^ID .*\n${box.accountId} .* paused `))
    const paused = await until('the trail', async () => {
      const words = await good('explain', box.email)
      return words.includes('It was paused by') && words
    })
    assert.match(paused, /An operator has paused it\. It was paused by token \S.* from 127\.0\.0\.1 at 2\d{3}-/)
    assert.match(paused, new RegExp(`mailroom resume ${box.accountId}`))
    assert.match(await good('resume', box.accountId), new RegExp(`^ID .*\n${box.accountId} `))
    assert.equal(await good('check', box.accountId), 'The login works.\n')
    rig.imap.setPassword(box.email, 'another')
    const refused = await mailroom(env, 'check', box.accountId)
    rig.imap.setPassword(box.email, 'secret')
    assert.deepEqual([refused.status, refused.out], [1, ''])
    assert.match(refused.error, /^mailroom: the login fails \(auth_rejected\): /)
    assert.match(await good('reconnect', box.accountId), new RegExp(`^ID .*\n${box.accountId} `))
    const [, url = ''] = /^url: (\S+)$/m.exec(await good('link', box.email)) ?? []
    assert.equal((await fetch(url)).status, 200)
    const trail = await until('the trail', async () => {
      const rows = JSON.parse(await good('audit', box.email, '--json')) as { action: string }[]
      return rows.length === 6 && rows
    })
    const done = ['pause', 'resume', 'check', 'check', 'reconnect', 'link'].map((name) => `accounts ${name}`)
    assert.deepEqual(trail.map(({ action }) => action).toReversed(), done)
    assert.match(await good('audit', '--limit', '1'), /^AT .*\n.* accounts link .*\n$/)
  })

  test('hosts are listed, slowed down, stopped and freed; webhooks are listed; a callback is named', async () => {
    const { host } = rig.imap
    assert.match(await good('hosts'), new RegExp(`^HOST.*\n${host} `))
    assert.match(await good('hosts', 'slow', host, '7'), /^pace: 7$/m)
    assert.match(await good('hosts', 'stop', host), /^pace: 0$/m)
    assert.match(await good('hosts', 'free', host), /^pace: $/m)
    assert.equal((await mailroom(env, 'hosts', 'slow', host)).status, 2)
    assert.equal(await good('webhooks', '--state', 'failing'), 'none\n')
    assert.match(await good('deliveries', '--limit', '1'), /^ID +STATE +CREATED +EVENT +MAILBOX +SUBJECT\n/)
    const { status, error } = await mailroom(env, 'redeliver', 'nobody')
    assert.deepEqual([status, error.includes('delivery nobody is invalid')], [1, true])
  })

  test('--version, and completion that bash takes', async () => {
    assert.match(await good('--version'), /^\d+\.\d+\.\d+\n$/)
    const script = await good('completion')
    const completed = (words: string, at: number): string => {
      const asked = `COMP_WORDS=(mailroom ${words}) COMP_CWORD=${at}; _mailroom; echo "\${COMPREPLY[@]}"`
      return spawnSync('bash', ['-c', `${script}\n${asked}`], { encoding: 'utf8' }).stdout
    }
    assert.equal(completed('rec', 1), 'reconnect\n')
    assert.equal(completed('keys r', 2), 'rotate revoke restore\n')
    assert.equal(completed('hosts s', 2), 'slow stop\n')
    assert.match(await good('completion', 'zsh'), /bashcompinit[^]*complete -F _mailroom mailroom/)
    assert.match(
      await good('completion', 'fish'),
      /^complete -c mailroom -f -n __fish_use_subcommand -a reconnect -d '/m,
    )
    assert.equal((await mailroom(env, 'completion', 'tcsh')).status, 2)
  })
})
