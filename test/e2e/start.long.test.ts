/**
 * Starts that must not succeed: each ends at once with one line that names the setting or the file, and the cause.
 * Always on the embedded store: they are about its data directory, its lock and its file.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { startScript, startService, type Service } from '../support/service.ts'

const root = join(import.meta.dirname, '../..')
const start = startScript(root)

/** Runs main.ts until it ends, for 20 s at most; answers its exit status and what it wrote to stderr. */
async function run(env: Record<string, string>, words: readonly string[] = []) {
  const child = spawn(process.execPath, [...start.args, ...words], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', MAILROOM_PORT: '0', ...start.env, ...env },
    timeout: 20_000,
    killSignal: 'SIGKILL',
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { ...output, status }
}

async function refused(env: Record<string, string>, ...words: readonly RegExp[]): Promise<void> {
  const { status, stderr } = await run(env)
  assert.equal(status, 1, stderr)
  assert.match(stderr, /^mailroom: [^\n]+\n$/, 'one line')
  for (const word of words) assert.match(stderr, word)
}

const mode = (file: string): number => statSync(file).mode & 0o777

suite('a start that cannot work', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mr-start-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('the data directory is a file', () =>
    refused({ MAILROOM_DATA_DIR: '/etc/passwd' }, /MAILROOM_DATA_DIR: \/etc\/passwd/, /not a directory/))

  test('the data directory is below a file', () =>
    refused({ MAILROOM_DATA_DIR: '/etc/passwd/data' }, /MAILROOM_DATA_DIR: \/etc\/passwd\/data/, /not a directory/))

  test('the data directory cannot be made', { skip: !existsSync('/proc/self') && 'no /proc' }, () =>
    refused({ MAILROOM_DATA_DIR: '/proc/nope/data' }, /MAILROOM_DATA_DIR: \/proc\/nope/, /ENOENT|EACCES|EPERM/),
  )

  test('secrets that could be guessed', async () => {
    const [MAILROOM_DATA_DIR, short] = [join(folder, 'new'), 'fifteen letters']
    const first = { MAILROOM_DATA_DIR, MAILROOM_API_KEY: 'me', MAILROOM_API_SECRET: short }
    await refused(first, /MAILROOM_API_SECRET: expected at least 16 characters/)
    const phrase = { MAILROOM_DATA_DIR, MAILROOM_SECRET: short }
    await refused(phrase, /MAILROOM_SECRET: a pass phrase needs at least 16 characters/)
  })

  test('the data file is no SQLite database', async () => {
    const file = join(folder, 'mailroom.sqlite')
    writeFileSync(file, 'this is a letter, not a database\n'.repeat(100))
    await refused({ MAILROOM_DATA_DIR: folder }, /mailroom\.sqlite is not an SQLite database/)
    assert.match(readFileSync(file, 'utf8'), /^this is a letter/, 'left as it was')
  })
})

suite('a data directory in use', () => {
  let service: Service
  /** No key in the environment: it was generated, so nothing but the check at the start would notice. */
  const generated = (): Record<string, string> => ({ MAILROOM_DATA_DIR: service.dataDir })
  before(async () => {
    service = await startService()
  })
  after(() => service.remove())

  test('its files belong to the owner alone', () => {
    for (const name of ['secret', 'mailroom.sqlite', 'mailroom.sqlite-wal', 'mailroom.sqlite-shm'])
      assert.equal(mode(join(service.dataDir, name)), 0o600, name)
  })

  test('look-ups of names leave threads to others', { skip: !existsSync('/proc/self') && 'no /proc' }, () => {
    const tasks = `/proc/${service.pid}/task`
    const names = readdirSync(tasks).map((task) => readFileSync(join(tasks, task, 'comm'), 'utf8'))
    assert.equal(names.filter((name) => name === 'libuv-worker\n').length, 32)
  })

  test('a second process on it, and a copy of it, stop with one line; the first goes on', async () => {
    await refused(generated(), /mailroom\.sqlite is in use by another process/)
    const copy = await run({}, [
      'store',
      'copy',
      '--from',
      service.dataDir,
      '--to',
      join(service.dataDir, 'other.sqlite'),
    ])
    assert.equal(copy.status, 1)
    assert.match(copy.stdout, /^[^\n]*mailroom\.sqlite is in use by another process[^\n]*\n$/)
    assert.equal((await service.api('GET', '/lite/users')).status, 200)
    await refused(generated(), /in use/)
  })

  test('after a kill it starts again, and tells of a secret that others can read', async () => {
    await service.kill9()
    chmodSync(join(service.dataDir, 'secret'), 0o644)
    chmodSync(join(service.dataDir, 'mailroom.sqlite'), 0o644)
    chmodSync(service.dataDir, 0o755)
    await service.start({ MAILROOM_HOST: '0.0.0.0' })
    assert.match(service.log(), /the secret can be read by others/)
    assert.equal(mode(join(service.dataDir, 'mailroom.sqlite')), 0o600)
    assert.match(service.log(), /others could look into the data directory/)
    assert.equal(mode(service.dataDir), 0o700)
    assert.match(service.url, /^http:\/\/127\.0\.0\.1:\d+$/, 'a wildcard is no address for links')
    assert.equal(service.log().split('set MAILROOM_PUBLIC_URL').length, 2, 'told once')
    await service.stop()
  })

  test('a changed or lost secret is noticed, and no new one is made', async () => {
    await service.stop()
    const file = join(service.dataDir, 'secret')
    renameSync(file, `${file}.kept`)
    await refused(generated(), /secret is missing/, /MAILROOM_SECRET/)
    assert(!existsSync(file))
    await refused(
      { ...generated(), MAILROOM_SECRET: 'another pass phrase' },
      /MAILROOM_SECRET: not the one this store was/,
    )
    writeFileSync(file, 'ab'.repeat(32))
    await refused(generated(), /secret: not the one this store was sealed with/)
    writeFileSync(file, 'short')
    await refused(generated(), /secret: too short/)
    renameSync(`${file}.kept`, file)
    await service.start()
    assert.equal((await service.api('GET', '/lite/users')).status, 200)
  })
})
