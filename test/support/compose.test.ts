/**
 * docker-compose.yml and .env.example: what stands in .env reaches the service, and nothing of the database's own does.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { readConfig } from '../../engine/config.ts'

const root = join(import.meta.dirname, '../..')
const compose = 'docker-compose'

function missing(): string | false {
  try {
    execFileSync(compose, ['--version'], { stdio: 'ignore' })
    return false
  } catch {
    return 'docker-compose is not installed (Debian: docker-compose)'
  }
}

/** The example filled in, with its commented settings switched on. */
async function filledExample(): Promise<Record<string, string>> {
  const text = await readFile(join(root, '.env.example'), 'utf8')
  const entries = [...text.matchAll(/^#?([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value || 'a1'.repeat(8),
  ])
  return Object.fromEntries(entries) as Record<string, string>
}

/** Environment of a service as docker-compose prints it. */
function environmentOf(service: string, config: string): Record<string, string> {
  const block = new RegExp(`^  ${service}:\\n((?:    .*\\n)+)`, 'm').exec(config)?.[1] ?? ''
  const lines = /^ {4}environment:\n((?: {6}.*\n)+)/m.exec(block)?.[1] ?? ''
  const pairs = [...lines.matchAll(/^ {6}(\w+): (.*)$/gm)]
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value.replace(/^'(.*)'$/, '$1')]))
}

suite('docker-compose.yml', { skip: missing() }, () => {
  test('every setting in .env reaches the service, the passwords of the database do not', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mailroom-compose-'))
    try {
      await cp(join(root, 'docker-compose.yml'), join(directory, 'docker-compose.yml'))
      const env: Record<string, string> = {
        ...(await filledExample()),
        MAILROOM_STRIKES: '7',
        MAILROOM_PORT: '1234',
        MONGO_ROOT_PASSWORD: 'r00t',
      }
      const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`)
      await writeFile(join(directory, '.env'), lines.join(''))
      const config = execFileSync(compose, ['config'], { cwd: directory, encoding: 'utf8' })
      const given = environmentOf('mailroom', config)
      const settings = readConfig(given)
      assert.equal(settings.MAILROOM_STRIKES, 7)
      assert.equal(settings.MAILROOM_TRUST_PROXY, true)
      assert.equal(settings.MAILROOM_PUBLIC_URL, env['MAILROOM_PUBLIC_URL'])
      assert.equal(settings.MAILROOM_PORT, 3000, 'the port of the container')
      assert(!Object.values(given).includes('r00t'))
      assert.match(settings.MONGODB_URI ?? '', /^mongodb:\/\/mailroom:(?:a1){8}@mongo:27017\/mailroom\?/)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})

test('.env.example names settings that there are', async () => {
  const given = Object.entries(await filledExample()).filter(([name]) => name.startsWith('MAILROOM_'))
  assert(given.length > 4)
  assert(readConfig(Object.fromEntries(given)))
})
