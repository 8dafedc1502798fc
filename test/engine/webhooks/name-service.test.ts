/**
 * Without a file left, glibc's look-up fails with another error for each module that nsswitch.conf names for hosts
 * (libnss-mdns is common on desktops). Each of them is a shortage of ours, whatever this machine's own file says.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { noPrlimit } from '../../support/no-files.ts'

function noNamespace(): string | false {
  try {
    execFileSync('unshare', ['--mount', 'test', '-f', '/etc/nsswitch.conf'], { stdio: 'ignore' })
    return false
  } catch {
    return 'a mount namespace over /etc/nsswitch.conf needs root'
  }
}

const inNamespace = 'mount --bind "$1" /etc/nsswitch.conf && shift && exec "$@"'
const theTest = ['--test-name-pattern=no file left', 'test/engine/webhooks/http.test.ts']

suite('no file left, and hosts of nsswitch.conf', { skip: noPrlimit() || noNamespace() }, () => {
  for (const hosts of ['files dns', 'files mdns4_minimal [NOTFOUND=return] dns'])
    test(hosts, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'mailroom-hosts-'))
      t.after(() => rmSync(folder, { recursive: true }))
      const file = join(folder, 'nsswitch.conf')
      writeFileSync(file, `hosts: ${hosts}\n`)
      const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
      const run = [process.execPath, '--test', '--test-isolation=none', '--test-reporter=tap', ...theTest]
      const { stdout } = await promisify(execFile)(
        'unshare',
        ['--mount', 'sh', '-c', inNamespace, 'sh', file, ...run],
        { env },
      )
      assert.match(stdout, /^# pass 1$/m)
    })
})
