/** Configuration of a private Dovecot 2.3: everything in one directory, loopback only, no system users needed. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'

export interface DovecotSettings {
  readonly dir: string
  readonly port: number
  /** null = no TLS port. */
  readonly tlsPort: number | null
  readonly format: 'maildir' | 'sdbox' | 'mdbox'
  readonly password: string
  /** The only capabilities that it advertises; null = all that it has. */
  readonly capability: string | null
  /** Names begin with INBOX., "." stands between their levels, and there are a shared and a virtual namespace. */
  readonly namespaces: boolean
}

/** Whom mail belongs to and whom Dovecot's own processes run as: Dovecot's users under root, ourselves otherwise. */
function identities() {
  const self = userInfo()
  if (self.uid === 0) return { uid: 65_534, gid: 65_534, internal: 'dovecot', group: 'dovecot', login: 'dovenull' }
  const group = execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim()
  return { uid: self.uid, gid: self.gid, internal: self.username, group, login: self.username }
}

/** Owner of the mail directories. */
export function mailOwner(): { readonly uid: number; readonly gid: number } {
  const { uid, gid } = identities()
  return { uid, gid }
}

/** Public has the folders that anybody makes there; Virtual.News shows all that lies in Public.News. */
function sharedNamespaces({ dir, format }: DovecotSettings): string {
  return `
mail_plugins = virtual
namespace public {
  type = public
  separator = .
  prefix = Public.
  location = ${format}:${dir}/mail/public
  subscriptions = no
}
namespace virtual {
  separator = .
  prefix = Virtual.
  location = virtual:${dir}/virtual:INDEX=${dir}/mail/%u/virtual
  subscriptions = no
}
`
}

/** What the virtual namespace is made of. */
export function makeVirtual(dir: string): void {
  mkdirSync(join(dir, 'virtual', 'News'), { recursive: true })
  writeFileSync(join(dir, 'virtual', 'News', 'dovecot-virtual'), 'Public.News\n  all\n')
}

export function dovecotConfig(settings: DovecotSettings): string {
  const { dir, port, tlsPort, format, password, capability, namespaces } = settings
  const who = identities()
  const folders = ['Drafts', 'Sent', 'Trash', 'Junk', 'Archive'].map(
    (name) => `  mailbox ${name} {\n    special_use = \\${name}\n    auto = subscribe\n  }`,
  )
  return `
base_dir = ${dir}/run
state_dir = ${dir}/state
log_path = ${dir}/dovecot.log
instance_name = mailroom-test-${port}
protocols = imap
listen = 127.0.0.1
default_internal_user = ${who.internal}
default_internal_group = ${who.group}
default_login_user = ${who.login}
default_process_limit = 100
default_client_limit = 12000
default_vsz_limit = 2G
shutdown_clients = yes

ssl = ${tlsPort === null ? 'no' : `yes\nssl_cert = <${dir}/cert.pem\nssl_key = <${dir}/key.pem`}
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
passdb {
  driver = static
  args = password=${password}
}
userdb {
  driver = static
  args = uid=${who.uid} gid=${who.gid} home=${dir}/mail/%u
}

mail_location = ${format}:${dir}/mail/%u/${format}
mail_fsync = never
first_valid_uid = ${who.uid}
first_valid_gid = ${who.gid}
namespace inbox {
  inbox = yes
  separator = ${namespaces ? '.\n  prefix = INBOX.' : '/'}
${folders.join('\n')}
}
${namespaces ? sharedNamespaces(settings) : ''}
protocol imap {
  mail_max_userip_connections = 0
  ${capability === null ? '' : `imap_capability = ${capability}`}
}

service imap-login {
  chroot =
  service_count = 0
  process_min_avail = 1
  process_limit = 2
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = ${tlsPort ?? 0}
    ssl = yes
  }
}
service imap {
  process_limit = 5000
  service_count = 200
}
service anvil {
  chroot =
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
`
}

/** A self-signed certificate for localhost and 127.0.0.1. */
export function makeCertificate(dir: string): void {
  const key = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const files = ['-keyout', join(dir, 'key.pem'), '-out', join(dir, 'cert.pem')]
  execFileSync('openssl', [...key, ...names, ...files], { stdio: ['ignore', 'ignore', 'pipe'] })
}

const inotifyLimit = '/proc/sys/fs/inotify/max_user_instances'

/**
 * Each mailbox in IDLE takes one inotify instance; past the limit (128 by default) Dovecot looks every 30 s instead.
 * Raises the limit where that is allowed. Answers what to tell the person when it is not, null otherwise.
 */
export function raiseInotifyLimit(mailboxes: number): string | null {
  const wanted = mailboxes + 128
  try {
    if (Number(readFileSync(inotifyLimit, 'utf8')) >= wanted) return null
    writeFileSync(inotifyLimit, String(Math.max(wanted, 16_384)))
    return null
  } catch (error) {
    return `fs.inotify.max_user_instances is too low for ${mailboxes} mailboxes and cannot be raised here (${(error as Error).message}): IDLE falls back to polling`
  }
}
