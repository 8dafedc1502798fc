/**
 * Services that a test cannot bring along. A test that needs one is skipped by name where it is missing, and fails
 * where MAILROOM_REQUIRE (comma-separated names) says that it must be there, as in CI.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { courierRoot, cyrusRoot, greenMailJar, pymapPython } from './mail-home.ts'

export type Service =
  'dovecot' | 'cyrus' | 'courier' | 'greenmail' | 'pymap' | 'mongodb' | 'chromium' | 'docker-compose'

/** Why the service cannot be used here; null = it can. */
const missing: Record<Service, () => string | null> = {
  dovecot: () => {
    const version = versionOf('dovecot', ['--version'])
    if (version === null) return 'dovecot is not installed (Debian: dovecot-imapd)'
    return /^2\.3\./.test(version) ? null : `dovecot ${version} is here, 2.3 is needed`
  },
  cyrus: () => inChroot('cyrus', cyrusRoot()),
  courier: () => inChroot('courier', courierRoot()),
  greenmail: () => {
    if (greenMailJar() === null) return 'greenmail is not here (bash test/support/mail-servers.sh install greenmail)'
    return versionOf('java', ['-version']) === null ? 'java is not installed (Debian: default-jre-headless)' : null
  },
  pymap: () => (pymapPython() === null ? 'pymap is not here (bash test/support/mail-servers.sh install pymap)' : null),
  mongodb: () => (process.env['MONGODB_URI'] ? null : 'MONGODB_URI is not set (npm run mongo start)'),
  chromium: () => (chromiumPath() === null ? 'chromium is not installed (Debian: chromium-headless-shell)' : null),
  'docker-compose': () =>
    versionOf('docker-compose', ['--version']) === null
      ? 'docker-compose is not installed (Debian: docker-compose)'
      : null,
}

function inChroot(server: 'cyrus' | 'courier', root: string | null): string | null {
  if (root === null) return `${server} is not installed (bash test/support/mail-servers.sh install ${server})`
  return userInfo().uid === 0 ? null : `${server} needs root: it runs in a chroot`
}

/** Where Debian puts programs that are not on everybody's PATH. */
const searchPath = `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin`

/** Debian's Chromium; null when there is none. The headless shell takes half the processor time of the others. */
export function chromiumPath(): string | null {
  const programs = ['chromium-headless-shell', 'chromium', 'chromium-browser']
  return programs.map((program) => `/usr/bin/${program}`).find((path) => existsSync(path)) ?? null
}

function versionOf(program: string, args: readonly string[]): string | null {
  try {
    const env = { ...process.env, PATH: searchPath }
    return execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null
  }
}

/**
 * For the options of `test` and `suite`: {} when the service is here, {skip: why} when it is not. Throws when
 * MAILROOM_REQUIRE names it and it is not here.
 */
export function needs(...services: readonly Service[]): { skip?: string } {
  const required = (process.env['MAILROOM_REQUIRE'] ?? '').split(',').map((name) => name.trim())
  const reasons: string[] = []
  for (const service of services) {
    const reason = missing[service]()
    if (reason === null) continue
    if (required.includes(service)) throw new Error(`MAILROOM_REQUIRE=${required.join(',')}, but ${reason}`)
    reasons.push(reason)
  }
  return reasons.length === 0 ? {} : { skip: reasons.join('; ') }
}
