/** Where test/support/mail-servers.sh has put the mail servers that no package of this machine brings. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const home = process.env['TEST_MAIL_HOME'] ?? '/var/tmp/mailroom-mail'

/** The chroot with Cyrus in it; null when there is none. */
export function cyrusRoot(): string | null {
  const root = join(home, 'root')
  return existsSync(join(root, '.mailroom-ready')) ? root : null
}

/** The chroot with Courier in it; null when there is none. */
export function courierRoot(): string | null {
  const root = join(home, 'root')
  return existsSync(join(root, '.courier-ready')) ? root : null
}

/** null when there is none. */
export function greenMailJar(): string | null {
  const jar = join(home, 'greenmail-standalone.jar')
  return existsSync(`${jar}.version`) ? jar : null
}

/** The Python that has pymap; null when there is none. */
export function pymapPython(): string | null {
  const venv = join(home, 'pymap')
  return existsSync(join(venv, 'version')) ? join(venv, 'bin', 'python') : null
}
