/**
 * docker-compose.yml and .env.example: what stands in .env reaches the service, and nothing of the database's own does.
 * Several processes have a port of the host each.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { parse } from 'yaml'
import { readConfig } from '../../engine/config.ts'
import { needs } from './require.ts'

const root = join(import.meta.dirname, '../..')

/** The example filled in, with its commented settings switched on. */
async function filledExample(): Promise<Record<string, string>> {
  const text = await readFile(join(root, '.env.example'), 'utf8')
  const entries = [...text.matchAll(/^#?([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value || 'a1'.repeat(8),
  ])
  return Object.fromEntries(entries) as Record<string, string>
}

interface ComposeService {
  readonly container_name?: string
  readonly environment: Record<string, string>
  readonly ports: readonly (
    string | { readonly host_ip: string; readonly published: string; readonly target: number }
  )[]
}

/** The service `mailroom` as docker-compose understands the file, with this .env; it refuses what is not valid. */
async function composed(env: Readonly<Record<string, string>>): Promise<ComposeService> {
  const directory = await mkdtemp(join(tmpdir(), 'mailroom-compose-'))
  try {
    await cp(join(root, 'docker-compose.yml'), join(directory, 'docker-compose.yml'))
    const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`)
    await writeFile(join(directory, '.env'), lines.join(''))
    const config = execFileSync('docker-compose', ['config'], { cwd: directory, encoding: 'utf8' })
    const { services } = parse(config) as { readonly services: { readonly mailroom: ComposeService } }
    return services.mailroom
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Ports of the host for port 3000 of the containers, by address, first and last one. */
function published({ ports: [port] }: ComposeService): string {
  if (typeof port === 'object') return `${port.host_ip}:${port.published}:${port.target}`
  return String(port).replace('/tcp', '')
}

suite('docker-compose.yml', needs('docker-compose'), () => {
  test('every setting in .env reaches the service, the passwords of the database do not', async () => {
    const env: Record<string, string> = {
      ...(await filledExample()),
      MAILROOM_STRIKES: '7',
      MAILROOM_PORT: '1234',
      MONGO_ROOT_PASSWORD: 'r00t',
    }
    const { environment: given } = await composed(env)
    const settings = readConfig(given)
    assert.equal(settings.MAILROOM_STRIKES, 7)
    assert.equal(settings.MAILROOM_TRUST_PROXY, true)
    assert.equal(settings.MAILROOM_PUBLIC_URL, env['MAILROOM_PUBLIC_URL'])
    assert.equal(settings.MAILROOM_PORT, 3000, 'the port of the container')
    assert(!Object.values(given).includes('r00t'))
    assert.match(settings.MONGODB_URI ?? '', /^mongodb:\/\/mailroom:(?:a1){8}@mongo:27017\/mailroom\?/)
  })

  for (const file of ['README.md', 'docs/scale.md', 'docker-compose.yml'])
    test(`the command of ${file} gives each process a port of the host`, async () => {
      const text = await readFile(join(root, file), 'utf8')
      const command = /PUBLISH=([\d.]+:(\d+)-(\d+)) docker compose up -d --scale mailroom=(\d+)/.exec(text)
      assert(command !== null)
      const [, range = '', first, last, count] = command
      assert.equal(Number(last) - Number(first) + 1, Number(count))
      const service = await composed({ ...(await filledExample()), PUBLISH: range })
      assert.equal(published(service), `${range}:3000`)
      assert.equal(service.container_name, undefined, 'only one container can have a name')
    })
})

test('.env.example names settings that there are', async () => {
  const given = Object.entries(await filledExample()).filter(([name]) => name.startsWith('MAILROOM_'))
  assert(given.length > 4)
  assert(readConfig(Object.fromEntries(given)))
})
