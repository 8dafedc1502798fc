/**
 * A private, real Cyrus on a free loopback port, in the chroot that mail-servers.sh makes (root only). Its directory
 * lies in the chroot and is gone afterwards. A user who is not known yet is made at the first connection. Names of
 * folders as Debian configures them: "." between levels, everything below INBOX. A new password ends no connection.
 */
import { execFile } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { createDaemon, openServer, startImap, type PrivateServer } from './daemon.ts'
import { cyrusRoot } from './mail-home.ts'
import { freePort } from './port.ts'
import { openRawImap, type RawImap } from './raw-imap.ts'

const run = promisify(execFile)
const domain = 'mail.example'
const programs = '/usr/lib/cyrus/bin'
const environment = ['/usr/bin/env', '-i', `PATH=${programs}:/usr/sbin:/usr/bin:/sbin:/bin`, 'LC_ALL=C'] as const

export async function startCyrus(): Promise<PrivateServer> {
  const root = cyrusRoot()
  if (root === null) throw new Error('Cyrus is not installed: bash test/support/mail-servers.sh install cyrus')
  const host = '127.0.0.1'
  const port = await freePort()
  const { outside, inside } = makeDirectory(root, `${host}:${port}`)
  const daemon = createDaemon(() => ['chroot', root, ...environment, ...master(inside)], process.env)
  const log = (): string => `cyrus said: ${daemon.output()}`
  const users = new Set<string>()
  let password = 'correct-horse'

  const store = async (user: string): Promise<void> => {
    const [name = user, realm = domain] = user.split('@')
    const database = ['-p', '-c', '-f', `${inside}/sasldb2`, '-u', realm, name]
    const stored = run('chroot', [root, ...environment, 'saslpasswd2', ...database])
    stored.child.stdin?.end(password)
    await stored
    own(root, join(outside, 'sasldb2'))
  }
  const start = () => startImap(daemon, { host, port }, log)
  const connect = async (user: string): Promise<RawImap> => {
    if (!users.has(user)) await store(user)
    users.add(user)
    return openRawImap({ host, port, user, password })
  }

  return openServer({
    ...{ daemon, host, port, connect, start, log },
    password: () => password,
    async setPassword(next) {
      password = next
      for (const user of users) await store(user)
    },
    clear: () => rmSync(outside, { recursive: true, force: true, maxRetries: 5 }),
  })
}

function master(dir: string): string[] {
  return [
    `${programs}/master`,
    '-D',
    '-C',
    `${dir}/imapd.conf`,
    '-M',
    `${dir}/cyrus.conf`,
    '-p',
    `${dir}/run/master.pid`,
  ]
}

/** Cyrus' own user in the chroot has to be able to write it. */
function own(root: string, path: string): void {
  const [, uid, gid] = /^cyrus:[^:]*:(\d+):(\d+):/m.exec(readFileSync(join(root, 'etc/passwd'), 'utf8')) ?? []
  chownSync(path, Number(uid), Number(gid))
}

/** The same directory by its two names. */
function makeDirectory(root: string, address: string): { readonly outside: string; readonly inside: string } {
  const parent = join(root, 'var/lib/mailroom')
  mkdirSync(parent, { recursive: true })
  const outside = mkdtempSync(join(parent, 'cyrus-'))
  const inside = `/var/lib/mailroom/${basename(outside)}`
  for (const name of ['', 'config', 'config/socket', 'spool', 'run', 'run/proc', 'run/lock']) {
    mkdirSync(join(outside, name), { recursive: true })
    own(root, join(outside, name))
  }
  writeFileSync(join(outside, 'imapd.conf'), settings(inside))
  writeFileSync(join(outside, 'cyrus.conf'), services(inside, address))
  return { outside, inside }
}

function settings(dir: string): string {
  const folders = ['Sent', 'Drafts', 'Trash', 'Junk', 'Archive']
  return `
configdirectory: ${dir}/config
proc_path: ${dir}/run/proc
mboxname_lockpath: ${dir}/run/lock
idlesocket: ${dir}/run/idle
defaultpartition: default
partition-default: ${dir}/spool
servername: ${domain}
virtdomains: userid
unixhierarchysep: no
altnamespace: no
allowplaintext: yes
sasl_mech_list: PLAIN LOGIN
sasl_pwcheck_method: auxprop
sasl_auxprop_plugin: sasldb
sasl_sasldb_path: ${dir}/sasldb2
failedloginpause: 0
autocreate_quota: 0
autocreate_inbox_folders: ${folders.join(' | ')}
${folders.map((name) => `xlist-${name.toLowerCase()}: ${name}`).join('\n')}
`
}

function services(dir: string, address: string): string {
  return `
START {
  recover cmd="ctl_cyrusdb -C ${dir}/imapd.conf -r"
}
SERVICES {
  imap cmd="imapd -C ${dir}/imapd.conf" listen="${address}" prefork=2 maxchild=100
}
DAEMON {
  idled cmd="idled -C ${dir}/imapd.conf"
}
EVENTS {
}
`
}
